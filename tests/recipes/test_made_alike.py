import json
from pathlib import Path

import polars as pl

from culturekit.core.inputs import Numbered
from culturekit.core.schemas import IMAGES, VALUES
from culturekit.core.tables import write_table
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.inputs import ValueTables, traits_by_model
from tests.conftest import stage_here

WIDTHS = {"a": 8, "b": 8, "c": 16}


def images_of(folder: Path, model: str) -> Path:
    row = {
        "image_id": model, "path": "x", "model": model, "rewriter": "off", "provider_params": "{}", "sha256": "",
        "width": WIDTHS[model], "height": 8, "status": "ok", "seed_honoured": True,
    }  # fmt: skip
    folder.mkdir()
    return write_table(folder, IMAGES, pl.DataFrame([row], schema=IMAGES.schema))


def values_of(folder: Path) -> Path:
    rows = [
        {"metric": "vs", "model": model, "benchmark": "cube", "params": '{"kernel":"country"}', "item": f"{prompt}-{n}",
         "prompt_id": prompt, "value": 0.1 * n + 0.01 * width}
        for model, width in WIDTHS.items() for prompt in ("p1", "p2", "p3") for n in range(3)
    ]  # fmt: skip
    folder.mkdir()
    return write_table(folder, VALUES, pl.DataFrame(rows, schema=VALUES.schema))


def test_a_difference_says_what_else_differs_and_the_manifest_says_it_in_words(tmp_path: Path) -> None:
    values, images = values_of(tmp_path / "values"), [images_of(tmp_path / name, name) for name in WIDTHS]
    options = ComparisonOptions(target="these", resamples=99)
    apart = {}
    for name, tables in (("told", images), ("plain", [])):
        stage = compare.stage(ValueTables([values]), Numbered(tables), options=options)
        run = stage_here(stage, tmp_path / name)
        params = pl.read_parquet(tmp_path / name / "scores.parquet")["params"].to_list()
        apart[name] = {(about["a"], about["b"]): about.get("differ_in") for about in map(json.loads, params)}
        assert ("not_comparable" in run.manifest.notes) == bool(tables)
    assert apart["told"] == {("a", "b"): None, ("a", "c"): ["size"], ("b", "c"): ["size"]}
    assert set(apart["plain"].values()) == {None}


def test_tables_of_one_model_count_together(tmp_path: Path) -> None:
    one = pl.read_parquet(images_of(tmp_path / "a", "a"))
    traits = traits_by_model([one, one.with_columns(width=pl.lit(32, pl.UInt32)), one.head(0)])
    assert {name: dict(each.sizes) for name, each in traits.items()} == {"a": {"32x8": 1, "8x8": 1}}
