"""Runs from a dump to a report: small and shipped ones, and models of several kinds or that miss prompts."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.config.kinds import wired
from culturekit.core.digests import digest_file, read_manifest
from culturekit.core.engines import LocalEngine
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, manifest_of
from culturekit.core.run import Run, run_stage
from culturekit.core.schemas import MATCHES, TABLES
from culturekit.core.stage import Outcome, PlannedStage, Work
from culturekit.core.tables import read_table, write_table
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.planning import pilot_models, plan_recipe
from culturekit.recipes.run_recipe import report_of, run_recipe
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.inputs import ValueTables
from culturekit.scores.qvs import qvs
from culturekit.verify.verify_run import verify_run
from tests.conftest import SMALL, HeardProgress, HereEngine
from tests.generation.diffusion.tiny_pipelines import tiny
from tests.generation.services.paid_images import KEY, google, openai
from tests.llm.server.running import RunningServer, server_process
from tests.llm.server.script import Fault, Pictures, Rule, Script, When
from tests.recipes.shipped_recipes import SMALL as SHIPPED
from tests.recipes.shipped_recipes import run_small, shared_small
from tests.scores.test_routes import NEAREST


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


@pytest.mark.endtoend
def test_a_change_redoes_what_depends_on_it_and_nothing_else(run_copy: Path) -> None:
    changed = load_recipe(SMALL, ["models.1.backend=simulated?collapse=1&modes=3"])
    states = run(changed, run_copy)
    redone = {name for name, state in states.items() if state != "reused"}
    own = {f"{kind}-narrow" for kind in ("images", "matches", "quality", "truth")}
    assert redone == {*own, "diagnosis", "shown", "scores", "comparison", "report"}


def test_a_removed_stage_is_made_again_and_gives_the_same_bytes(small_recipe: Recipe, run_copy: Path) -> None:
    before = content(run_copy)
    assert set(run(small_recipe, run_copy).values()) == {"reused"}
    assert content(run_copy) == before
    shutil.rmtree(run_copy / "index")
    states = run(small_recipe, run_copy)
    assert {name for name, state in states.items() if state != "reused"} == {"index"}
    assert content(run_copy) == before


def test_a_plan_counts_the_images_that_the_run_makes_or_has(
    small_recipe: Recipe, small_run: Path, run_copy: Path, tmp_path: Path
) -> None:
    planned = {step.name: step.units for step in plan_recipe(small_recipe, tmp_path) if step.unit == "images"}
    made = {name: read_manifest(small_run / name) for name, units in planned.items() if units is not None}
    counted = {name: manifest.counts.get("images") for name, manifest in made.items() if manifest is not None}
    assert {"images-broad", "images-floor-culture-free", "matches-floor-shuffled"} <= set(counted)
    assert {name: count for name, count in counted.items() if count is not None} == {
        name: planned[name] for name, count in counted.items() if count is not None
    }
    once = {step.name: step.units for step in plan_recipe(load_recipe(SMALL, ["diagnosis.floor_repeats=1"]), tmp_path)}
    assert once["images-broad"] == (once["images-floor-culture-free"] or 0) * small_recipe.images.repeats
    for name in ("matches-broad", "index"):
        shutil.rmtree(run_copy / name)
    there = {step.name: step for step in plan_recipe(small_recipe, run_copy)}
    assert there["images-broad"].state == "done"
    assert there["matches-broad"].units == manifest_of(run_copy / "images-broad").counts["images"]
    assert there["index"].units == manifest_of(run_copy / "references").counts["images"]
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(UsageError, match="file: a run needs a folder; found a file of that name"):
        plan_recipe(small_recipe, tmp_path / "file")


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


# Of each the kind of the report, the anchors of its sections, and words that stand on the page
PAGES = {
    "c3": (
        "caption-report",
        "models captions difficulty strategies pearson criteria histogram spread asked expansion exports",
        ("CC0-1.0",),
    ),
    "cultivate": (
        "scene-report", "headline models people dimensions categories matrix descriptors accuracy",
        ("human – human", "ALIGN + HAL", "CuRe, simulated", "VQAScore, ", "tau at quantile 0.75",
         "proposer simulated-first", "descriptors of the prompt", "of the best 3",
         "simulated model knows a made-up world"),
    ),
    "inclusion": (
        "inclusion-report", "corrected realism extractors names seen agreement compared",
        ("Extractors put models in opposite orders: in precision",),
    ),
}  # fmt: skip
# Of each recipe and folder of scores, where they stand there, which model comes first, and which last
ORDERS = [
    ("c3", "judged-vqascore", {"labels": "judged"}, "showy", None),
    ("c3", "judged-vqascore", {"labels": "corrected"}, "steady", None),
    ("c3", "truth", {"metric": "vqascore"}, "steady", None),
    ("cultivate", "ahead", {"metric": "align", "country": None}, "showy", None),
    ("cultivate", "ahead-truth", {"metric": "align", "country": None}, None, "showy"),
    ("inclusion", "judged-regions", {"metric": "region_recognised", "labels": "judged"}, "postcard", None),
    ("inclusion", "judged-regions", {"labels": "corrected", "pool": "in-region"}, "local", None),
    ("inclusion", "judged-regions", {"labels": "corrected", "pool": "out-of-region"}, "postcard", None),
    ("inclusion", "truth", {"metric": "region_recognised"}, "local", None),
]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", PAGES)
def test_a_finished_run_does_nothing_again(recipe: str, shared_folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(shared_small(recipe, shared_folder), tmp_path / "again"))
    assert {run.state for run in run_small(recipe, SHIPPED[recipe], folder)[1]} == {"reused"}


@pytest.mark.slow
@pytest.mark.parametrize("recipe", PAGES)
def test_the_report_has_a_section_for_every_table_of_the_paper(recipe: str, shared_folder: Path) -> None:
    finished, (kind, anchors, words) = shared_small(recipe, shared_folder), PAGES[recipe]
    page = (finished / "report/report.html").read_text(encoding="utf-8")
    for text in (*(f'id="{anchor}"' for anchor in anchors.split()), *words):
        assert text in page
    assert report_of(finished).kind == kind


@pytest.mark.slow
@pytest.mark.parametrize(("recipe", "stage", "where", "first", "last"), ORDERS)
def test_the_judge_ranks_too_high_what_people_and_the_truth_do_not(
    recipe: str, stage: str, where: dict[str, str | None], first: str | None, last: str | None, shared_folder: Path
) -> None:
    table = pl.read_parquet(shared_small(recipe, shared_folder) / stage / "scores.parquet")
    scores = table.filter(pl.col("group").is_null(), pl.col("model") != "real")
    for name, value in where.items():
        column = pl.col(name) if name in table.columns else pl.col("params").str.json_path_match(f"$.{name}")
        scores = scores.filter(column.eq_missing(pl.lit(value, pl.String)))
    models = scores.sort("value")["model"].to_list()
    assert len(models) == len(set(models)) > 2
    assert models[-1] == first or models[0] == last


OPTIONS = QvsOptions(kernels=((0.0, 1.0, 0.0),))


def test_it_has_a_score_over_all_prompts_and_is_compared_on_those_it_has(tmp_path: Path) -> None:
    paths = {}
    for model, images in (("a", NEAREST.filter(model="a")), ("b", NEAREST.filter(model="b", concept="art"))):
        folder = tmp_path / f"matches-{model}"
        folder.mkdir()
        paths[f"matches-{model}"] = write_table(folder, MATCHES, images.sort(MATCHES.key))
    engine, progress = HereEngine(), HeardProgress()
    run_stage(qvs.stage(Files(paths), options=OPTIONS), tmp_path / "scores", engine=engine, progress=progress)
    scores = pl.read_parquet(tmp_path / "scores/scores.parquet").filter(metric="vs")
    whole = scores.filter(pl.col("concept").is_null())
    assert sorted(whole["model"]) == ["a", "b"]
    assert dict(whole.select("model", "n").iter_rows()) == {"a": 64, "b": 32}
    values = ValueTables([tmp_path / "scores/values.parquet"])
    compared = compare.stage(values, options=ComparisonOptions(target="these"))
    run_stage(compared, tmp_path / "comparison", engine=engine, progress=progress)
    over_all = pl.read_parquet(tmp_path / "comparison/scores.parquet").filter(pl.col("concept").is_null())
    params = json.loads(over_all["params"][0])
    assert (params["common"], params["left_out"]) == (1, 1)
    answer = verify_run(tmp_path / "scores")
    assert [str(finding) for finding in answer.findings] == []
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}


CUBE = Path(__file__).parents[2] / "recipes/cube.yaml"
SCRIPT = Script(
    rules=(Rule(Fault("moderation"), When(providers=("openai",)), times=3),), pictures=Pictures(revised=True)
)
SMALLER = ["audit=null", "concepts=[art]", "references.per_artifact=2", "images.repeats=3", "mapping.max_error=0.2"]


@dataclass
class Finished:
    """A run of all of them, with its plans: before anything, after the pilot, and at the end."""

    folder: Path
    recipe: Recipe
    before: dict[str, PlannedStage]
    piloted: dict[str, PlannedStage]
    calls_before_the_run: int
    server: RunningServer


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    for package in ("torch", "diffusers", "transformers", "openai", "google.genai"):
        pytest.importorskip(package)
    root = tmp_path_factory.mktemp("kinds")
    with pytest.MonkeyPatch.context() as patch, server_process(SCRIPT) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.setenv("GEMINI_API_KEY", KEY)
        models = [
            {"name": "known-bias", "backend": "simulated?temperature=2"},
            {"name": "tiny", "backend": f"diffusers:{tiny(root)}?steps=1&batch=8&device=cpu"},
            {"name": "gpt", "backend": openai(server), "buying": {"budget": 2}},
            {"name": "gemini", "backend": google(server), "buying": {"budget": 5}},
        ]
        recipe = load_recipe(CUBE, [*SMALLER, "diagnosis.floor_repeats=1", f"models={json.dumps(models)}"])
        folder = root / "run"
        with HereEngine() as engine:
            hands: dict[str, Any] = {"engine": engine, "progress": HeardProgress()}
            run_recipe(recipe, folder, until="prompts", **hands)
            before = planned(recipe, folder)
            assert pilot_models(recipe, folder, **hands) == ["images-tiny"]
            piloted, calls = planned(recipe, folder), len(server.records())
            run_recipe(recipe, folder, **hands)
        yield Finished(folder, recipe, before, piloted, calls, server)


def planned(recipe: Recipe, folder: Path) -> dict[str, PlannedStage]:
    return {step.name: step for step in plan_recipe(recipe, folder)}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_plan_says_dollars_at_once_and_minutes_after_a_pilot_and_that_is_what_is_sold(finished: Finished) -> None:
    assert finished.calls_before_the_run == 0, "a plan and a pilot send nothing"
    for name in ("images-gpt", "images-gemini"):
        step = finished.before[name]
        assert step.requests == step.units == 24
        assert step.dollars is not None
        assert step.dollars > 0.1
    assert finished.before["images-tiny"].seconds is None, "only a pilot can tell"
    assert (finished.piloted["images-tiny"].seconds or 0) > 0
    assert finished.piloted["images-gpt"] == finished.before["images-gpt"]
    assert {step.state for step in planned(finished.recipe, finished.folder).values()} == {"done"}
    bought = [record for record in finished.server.records() if record.good]
    made = sum(manifest_of(finished.folder / f"images-{model}").counts["ok"] for model in ("gpt", "gemini"))
    assert len(bought) == made == 45, "three were filtered, none bought twice"
    own = [record for record in bought if record.provider == "openai"]
    dollars = (5 * sum(one.input_tokens for one in own) + 40 * sum(one.output_tokens for one in own)) / 1e6
    assert dollars * 24 / 21 == pytest.approx(finished.before["images-gpt"].dollars, rel=0.05)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_one_report_compares_them_says_what_is_not_comparable_and_is_verified(finished: Finished) -> None:
    notes = [read_manifest(finished.folder / name) for name in ("scores", "comparison")]
    told = [manifest.notes["not_comparable"] for manifest in notes if manifest is not None]
    assert told[0] == told[1]
    rewriter, seeds, sizes = told[0]
    assert "gemini rewriter unknown; gpt rewriter on; known-bias rewriter off; tiny rewriter off" in rewriter
    assert "gpt honoured: no; known-bias honoured: yes" in seeds
    assert "gemini 16x16; gpt 16x16; known-bias 64x64; tiny 64x64" in sizes
    page = (finished.folder / "report/report.html").read_text(encoding="utf-8")
    for sentence in (rewriter, seeds, sizes):
        assert sentence.replace("'", "&#39;") in page
    assert "What is not comparable" in page
    assert page.count("not alike in rewriter, seeds honoured, size") > 0
    assert "3 filtered" in page
    scores = pl.read_parquet(finished.folder / "comparison/scores.parquet")
    abouts = list(map(json.loads, scores["params"].to_list()))
    apart = {(about["a"], about["b"]): about.get("differ_in") for about in abouts}
    assert apart["gpt", "known-bias"] == ["rewriter", "seeds honoured", "size"]
    assert apart["gemini", "gpt"] == ["rewriter"]
    assert apart["known-bias", "tiny"] is None
    command = [sys.executable, "-m", "culturekit", "verify", str(finished.folder), "--json"]
    environment = {**os.environ, "PYTHONPATH": str(CUBE.parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
