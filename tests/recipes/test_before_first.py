"""What a later stage would miss is said before the first stage begins."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.stage import PlannedStage
from culturekit.index.encoder import ENCODERS
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_lines, plan_recipe, total_of
from tests.conftest import SMALL, recipe_here

MISSING = {
    "judge=openai:gpt-4o-mini": "there is no key",
    "judge=openai:gpt-4o-mini?api_key=${NOBODY_SET_THIS}": "NOBODY_SET_THIS is not set",
    "judge=openai:nobody-knows?base_url=http://127.0.0.1:9/v1": "the price of nobody-knows is not known",
    "tags={judge: 'google:gemini-2.5-flash'}": "there is no key",
    "faithfulness={vqascore: 'openai:mine?base_url=http://127.0.0.1:9/v1'}": "the price of mine is not known",
    "encoder=transformers:/no/such/weights": "there are no weights",
    "quality=clipscore:transformers:./no/such/weights": "there are no weights",
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("setting", MISSING)
def test_nothing_is_done_where_a_later_stage_misses_something(setting: str, tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, [setting])
    with pytest.raises(ConfigError, match=MISSING[setting]) as caught:
        recipe_here(recipe, tmp_path / "run")
    assert caught.value.exit_code == 2
    assert not (tmp_path / "run").exists()


def test_all_that_is_missing_is_said_once_with_its_stages(tmp_path: Path) -> None:
    settings = ["judge=openai:gpt-4o-mini", "encoder=transformers:/no/such/weights", "completion={rounds: 1}"]
    with pytest.raises(ConfigError) as caught:
        recipe_here(load_recipe(SMALL, settings), tmp_path)
    assert caught.value.problems[0].where == "filter, completion"
    assert len(caught.value.problems) == 2


def test_a_stage_that_is_not_run_needs_nothing(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["judge=openai:gpt-4o-mini"])
    runs = recipe_here(recipe, tmp_path, until="graph")
    assert [run.name for run in runs] == ["graph"]


def test_a_recipe_of_another_kind_leaves_a_run_as_it_is(tmp_path: Path) -> None:
    recipe_here(load_recipe(SMALL), tmp_path, until="graph")
    before = (tmp_path / "recipe.json").read_bytes()
    with pytest.raises(UsageError, match="run of another recipe; expected a recipe `cube`"):
        recipe_here(load_recipe("linguistic"), tmp_path)
    assert (tmp_path / "recipe.json").read_bytes() == before


def test_a_plan_ends_with_the_sum_of_what_is_known() -> None:
    known = PlannedStage("filter", "to do", requests=30, tokens=700, dollars=0.25, seconds=60.0)
    total = total_of([known, known])
    assert (total.state, total.requests, total.tokens, total.dollars) == ("all", 60, 1_400, 0.5)
    open_yet = PlannedStage("tags-a", "to do", requests=None, tokens=None, dollars=None)
    lines = list(plan_lines([known, open_yet]))
    assert lines[3].split()[:3] == ["total", "at", "least"]
    assert "0.25" in lines[3]
    assert "lacks the dollars of tags-a" in lines[-1]


def test_the_plan_of_a_recipe_adds_up(tmp_path: Path) -> None:
    steps = plan_recipe(load_recipe(SMALL), tmp_path)
    assert total_of(steps).seconds == pytest.approx(sum(step.seconds or 0 for step in steps))


LISTED = "name,concept,country,continent\ncarillon,instruments,BE,Europe\ncajón,instruments,BR,\n"
OF_A_LIST = {
    "no en template for prompts of the kind cube about instruments; expected `prompts: {en:": [],
    "cspace has artifacts of BE, which no file of countries has: name one with countries_file": ["translations"],
    "a: favour names US, and the space is made of BE, BR": [
        "models=[{name: a, backend: 'simulated?favour=US&favour_strength=.9'}]"
    ],
}


@pytest.mark.parametrize("said", OF_A_LIST)
def test_a_list_that_no_prompts_can_be_made_of_is_refused_with_the_recipe(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.csv").write_text(LISTED, encoding="utf-8")
    words = "language: en\nverified: {by: Ada, on: 2026-11-22}\n"
    words += "artifact: {instruments: 'A photo of {name}'}\nunderspecified: {instruments: [An instrument]}\n"
    (tmp_path / "words.yaml").write_text(words, encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text(
        "recipe: cube\ncspace: list.csv\nprompts: {kinds: [cube, underspecified]}\nimages: {slots: 8}\n"
        "references: {backend: simulated, per_artifact: 1}\nmodels: [{name: a, backend: simulated}]\n",
        encoding="utf-8",
    )
    given = OF_A_LIST[said]
    if "translations" in given:
        given = [f"prompts={{kinds: [cube, underspecified], translations: [{tmp_path / 'words.yaml'}]}}"]
    with pytest.raises(ConfigError) as caught:
        load_recipe(tmp_path / "recipe.yaml", given)
    assert said in str(caught.value)


def test_a_plan_is_refused_for_what_a_run_would_be(tmp_path: Path) -> None:
    setting = "judge=openai:nobody-knows?base_url=http://127.0.0.1:9/v1"
    with pytest.raises(ConfigError, match=MISSING[setting]):
        plan_recipe(load_recipe(SMALL, [setting]), tmp_path)


def test_a_plan_tells_what_only_this_machine_lacks(tmp_path: Path) -> None:
    steps = plan_recipe(load_recipe(SMALL, ["judge=openai:gpt-4o-mini"]), tmp_path)
    assert {step.name for step in steps if "there is no key" in step.lacks} == {"filter"}
    assert any(line.startswith("A run would be refused: filter: there is no key") for line in plan_lines(steps))
    setting = "encoder=transformers:/no/such/weights"
    steps = plan_recipe(load_recipe(SMALL, [setting]), tmp_path)
    lacking = {step.name: step.lacks for step in steps if step.lacks}
    assert set(lacking) == {"index"}
    assert re.search(MISSING[setting], lacking["index"])


def test_packages_are_looked_for_before_the_first_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(ENCODERS.entries["embedded"], packages=("no_such_package",), extra="embed")
    monkeypatch.setitem(ENCODERS.entries, "embedded", entry)
    with pytest.raises(ConfigError, match=r"encoder embedded needs the package no_such_package.*culturekit\[embed\]"):
        recipe_here(load_recipe(SMALL), tmp_path / "run")
    assert not (tmp_path / "run").exists()
