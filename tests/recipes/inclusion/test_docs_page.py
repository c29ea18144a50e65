"""The page about geographic inclusion, typed."""

import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import ANNOTATIONS
from culturekit.core.tables import write_table
from tests.command_line import culturekit
from tests.recipes.inclusion.small_world import small_run
from tests.typed_pages import ROOT, typed

PAGE = ROOT / "docs/inclusion.md"
# What the page calls what a run has
PLACES = {
    "real-vectors": "vectors-content-real", "vectors": "vectors-content-local", "real": "real",
    "plain-vectors": "vectors-content-plain-local", "images": "images-local", "plain": "plain-images-local",
    "task1.parquet": "tables-task1/task1.parquet", "task2_geode.csv": "tables-task2/task2.csv",
}  # fmt: skip

SMALLER = {"triplets": ["--near", "1", "--far", "0"]}


def answers_written() -> pl.DataFrame:
    """Give what three people wrote in a survey."""
    rows: list[dict[str, object]] = [
        {"item_id": "survey", "annotator": name, "annotator_region": "Africa", "scheme": "inclusion_survey",
         "criterion": "appealing_why", "text": f"{name} liked the market", "flags": []}
        for name in ("a", "b", "c")
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


@pytest.mark.slow
def test_each_command_works_alone_as_the_page_says(tmp_path: Path) -> None:
    run = small_run(tmp_path / "made")
    for name, place in PLACES.items():
        (tmp_path / name).symlink_to(run / place)
    only = pl.col("source").is_in(["local", "real"]) & pl.col("reference_source").is_in(["local", "real"])
    said = pl.read_parquet(tmp_path / "task1.parquet").filter(only, pl.col("triplet_id").str.starts_with("local/"))
    (tmp_path / "task1.parquet").unlink()
    said.write_parquet(tmp_path / "task1.parquet")
    _, _, *alone = typed(PAGE)
    (tmp_path / "rated").mkdir()
    write_table(tmp_path / "rated", ANNOTATIONS, answers_written())
    for words in alone:
        if words[:2] == ["annotate", "coded"]:
            sheet = pl.read_csv(tmp_path / "coding/coding_sheet.csv", infer_schema=False)
            for coder, marks in (("ana", ["1", "", ""]), ("bo", ["1", "", ""]), ("cy", ["1", "", "1"])):
                read = sheet.with_columns(pl.lit(coder).alias("coder"), pl.Series(sheet.columns[-1], marks))
                read.write_csv(tmp_path / f"{coder}.csv")
        answer = culturekit(*words, *SMALLER.get(words[0], ()), cwd=tmp_path)
        assert answer.returncode == 0, (words, answer.stderr)
    assert pl.read_parquet(tmp_path / "prompts/prompts.parquet").height == 6 + 18
    assert set(pl.read_parquet(tmp_path / "triplets/triplets.parquet")["combo"]) == set("ABCDE")
    assert "closer_choice_rate" in set(pl.read_parquet(tmp_path / "choices/scores.parquet")["metric"])
    known = json.loads((tmp_path / "choices/manifest.json").read_text(encoding="utf-8"))["inputs"]
    assert {f"features-dinov2{part}-values" for part in ("", "-1", "-2")} <= set(known), "a changed folder is seen"
