"""What a changed recipe makes again, what was made otherwise, and whatever folders are called."""

import gzip
import json
import logging
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from culturekit.builders import asking
from culturekit.builders.prompt_templates import TEMPLATES
from culturekit.builders.prompting import prompts
from culturekit.core.digests import JOURNAL
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.package_data import shipped
from culturekit.core.run import StageRun, run_stage
from culturekit.core.schemas import IMAGES, VALUES
from culturekit.core.stage import Outcome, Stage, Work, input_records, key_of
from culturekit.core.tables import write_table
from culturekit.index.folder import build
from culturekit.index.folder.build import IndexFiles, IndexOptions
from culturekit.kg.concepts import concept_path
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.planning import plan_recipe
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.inputs import ValueTables, traits_by_model
from tests.command_line import culturekit
from tests.conftest import SMALL, HeardProgress, HereEngine, recipe_here, stage_here

SPACE = ("graph", "candidates", "filter", "cspace", "prompts")


def recipe_of(folder: Path, **changes: object) -> Recipe:
    said = {"dump": str(folder / "dump.json.gz"), "concepts": str(folder / "art.yaml"), **changes}
    settings = [f"dump=[{said.pop('dump')}]", f"concepts=[{said.pop('concepts')}]"]
    return load_recipe(SMALL, [*settings, *(f"{key}={value}" for key, value in said.items())])


