"""What must hold of every finished run, shown on a small one."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.config.kinds import wired
from culturekit.core.digests import digest_file, read_manifest
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.run import Run
from culturekit.core.schemas import MATCHES, TABLES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.planning import plan_recipe
from culturekit.recipes.run_recipe import run_recipe
from tests.conftest import SMALL, HeardProgress


def content(root: Path) -> dict[str, str]:
    """Hash every file of a run but the run records."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "run.json"]
    return {path.relative_to(root).as_posix(): digest_file(path) for path in files}


def run(recipe: Recipe, root: Path, *, workers: int = 2, until: str | None = None) -> dict[str, str]:
    with LocalEngine(workers) as engine:
        runs = run_recipe(recipe, root, engine=engine, progress=HeardProgress(), until=until)
    return {stage.name: stage.state for stage in runs}


def test_every_table_written_conforms_to_its_declaration(small_run: Path) -> None:
    tables = sorted(small_run.rglob("*.parquet"))
    assert len(tables) > 20
    for path in tables:
        frame = pl.read_parquet(path)
        table = TABLES[path.stem]
        assert table.problems(frame) == [], path
        assert frame.equals(frame.sort(table.key, maintain_order=True)), path


def test_every_stage_folder_lists_exactly_what_is_in_it(small_run: Path) -> None:
    for manifest_path in sorted(small_run.glob("*/manifest.json")):
        manifest = json.loads(manifest_path.read_bytes())
        found = {path.name for path in manifest_path.parent.iterdir()} - {"manifest.json", "run.json"}
        assert found == set(manifest["outputs"]), manifest_path
        for name, record in manifest["outputs"].items():
            if "files" not in record:
                assert digest_file(manifest_path.parent / name) == record["sha256"]


def test_nothing_but_stages_and_the_recipe_is_left(small_run: Path) -> None:
    assert [path.name for path in small_run.iterdir() if path.name.startswith(".")] == []
    assert [path.name for path in small_run.iterdir() if path.is_file()] == ["recipe.json"]


@pytest.mark.endtoend
def test_one_worker_gives_the_same_bytes_as_two(small_recipe: Recipe, small_run: Path, tmp_path: Path) -> None:
    run(small_recipe, tmp_path / "alone", workers=1)
    assert content(tmp_path / "alone") == content(small_run)


