"""What a change makes a run do again: what depends on it, and nothing else."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import polars as pl
import pytest
import yaml

from culturekit.builders import asking
from culturekit.builders.prompt_templates import TEMPLATES
from culturekit.builders.prompting import prompts
from culturekit.core.package_data import shipped
from culturekit.core.stage import input_records, key_of
from culturekit.index.folder import build
from culturekit.index.folder.build import IndexFiles, IndexOptions
from culturekit.kg.concepts import concept_path
from culturekit.recipes.cube.keys import Recipe, load_recipe
from culturekit.recipes.planning import plan_recipe
from tests.conftest import SMALL, recipe_here

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


def change_concept(world: Path, change: Callable[[dict[str, object]], None]) -> None:
    path = world / "art.yaml"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(config)
    path.write_text(yaml.safe_dump(config), encoding="utf-8")


def concerned(world: Path) -> set[str]:
    """The items that candidates are made of: themselves, their paths, their classes."""
    rows = pl.read_parquet(world / "run/candidates/candidates.parquet")
    columns: Iterable[str] = ("path", "p31", "p279", "roots")
    return {*rows["qid"], *(qid for name in columns for qid in rows[name].explode())}


def test_a_line_that_no_candidate_rests_on_is_read_and_goes_no_further(world: Path) -> None:
    near = concerned(world)
    change_line(world, lambda qid: qid not in near, "something else")
    assert done_again(recipe_of(world), world) == {"graph", "candidates", "filter"}


def test_a_line_of_an_artifact_goes_all_the_way(world: Path) -> None:
    kept = set(pl.read_parquet(world / "run/cspace/cspace.parquet")["artifact_id"])
    change_line(world, lambda qid: qid in kept, "Another name")
    assert done_again(recipe_of(world), world) == set(SPACE)


def test_what_a_root_is_expected_to_bring_is_only_checked(world: Path) -> None:
    change_concept(world, lambda config: config["roots"][0].update(expect=[1, 2]))  # type: ignore[index]
    assert done_again(recipe_of(world), world) == {"candidates"}


def test_a_walk_that_may_go_further_and_finds_nothing_more_is_all(world: Path) -> None:
    change_concept(world, lambda config: config.update(hops=40))
    assert done_again(recipe_of(world), world) == {"candidates"}


def test_a_root_less_goes_all_the_way_from_the_walk(world: Path) -> None:
    change_concept(world, lambda config: config.update(roots=config["roots"][1:]))  # type: ignore[index]
    assert done_again(recipe_of(world), world) == {"candidates", "filter", "cspace", "prompts"}


def test_other_words_for_the_judge_ask_him_again(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "_shipped_wording", lambda name: "Other words.")
    planned = {step.name: step.state for step in plan_recipe(recipe_of(world), world / "run")}
    assert [planned[name] for name in SPACE] == ["done", "done", "out of date", "to check again", "to check again"]
    assert done_again(recipe_of(world), world) == {"filter"}


def test_another_judge_who_says_the_same_changes_no_prompt(world: Path) -> None:
    said = world / "said.jsonl"
    said.write_text('{"task": "cspace.filter", "reply": {"id": "${id}", "verdict": "keep"}}', encoding="utf-8")
    assert done_again(recipe_of(world, judge=f"replay:{said}?miss=default"), world) == {"filter", "cspace"}


def test_a_judge_who_settles_nothing_leaves_nothing_to_make_prompts_of(world: Path) -> None:
    said = world / "said.jsonl"
    said.write_text('{"task": "cspace.filter", "reply": {"id": "${id}", "verdict": "review"}}', encoding="utf-8")
    assert done_again(recipe_of(world, judge=f"replay:{said}?miss=default"), world) == {"filter", "cspace", "prompts"}


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