def done_again(recipe: Recipe, folder: Path) -> set[str]:
    runs = recipe_here(recipe, folder / "run", until="prompts")
    return {run.name for run in runs if run.state != "reused"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    shutil.copy(shipped("kg/sample/wikidata-sample.json.gz"), folder / "dump.json.gz")
    shutil.copy(concept_path("art"), folder / "art.yaml")
    assert done_again(recipe_of(folder), folder) == set(SPACE)
    return folder


@pytest.fixture
def world(finished: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(finished, tmp_path / "world"))
    assert done_again(recipe_of(copy), copy) == set()
    return copy


def change_line(world: Path, wanted: Callable[[str], bool], label: str) -> None:
    """Give the first wanted item of the dump another English label."""
    lines = gzip.decompress((world / "dump.json.gz").read_bytes()).decode().splitlines()
    for number, line in enumerate(lines):
        text = line.rstrip(",")
        if text.startswith("{") and wanted(json.loads(text)["id"]):
            item = json.loads(text)
            item["labels"] = {**item["labels"], "en": {"language": "en", "value": label}}
            lines[number] = json.dumps(item) + line[len(text) :]
            break
    (world / "dump.json.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def elsewhere(world: Path) -> None:
    """Change a line that no candidate rests on: neither itself, nor its path, nor its classes."""
    rows = pl.read_parquet(world / "run/candidates/candidates.parquet")
    columns: Iterable[str] = ("path", "p31", "p279", "roots")
    near = {*rows["qid"], *(qid for name in columns for qid in rows[name].explode())}
    change_line(world, lambda qid: qid not in near, "something else")


def artifact(world: Path) -> None:
    kept = set(pl.read_parquet(world / "run/cspace/cspace.parquet")["artifact_id"])
    change_line(world, lambda qid: qid in kept, "Another name")


def concept(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def changed(world: Path) -> None:
        path = world / "art.yaml"
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        change(config)
        path.write_text(yaml.safe_dump(config), encoding="utf-8")

    return changed


def judged(verdict: str) -> Callable[[Path], Recipe]:
    def changed(world: Path) -> Recipe:
        said = {"task": "cspace.filter", "reply": {"id": "${id}", "verdict": verdict}}
        (world / "said.jsonl").write_text(json.dumps(said), encoding="utf-8")
        return recipe_of(world, judge=f"replay:{world / 'said.jsonl'}?miss=default")

    return changed


CHANGES: dict[str, tuple[Callable[[Path], Recipe | None], str]] = {
    "a line that no candidate rests on goes no further": (elsewhere, "graph candidates filter"),
    "a line of an artifact goes all the way": (artifact, "graph candidates filter cspace prompts"),
    "what a root is expected to bring is only checked": (
        concept(lambda config: config["roots"][0].update(expect=[1, 2])), "candidates"
    ),
    "a walk that may go further and finds nothing more": (concept(lambda config: config.update(hops=40)), "candidates"),
    "a root less": (
        concept(lambda config: config.update(roots=config["roots"][1:])), "candidates filter cspace prompts"
    ),
    "another judge who says the same": (judged("keep"), "filter cspace"),
    "a judge who settles nothing": (judged("review"), "filter cspace prompts"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_goes_as_far_as_it_is_felt(world: Path, change: str) -> None:
    changed, redone = CHANGES[change]
    assert done_again(changed(world) or recipe_of(world), world) == set(redone.split())


def test_other_words_for_the_judge_ask_him_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_shipped_wording", lambda name: "Other words.")
    planned = {step.name: step.state for step in plan_recipe(recipe_of(world), world / "run")}
    assert [planned[name] for name in SPACE] == ["done", "done", "out of date", "to check again", "to check again"]
    assert done_again(recipe_of(world), world) == {"filter"}


def test_other_words_for_prompts_build_prompts_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = world / "templates.yaml"
    shutil.copy(shipped(TEMPLATES), own)
    own.write_text("# another file\n" + own.read_text(encoding="utf-8"), encoding="utf-8")
    monkeypatch.setattr(prompts, "shipped", lambda _: own)
    assert done_again(recipe_of(world), world) == {"prompts"}


def test_other_words_for_artifacts_build_the_index_of_texts_again(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = IndexFiles(finished / "run/cspace/cspace.parquet")

    def key(channel: str) -> str:
        stage = build.index_stage(files, IndexOptions("embedded", channel))  # type: ignore[arg-type]
        return key_of(stage, input_records(stage.inputs))

    before = [key(channel) for channel in ("text", "image")]
    (tmp_path / "words.yaml").write_text("generic: ['a picture of {name}']\n", encoding="utf-8")
    monkeypatch.setattr(build, "shipped", lambda _: tmp_path / "words.yaml")
    after = [key(channel) for channel in ("text", "image")]
    assert (before[0] != after[0], before[1] == after[1]) == (True, True)


def judge(work: Work) -> Outcome:
    (work.out / "table").write_bytes(work.inputs["text"].read_bytes())
    (work.out / JOURNAL).mkdir(exist_ok=True)
    (work.out / JOURNAL / "replies").write_text("paid", encoding="utf-8")
    return Outcome({"table": 1})


@pytest.fixture
def paid(tmp_path: Path) -> Stage:
    (tmp_path / "text").write_text("525 candidates", encoding="utf-8")
    options = {"judge": "openai:m", "roots": {"cuisine": [1, 2]}}
    return Stage("kept", "filter", 3, judge, {"text": tmp_path / "text"}, options, {"draw": 1})


def run(stage: Stage, out: Path, **how: bool) -> StageRun:
    return run_stage(stage, out, engine=HereEngine(), progress=HeardProgress(), **how)


@pytest.mark.parametrize("fresh", [False, True])
def test_what_was_made_from_something_else_is_refused_with_all_that_differs(
    paid: Stage, tmp_path: Path, *, fresh: bool
) -> None:
    before = run(paid, tmp_path / "kept").manifest
    (tmp_path / "text").write_text("340 candidates", encoding="utf-8")
    other = replace(
        paid, options={"judge": "rules", "roots": {"cuisine": [1]}, "more": None}, seeds={"draw": 2},
        inputs={"text": tmp_path / "text", "graph": tmp_path / "text"},
    )  # fmt: skip
    with pytest.raises(UsageError) as refused:
        run(other, tmp_path / "kept", fresh=fresh)
    assert refused.value.exit_code == 2
    for said in (
        "input text (text) has other content", "input graph was not there", 'option judge: "openai:m" -> "rules"',
        "option more: not there -> null", "option roots cuisine: [1,2] -> [1]", "and 1 more", "--replace",
    ):  # fmt: skip
        assert said in str(refused.value)
    (tmp_path / "copy").write_text("525 candidates", encoding="utf-8")
    assert run(replace(paid, inputs={"text": tmp_path / "copy"}), tmp_path / "kept").manifest == before


def test_a_replacement_is_said_and_keeps_what_was_paid(
    paid: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(paid, tmp_path / "kept")
    with caplog.at_level(logging.WARNING):
        done = run(replace(paid, options={"judge": "rules"}), tmp_path / "kept", replace=True)
    assert done.state == "built"
    [line] = caplog.messages
    assert 'option judge: "openai:m" -> "rules"' in line
    assert f"The replies it paid for stay in {tmp_path / 'kept' / JOURNAL}" in line
    assert (tmp_path / "kept" / JOURNAL / "replies").is_file()


@pytest.mark.parametrize("other", [{"version": 4}, {"exports": ("jsonl",)}])
def test_a_new_version_and_another_form_are_made_from_the_same(
    paid: Stage, tmp_path: Path, other: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    run(paid, tmp_path / "kept")
    assert run(replace(paid, **other), tmp_path / "kept").state == "built"  # type: ignore[arg-type]
    assert not caplog.messages


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


def written(work: Work) -> Outcome:
    (work.out / "rows.txt").write_text("rows", encoding="utf-8")
    return Outcome({"rows": 1})


def made_in(folder: Path, names: tuple[str, str]) -> bytes:
    first, second = (folder / name for name in names)
    stage_here(Stage("a", "first", 1, written, {}), first)
    stage_here(Stage("b", "second", 1, written, {"made": first}), second)
    return (second / "manifest.json").read_bytes()


def test_manifests_are_the_same_bytes_whatever_folders_are_called(tmp_path: Path) -> None:
    manifest = made_in(tmp_path, ("graph", "candidates"))
    assert manifest == made_in(tmp_path / "else", ("my graph", "2026"))
    assert json.loads(manifest)["inputs"]["made"]["name"] == "first", "what it is: the stage that made it"


@pytest.mark.endtoend
def test_a_run_that_was_moved_is_reused_and_verified(run_copy: Path, small_recipe: Recipe, tmp_path: Path) -> None:
    moved = tmp_path / "another place/of another name"
    moved.parent.mkdir()
    run_copy.rename(moved)
    runs = recipe_here(small_recipe, moved)
    assert {run.state for run in runs} == {"reused"}
    answer = json.loads(culturekit("verify", moved, "--json").stdout)
    assert (answer["exit_code"], set(answer["verdicts"])) == (0, {"verified"})
