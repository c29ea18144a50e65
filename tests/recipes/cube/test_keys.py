from pathlib import Path

import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.llm.answers import LlmOptions
from culturekit.recipes.cube.keys import load_recipe
from tests.conftest import SMALL, stages_of


def test_a_recipe_has_no_tags_unless_it_asks_for_them() -> None:
    assert load_recipe(SMALL).tags is None


def test_tags_say_who_looks_at_how_many_and_what_that_may_cost() -> None:
    recipe = load_recipe(SMALL, ["tags.judge=openai:seer-1?price=1/2", "tags.images=40", "tags.budget=5"])
    assert recipe.tags is not None
    assert (recipe.tags.images, recipe.tags.options()) == (40, LlmOptions(5.0, 16, False))
    assert load_recipe(SMALL, ["tags.judge=openai:seer-1"]).tags.images == "all"  # type: ignore[union-attr]


def test_a_second_instrument_is_an_input_of_the_scores(tmp_path: Path) -> None:
    two = ["audit.second=two", "instruments=[{name: two, encoder: 'transformers:clip', channel: both}]"]
    scores = next(stage for stage in stages_of(load_recipe(SMALL, two), tmp_path) if stage.name == "scores")
    assert {role for role in scores.inputs if role.startswith("matches-broad")} == {
        "matches-broad", "matches-broad-by-two",
    }  # fmt: skip
    alone = next(
        stage for stage in stages_of(load_recipe(SMALL, ["audit.images=50"]), tmp_path) if stage.name == "scores"
    )
    assert "matches-broad-by-two" not in alone.inputs


def test_gaps_come_after_what_is_scored_within_countries(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["gaps.scheme=cultivate", "within.repeats=2"])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert stages["gaps"].inputs == {"values-0": tmp_path / "within/values.parquet"}
    assert "gaps" in stages["report"].inputs
    assert list(stages).index("within") < list(stages).index("gaps") < list(stages).index("report")


def test_a_scheme_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["gaps.scheme=hemispheres", "within.repeats=2"])
    with pytest.raises(UsageError, match="no scheme 'hemispheres'"):
        stages_of(recipe, tmp_path)


CANARY = "canary7f3a9d21"
SHAPED = "sk-canary7f3a9d21canary7f3a9d21"
LINES = len(SMALL.read_text(encoding="utf-8").splitlines())


def said(tail: str, tmp_path: Path, *settings: str) -> str:
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + tail, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_recipe(path, settings)
    shown = f"{caught.value}{caught.value!r}{caught.value.problems!r}{caught.value.__context__!r}"
    assert "canary" not in shown
    return str(caught.value).replace(str(path), "recipe.yaml")


WAYS = [
    f"judge: openai:m?api_key={CANARY}\n", f"judge: 'openai:m?temperature=0&api_key={CANARY}'\n",
    f"judge: openai:m?api%5Fkey={SHAPED}\n", f"judge: openai:m?api_key=%63{CANARY}\n", f"judge: openai:{SHAPED}\n",
    f"judge: {SHAPED}\n", f"judge: openai:m?base_url=http://jane:{CANARY}@host/v1\n",
    f"judge: openai:m?base_url=http%3A%2F%2Fjane%3A{CANARY}%40host/v1\n",
    f"judge: openai:m?base_url=https://host/v1?key={CANARY}\n", f"judge: openai:m?token={CANARY}\n",
    f"judge: openai:m?header=Authorization:%20Bearer%20{CANARY}\n", f"judge:\n  api_key: {CANARY}\n",
    f"api_key: {CANARY}\n", f"api_key: [{CANARY}]\n", f"openai_api_key: &key {CANARY}\njudge: *key\n", f"{SHAPED}: 1\n",
    f"judge: >\n  openai:m?api_key={CANARY}\n", f"quality: {SHAPED}\n",
]  # fmt: skip


@pytest.mark.parametrize("tail", WAYS)
def test_a_key_that_is_written_out_is_refused_with_its_line_and_never_repeated(tail: str, tmp_path: Path) -> None:
    message = said(tail, tmp_path)
    assert message.startswith("recipe.yaml:")
    assert "a key is written out here; write api_key=${NAME}" in message
    assert int(message.split(":")[1]) > LINES


def test_a_key_in_a_line_that_does_not_count_is_not_repeated_either(tmp_path: Path) -> None:
    assert "given twice" in said(f"judge: rules\njudge: {SHAPED}\n", tmp_path)


def test_a_key_set_on_the_command_line_is_refused_too(tmp_path: Path) -> None:
    assert said("", tmp_path, f"judge=openai:m?api_key={CANARY}").startswith("--set judge: judge: a key is written out")
    assert said("", tmp_path, f"api_key={CANARY}").startswith("--set api_key: api_key: a key is written out")
    assert said("", tmp_path, SHAPED) == "--set: expected key=value, found '[key]'"


def test_the_name_of_a_key_stays_unexpanded_to_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    path = tmp_path / "recipe.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + "judge: rules?api_key=${MY_KEY}\n", encoding="utf-8")
    assert load_recipe(path).judge == "rules?api_key=${MY_KEY}"


@pytest.mark.parametrize("judge", ["rules?base_url=${HOME}", "${HOME}", "rules:${HOME}", "rules?api_key=${A}&b=${B}"])
def test_anything_else_from_the_environment_is_a_problem_with_its_line(judge: str, tmp_path: Path) -> None:
    message = said(f"judge: {judge}\n", tmp_path)
    assert f"recipe.yaml:{LINES + 1}: judge: " in message
    assert "only api_key=${NAME}" in message
