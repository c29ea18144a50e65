"""What the section on realism and variety says: ranks, disagreements, numbers of any size."""

import math
from pathlib import Path

import polars as pl
import pytest

from culturekit.core import schemas
from culturekit.core.inputs import Files
from culturekit.report.realism import Cell, VarietyColumn, disagreements, ranks, significant, within_in, words
from culturekit.report.run_folders import RunFolders
from culturekit.scores.within import WithinOptions, within
from tests.conftest import stage_here
from tests.scores.test_qvs import PROMPTS, matches


@pytest.mark.parametrize(("value", "text"), [
    (0.0, "0.000"), (1.2345, "1.234"), (-0.5, "−0.500"), (12.345, "12.35"), (207.84, "207.8"), (76934.2, "76934"),
    (-2853.1, "−2853"), (0.00012, "0.00012"), (9.093e-05, "0.000091"), (math.nan, "–"), (None, "–"),
])  # fmt: skip
def test_numbers_of_any_size_are_short(value: float | None, text: str) -> None:
    assert significant(value) == text


def test_equal_values_share_a_rank() -> None:
    assert ranks({"a": 0.5, "b": 0.7, "c": 0.7}, descending=True) == {"a": 3, "b": 1, "c": 1}
    assert ranks({"a": 0.5, "b": 0.7, "c": 0.7}, descending=False) == {"a": 1, "b": 2, "c": 2}


def column(title: str, order: dict[str, int]) -> VarietyColumn:
    return VarietyColumn(title, "", "", {model: Cell("", "", 1, 1) for model in order}, order)


def test_the_model_that_only_looks_varied_is_named() -> None:
    shown = column("VS/8", {"wide": 1, "noise": 2, "narrow": 3})
    looks = column("mean LPIPS", {"wide": 2, "noise": 1, "narrow": 3})
    assert list(disagreements(shown, [looks])) == ["By mean LPIPS noise is number 1 of 3 in variety, by VS/8 number 2."]
    assert list(disagreements(shown, [shown])) == ["By VS/8 the models rank as by VS/8."]
    assert list(disagreements(shown, [column("x", {"wide": 1})])) == []


def test_an_extractor_without_weights_says_so() -> None:
    assert words({"name": "embedded", "weights": "none"}) == "embedded, no weights"
    assert words({"name": "inception features", "weights": "ab" * 32}).endswith("weights abababababab")


@pytest.mark.parametrize(("main", "other"), [(1.0, math.inf), (math.inf, 1.0)])
def test_diversity_within_countries_is_that_of_the_main_order(main: float, other: float, tmp_path: Path) -> None:
    matches({("a", "in-1"): ["xxxy", "xyyy"], ("a", "br-1"): ["xxyz"]}).write_parquet(tmp_path / "matches.parquet")
    empty = {name: column.dtype for name, column in schemas.PROMPTS.columns.items() if name not in PROMPTS.columns}
    PROMPTS.with_columns(pl.lit("x").cast(dtype).alias(name) for name, dtype in empty.items()).write_parquet(
        tmp_path / "prompts.parquet"
    )
    given = Files([tmp_path / "matches.parquet"]), tmp_path / "prompts.parquet"
    shown = []
    for name, orders in {"alone": (), "both": (other,)}.items():
        stage = within.stage(*given, options=WithinOptions(q=main, other_orders=orders, size=4))
        stage_here(stage, tmp_path / name / "within")
        found = within_in(RunFolders(tmp_path / name, ["a"], ["within"]), ["a"])
        assert found is not None
        shown.append([found.means["a"].text, *(row[1]["a"][0].text for row in found.rows)])
    assert shown[0] == shown[1]
