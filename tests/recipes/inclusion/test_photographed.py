"""Objects of which a region has too few photographs are asked of no model."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.tables import write_table
from culturekit.recipes.inclusion.prompts import photographed_stage
from tests.conftest import stage_here

# Of hats in Europe there are none; of the photographs of bags in Africa two are copies of one
COUNTS = {("bag", "Africa"): 5, ("bag", "Europe"): 3, ("dog", "Africa"): 4, ("dog", "Europe"): 2, ("hat", "Africa"): 9}


def prompt(name: str, region: str | None) -> dict[str, object]:
    text = f"{name} in {region}" if region else name
    return {"prompt_id": text, "text": text, "benchmark": "inclusion", "kind": "regions", "concept": name,
            "group": region, "language": "en", "template_id": "t"}  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path) -> dict[str, Path]:
    regional = [prompt(name, region) for name in ("bag", "dog", "hat") for region in ("Africa", "Europe")]
    for folder, rows in (("regional", regional), ("plain", [prompt(name, None) for name in ("bag", "dog", "hat")])):
        (tmp_path / folder).mkdir()
        write_table(tmp_path / folder, PROMPTS, pl.DataFrame(rows, schema=PROMPTS.schema))
    images = [
        {"image_id": f"{name}-{region}-{number}", "path": "p", "prompt_id": f"{name} in {region}", "model": "real",
         "repeat": 0, "slot": number, "rewriter": "off", "provider_params": "{}", "status": "ok",
         "sha256": f"{name} {region} {max(number, 1) if (name, region) == ('bag', 'Africa') else number}",
         "width": 1, "height": 1}
        for (name, region), count in COUNTS.items() for number in range(count)
    ]  # fmt: skip
    (tmp_path / "real").mkdir()
    write_table(tmp_path / "real", IMAGES, pl.DataFrame(images, schema=IMAGES.schema))
    return {"regional": tmp_path / "regional/prompts.parquet", "plain": tmp_path / "plain/prompts.parquet",
            "real": tmp_path / "real/images.parquet"}  # fmt: skip


def kept(tables: dict[str, Path], out: Path, listed: str, *, least: int) -> list[str]:
    stage = photographed_stage(tables[listed], tables["regional"], tables["real"], least=least)
    stage_here(stage, out)
    return pl.read_parquet(out / "prompts.parquet")["text"].to_list()


def test_every_region_has_to_have_so_many_and_copies_do_not_count(tables: dict[str, Path], tmp_path: Path) -> None:
    assert kept(tables, tmp_path / "two", "plain", least=2) == ["bag", "dog"]
    assert kept(tables, tmp_path / "three", "regional", least=3) == ["bag in Africa", "bag in Europe"]
    fell = pl.read_parquet(tmp_path / "three/drops.parquet").sort("key")
    assert fell.select("key", "reason").rows() == [
        ("dog in Europe", "2 photographs in Europe, fewer than 3"),
        ("hat in Europe", "0 photographs in Europe, fewer than 3"),
    ]
    with pytest.raises(UsageError, match="at least 4 in every region, found 3 of bag in Africa"):
        kept(tables, tmp_path / "four", "plain", least=4)
