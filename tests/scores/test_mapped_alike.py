import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import UsageError
from culturekit.index.matching.comparison import check_mapped_alike, check_mapped_through
from tests.verify.forging import read_json, write_json

Manifest = dict[str, Any]


def changed(folder: Path, to: Path, change: Callable[[Manifest], None]) -> Path:
    copy = Path(shutil.copytree(folder, to))
    manifest = read_json(copy / "manifest.json")
    change(manifest)
    write_json(copy / "manifest.json", manifest)
    return copy


def other_index(manifest: Manifest) -> None:
    manifest["inputs"]["index"]["sha256"] = "0" * 64


def other_rule(manifest: Manifest) -> None:
    manifest["options"]["within"] = "country"


def more_neighbours(manifest: Manifest) -> None:
    manifest["options"]["k"] += 5


@pytest.mark.parametrize(("change", "found"), [(other_index, "index 000000000000"), (other_rule, "within country")])
def test_matches_of_another_index_or_rule_are_not_compared(
    run_copy: Path, tmp_path: Path, change: Callable[[Manifest], None], found: str
) -> None:
    here, there = (run_copy / f"matches-{name}/matches.parquet" for name in ("broad", "narrow"))
    apart = changed(there.parent, tmp_path / "apart", change)
    check_mapped_alike([here, there])
    with pytest.raises(UsageError, match=f"mapped in different ways.*found {found}"):
        check_mapped_alike([here, apart / "matches.parquet"])
    shutil.rmtree(there.parent)
    apart.rename(there.parent)
    with pytest.raises(UsageError, match="mapped in different ways"):
        check_mapped_alike([run_copy / "scores/values.parquet"])


def test_a_diagnosis_lists_no_hubs_of_another_index(run_copy: Path, tmp_path: Path) -> None:
    here = run_copy / "matches-broad"
    apart = changed(here, tmp_path / "apart", other_index)
    check_mapped_through(run_copy / "index", [here / "matches.parquet"])
    with pytest.raises(UsageError, match=r"mapped through another index.*found index 000000000000"):
        check_mapped_through(run_copy / "index", [apart / "matches.parquet"])


def test_what_is_alike_or_not_known_is_compared(run_copy: Path, tmp_path: Path) -> None:
    here, there = (run_copy / f"matches-{name}/matches.parquet" for name in ("broad", "narrow"))
    deeper = changed(there.parent, tmp_path / "deeper", more_neighbours) / "matches.parquet"
    merged = Path(shutil.copy(there, tmp_path / "matches.parquet"))
    check_mapped_alike([here, deeper, merged])
    (run_copy / "scores/run.json").unlink()
    check_mapped_alike([run_copy / "scores/scores.parquet", here])