@pytest.mark.endtoend
def test_stages_killed_in_their_last_moment_end_in_the_same_bytes(
    small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def done_twice(recipe: Recipe, workdir: Path) -> Run:
        found = wired(recipe, workdir)
        steps = [replace(step, stage=replace(step.stage, run=twice(step.stage.run))) for step in found.steps]
        return replace(found, steps=steps)

    more = ["release=[parquet,jsonl,csv,public]", "card=data_cards/cspace", "completion.rounds=2"]
    recipe = load_recipe(SMALL, more)
    run(recipe, tmp_path / "once", until="prompts")
    monkeypatch.setattr("culturekit.recipes.run_recipe.wired", done_twice)
    run(recipe, tmp_path / "twice", until="prompts")
    assert content(tmp_path / "twice") == content(tmp_path / "once")
    run(load_recipe(SMALL), tmp_path / "whole")
    assert content(tmp_path / "whole") == content(small_run)


def twice(run: Callable[[Work], Outcome]) -> Callable[[Work], Outcome]:
    """Leave everything behind that a stage writes, then have it done again."""

    def run_again(work: Work) -> Outcome:
        run(work)
        return run(work)

    return run_again


def test_a_second_run_reuses_everything(small_recipe: Recipe, run_copy: Path) -> None:
    before = content(run_copy)
    assert set(run(small_recipe, run_copy).values()) == {"reused"}
    assert content(run_copy) == before


@pytest.mark.endtoend
def test_a_change_redoes_what_depends_on_it_and_nothing_else(run_copy: Path) -> None:
    changed = load_recipe(SMALL, ["models.1.backend=simulated?collapse=1&modes=3"])
    states = run(changed, run_copy)
    redone = {name for name, state in states.items() if state != "reused"}
    own = {f"{kind}-narrow" for kind in ("images", "matches", "quality", "truth")}
    assert redone == {*own, "diagnosis", "shown", "scores", "comparison", "report"}


def test_a_removed_stage_is_made_again_and_gives_the_same_bytes(small_recipe: Recipe, run_copy: Path) -> None:
    before = content(run_copy)
    shutil.rmtree(run_copy / "index")
    states = run(small_recipe, run_copy)
    assert {name for name, state in states.items() if state != "reused"} == {"index"}
    assert content(run_copy) == before


def test_a_file_in_the_place_of_a_run_is_refused(small_recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="run: a run needs a folder; found a file of that name"):
        plan_recipe(small_recipe, tmp_path / "run")


def test_a_plan_counts_the_images_that_the_run_makes(small_recipe: Recipe, small_run: Path, tmp_path: Path) -> None:
    planned = {step.name: step.units for step in plan_recipe(small_recipe, tmp_path) if step.unit == "images"}
    made = {name: read_manifest(small_run / name) for name, units in planned.items() if units is not None}
    counted = {name: manifest.counts.get("images") for name, manifest in made.items() if manifest is not None}
    assert {"images-broad", "images-floor-culture-free", "matches-floor-shuffled"} <= set(counted)
    assert {name: count for name, count in counted.items() if count is not None} == {
        name: planned[name] for name, count in counted.items() if count is not None
    }
    once = {step.name: step.units for step in plan_recipe(load_recipe(SMALL, ["diagnosis.floor_repeats=1"]), tmp_path)}
    assert once["images-broad"] == (once["images-floor-culture-free"] or 0) * small_recipe.images.repeats


def test_a_plan_counts_the_images_that_are_there_already(small_recipe: Recipe, run_copy: Path) -> None:
    for name in ("matches-broad", "index"):
        shutil.rmtree(run_copy / name)
    planned = {step.name: step for step in plan_recipe(small_recipe, run_copy)}
    assert planned["images-broad"].state == "done"
    assert planned["matches-broad"].units == manifest_of(run_copy / "images-broad").counts["images"]
    assert planned["index"].units == manifest_of(run_copy / "references").counts["images"]


def test_until_stops_after_a_stage_or_a_family_of_stages(small_recipe: Recipe, tmp_path: Path) -> None:
    assert list(run(small_recipe, tmp_path / "r", until="cspace")) == ["graph", "candidates", "filter", "cspace"]
    with pytest.raises(UsageError, match="Did you mean 'scores'"):
        run(small_recipe, tmp_path / "r", until="score")


def test_the_mapping_finds_the_truth_of_simulated_images(small_run: Path) -> None:
    for model in ("broad", "narrow"):
        mapped = read_table(small_run / f"matches-{model}/matches.parquet", MATCHES).filter(pl.col("rank") == 1)
        truth = read_table(small_run / f"truth-{model}/matches.parquet", MATCHES)
        both = mapped.join(truth, on="image_id")
        assert both.height == 24
        assert both.filter(pl.col("artifact_id") == pl.col("artifact_id_right")).height >= 23


def test_the_scores_tell_the_models_apart(small_run: Path) -> None:
    scores = pl.read_parquet(small_run / "scores/scores.parquet").with_columns(
        kernel=pl.col("params").str.json_path_match("$.kernel"), labels=pl.col("params").str.json_path_match("$.labels")
    )
    country = scores.filter(pl.col("metric") == "vs", pl.col("kernel") == "country")
    values = {(row["model"], row["labels"]): row["value"] for row in country.iter_rows(named=True)}
    assert values["narrow", "truth"] == pytest.approx(1 / 8)
    assert values["empty", "truth"] == pytest.approx(1 / 8)
    assert values["empty", "mapped"] > values["narrow", "mapped"] + 0.2
    assert values["broad", "truth"] > 0.3
