import json
from pathlib import Path

import pytest

from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.core.stage import Stage, input_records, key_of
from culturekit.kg.concepts import load_concept
from culturekit.llm.answers import LlmOptions
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_recipe
from tests.conftest import SMALL, recipe_here
from tests.faults.asking_commands import dishes

LOCAL = "openai:judge-1?base_url=http://127.0.0.1:9/v1"


def stage_of(table: Path, judge: str, **options: object) -> Stage:
    llm = LlmOptions(**options)  # type: ignore[arg-type]
    return filter_candidates.stage(table, roots=(load_concept("cuisine"),), judge=judge, llm=llm)


def key(stage: Stage) -> str:
    return key_of(stage, input_records(stage.inputs))


@pytest.mark.parametrize("more", ["&price=1/2", "&rpm=60", "&tpm=9000", "&timeout=5", "&api_key=${MINE}"])
def test_money_speed_and_secrets_are_no_part_of_what_decides_the_verdicts(tmp_path: Path, more: str) -> None:
    table = dishes(tmp_path, 3)
    assert key(stage_of(table, LOCAL)) == key(stage_of(table, LOCAL + more))
    assert key(stage_of(table, LOCAL)) == key(stage_of(table, LOCAL, budget=3.0, concurrency=99, batch=True))
    assert "MINE" not in json.dumps(stage_of(table, LOCAL + more).options)


@pytest.mark.parametrize("more", ["&temperature=0.5", "&seed=3", "&max_tokens=99", "&top_p=0.5"])
def test_what_changes_answers_changes_the_key(tmp_path: Path, more: str) -> None:
    table = dishes(tmp_path, 3)
    assert key(stage_of(table, LOCAL)) != key(stage_of(table, LOCAL + more))
    assert key(stage_of(table, LOCAL)) != key(stage_of(table, LOCAL.replace("judge-1", "judge-2")))


def test_replayed_replies_decide_by_what_they_say_and_not_by_where_they_lie(tmp_path: Path) -> None:
    table = dishes(tmp_path, 3)
    keys = []
    for name, verdict in (("a", "keep"), ("b", "keep"), ("c", "remove")):
        line = {"task": "cspace.filter", "reply": {"id": "${id}", "verdict": verdict}}
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line), encoding="utf-8")
        keys.append(key(stage_of(table, f"replay:{tmp_path / name}.jsonl?miss=default")))
    assert keys[0] == keys[1] != keys[2]


def test_a_plan_knows_what_the_filter_costs_once_its_candidates_are_there(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, [f"judge={LOCAL}&price=0.15/0.60", "llm.budget=20", "llm.concurrency=64"])
    assert recipe.llm.options() == LlmOptions(budget=20.0, concurrency=64)
    before = {step.name: step for step in plan_recipe(recipe, tmp_path)}["filter"]
    assert (before.units, before.requests, before.tokens, before.dollars) == (None, None, None, None)
    recipe_here(recipe, tmp_path, until="candidates")
    after = {step.name: step for step in plan_recipe(recipe, tmp_path)}["filter"]
    assert after.units is not None
    assert after.requests is not None
    assert 0 < after.requests <= after.units
    assert after.tokens is not None
    assert after.tokens > 300 * after.requests
    assert after.dollars
