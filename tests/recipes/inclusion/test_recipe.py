"""The recipe `inclusion`: what it wires, a small run, and what its page of the documentation says."""

import json
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import ConfigError
from culturekit.core.schemas import ANNOTATIONS
from culturekit.core.tables import write_table
from culturekit.verify.verify_run import verify_run
from tests.command_line import culturekit
from tests.metrics.inclusion.task_worlds import line, write_csv
from tests.recipes.inclusion import small_world
from tests.recipes.inclusion.small_world import small_run
from tests.recipes.shipped_recipes import shared_small
from tests.typed_pages import ROOT, typed


def refused(*settings: str) -> str:
    with pytest.raises(ConfigError) as error:
        load_any_recipe(find_recipe("inclusion"), settings)
    return str(error.value)


def test_the_shipped_recipe_loads_and_knows_the_truth() -> None:
    recipe = load_any_recipe(find_recipe("inclusion"))
    assert recipe.prompts == 18  # type: ignore[attr-defined]
    assert recipe.truthful  # type: ignore[attr-defined]


def test_published_annotations_are_looked_at_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "task2.csv"
    path.write_text("img_path,object\na.jpg,bag\n", encoding="utf-8")
    assert "lacks the column region, annotator_id" in refused(f"published={path}")
    write_csv(path, [line("a.jpg", "?", 0, "Africa", "{'match': 'nm'}")])
    assert "no row can be read; found malformed: region is no name of a region" in refused(f"published={path}")
    write_csv(path, [line("a.jpg", "Africa", 0, "Africa", "{'match': 'nm'}")])
    load_any_recipe(find_recipe("inclusion"), [f"published={path}"])


@pytest.fixture(scope="module")
def finished(shared_folder: Path) -> Path:
    return shared_small("inclusion", shared_folder)


@pytest.mark.slow
def test_each_score_tells_a_realistic_model_without_a_region_from_a_regional_one_that_is_crude(finished: Path) -> None:
    def value(table: str, metric: str, model: str) -> float:
        scores = pl.read_parquet(finished / table / "scores.parquet")
        own = scores.filter(pl.col("group").is_null(), pl.col("concept").is_null(), metric=metric, model=model)
        return float(own["value"].item())

    for metric in ("prdc_precision", "prdc_coverage"):
        by_texture, by_content = (
            value(f"realism-by-{extractor}", metric, "glossy") - value(f"realism-by-{extractor}", metric, "rough")
            for extractor in ("texture", "content")
        )
        assert by_texture > 0, "flaws are what an extractor of textures sees"
        assert by_texture > by_content
    assert value("regions-rough", "region_recognised", "rough") > value("regions-glossy", "region_recognised", "glossy")
    assert value("truth", "region_recognised", "rough") > value("truth", "region_recognised", "glossy") + 0.1
    assert value("truth", "object_presence", "rough") < value("truth", "object_presence", "glossy") - 0.1


@pytest.mark.slow
def test_rates_are_those_of_a_loop_over_the_raw_rows(finished: Path) -> None:
    rows = pl.read_parquet(finished / "tables-task2/task2.parquet").to_dicts()
    seen: dict[tuple[str, str, str], list[bool]] = {}
    for row in rows:
        if row["source"] == "real":
            seen.setdefault((row["annotator_id"], row["object"], row["region"]), []).append(row["shown"])
    bad = {cell for cell, found in seen.items() if sum(found) < 0.9 * len(found)}
    codes = {"Africa": "af", "Europe": "eu", "Southeast Asia": "sea"}
    answers: dict[tuple[str, str, str, str], list[bool]] = {}
    for row in rows:
        if row["region"] is None or (row["annotator_id"], row["object"], row["region"]) in bad:
            continue
        side = "in" if row["annotator_loc"] == row["region"] else "out"
        for target in ("object", "background"):
            key = (row["source"], row["region"], side, target)
            answers.setdefault(key, []).append(codes[row["region"]] in row[f"{target}_regions"])
    scores = pl.read_parquet(finished / "scores-task2/scores.parquet").filter(
        pl.col("concept").is_null(), pl.col("group").is_not_null(), metric="in_region_rate"
    )
    said = scores.with_columns(pl.col("params").str.json_path_match(f"$.{name}").alias(name)
                               for name in ("side", "target"))  # fmt: skip
    stated = {(row["model"], row["group"], row["side"], row["target"]): row["value"] for row in said.to_dicts()}
    assert stated == pytest.approx({key: sum(found) / len(found) for key, found in answers.items()})
    assert len(stated) == 5 * 3 * 2 * 2


@pytest.mark.slow
def test_a_run_whose_people_do_not_read_along_ends_and_is_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careless = small_world.RECIPE.replace("careless: 0.05", "careless: 1").replace("near:", "least: 1.0, near:")
    monkeypatch.setattr(small_world, "RECIPE", careless)
    run = small_world.small_run(tmp_path)
    for folder in ("judged-regions", "judged-objects"):
        assert pl.read_parquet(run / folder / "scores.parquet").is_empty()
    assert not pl.read_parquet(run / "regions-local" / "scores.parquet").is_empty()
    assert verify_run(run).findings == ()


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
