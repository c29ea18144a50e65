"""Why two cultural spaces differ: made worlds, and each thing really exchanged alone."""

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import polars as pl
import pytest

from culturekit.builders import asking
from culturekit.builders.filtering import cspace_filter as candidate_verdicts
from culturekit.core.digests import digest_bytes
from culturekit.core.schemas import DIFF
from culturekit.core.stage import Stage
from culturekit.trail.space_causes import compare_spaces, space_behind
from tests.effort import THOROUGH
from tests.llm.server.answers import Question
from tests.llm.server.running import running_server
from tests.trail.space_world import (
    BRAZIL,
    DISH,
    DRINK,
    ITALY,
    ITEMS,
    JAPAN,
    STEW,
    Completion,
    World,
    make_run,
    statements,
)

FIRST = World(verdicts={"Q7": "remove"})
UNSURE = World(verdicts={"Q1": "review", "Q7": "remove"})
TWO_ROOTS = ((DISH, None), (DRINK, None))
OTHER_WORDS = "Keep only what is eaten at feasts."
WORDING = asking.wording("cspace_filter")
KEYED = replace(FIRST, keyed=(("Q2", WORDING, "keep"), ("Q2", OTHER_WORDS, "remove")))
DECIDED = replace(UNSURE, decisions={"Q1": "accept", "Q3": "reject"})
PROPOSED = Completion({"LLM:vatapa": "added", "LLM:pamonha": "refused"})
COMPLETED = replace(FIRST, completion=PROPOSED)

Causes: TypeAlias = dict[tuple[str, str, str], tuple[list[str], list[str]]]

MOVED: Causes = {
    ("reclassified", "Q3", "country"): (["dump"], []),
    ("reclassified", "Q3", "continent"): (["dump"], []),
}
DECISIONS: Causes = {
    ("added", "Q1", "artifact"): (["config"], []),
    ("removed", "Q3", "artifact"): (["config"], []),
}


def sushi_moved(world: World) -> World:
    return world.with_item("Q3", "Sushi", statements(DISH, BRAZIL))


def proposing(**changed: Any) -> World:
    ended = {"LLM:vatapa": "added", "LLM:pamonha": "added"}
    return replace(COMPLETED, completion=replace(PROPOSED, **{"outcomes": ended, **changed}))


def proposed(causes: list[str], undecided: list[str], name: str = "LLM:pamonha") -> Causes:
    return {("added", name, "artifact"): (causes, undecided)}


def because(found: pl.DataFrame, qid: str) -> str:
    return "\n".join(found.filter(pl.col("qid") == qid)["because"])


def causes_of(found: pl.DataFrame) -> Causes:
    return {
        (row["change"], row["qid"], row["part"]): (row["causes"], row["undecided"])
        for row in found.iter_rows(named=True)
    }


OTHER_NAMES = {"outcomes": {"LLM:vatapa": "added", "LLM:acaraje": "added"}, "propose": "name more"}
HASHES = " -> ".join(digest_bytes(text.encode())[:12] for text in (WORDING, OTHER_WORDS))


@pytest.mark.parametrize(("first", "second", "expected", "stages", "evidence"), [
    pytest.param(FIRST, FIRST, {}, set(), {}, id="nothing"),
    pytest.param(
        FIRST, replace(FIRST, roots=TWO_ROOTS), {("added", "Q5", "artifact"): (["config"], [])}, {"extract"},
        {"Q5": "^config: cuisine.roots: \\+ Q2000 \\(drink\\)$"}, id="a root",
    ),
    pytest.param(
        FIRST, sushi_moved(FIRST).with_item("Q1", "Feijoada completa", FIRST.items["Q1"][1]),
        {("renamed", "Q1", "name"): (["dump"], []), **MOVED}, {"ingest"},
        {"Q1": r"^dump: Q1: \* label Feijoada \(en\) -> Feijoada completa \(en\)$",
         "Q3": r"^dump: Q3: \+ P495 Q155; - P495 Q17$"}, id="lines of the dump",
    ),
    pytest.param(
        FIRST, replace(FIRST, verdicts={"Q7": "remove", "Q4": "remove"}),
        {("removed", "Q4", "artifact"): (["model"], [])}, {"filter"},
        {"Q4": "verdict on Q4 in cuisine: keep because judge replay-.* -> remove because judge replay-"},
        id="a verdict",
    ),
    pytest.param(
        KEYED, replace(KEYED, wording=OTHER_WORDS), {("removed", "Q2", "artifact"): (["wording"], [])}, {"filter"},
        {"Q2": f"^wording: filter.wording: {HASHES}\n"}, id="a wording",
    ),
    pytest.param(
        UNSURE, replace(UNSURE, include="review"), {("added", "Q1", "artifact"): (["config"], [])}, {"release"},
        {"Q1": r"^config: release.include: \+ review$"}, id="what a release takes in",
    ),
    pytest.param(
        UNSURE, replace(UNSURE, include="review").with_item("Q3", "Sushi roll", UNSURE.items["Q3"][1]),
        {("added", "Q1", "artifact"): (["config"], []), ("renamed", "Q3", "name"): (["dump"], [])},
        {"release", "ingest"}, {}, id="what a release takes in, and a line of the dump",
    ),
    pytest.param(
        UNSURE, DECIDED, DECISIONS, {"review"},
        {"Q1": "^config: review: none -> a stage\nfilter: verdict on Q1 in cuisine: review "}, id="decisions of people",
    ),
    pytest.param(
        FIRST, DECIDED, {("removed", "Q3", "artifact"): (["config"], [])}, {"review"}, {},
        id="decisions of people, and a verdict that they overrule",
    ),
    pytest.param(
        UNSURE, DECIDED.with_item("Q6", "Risotto bianco", DECIDED.items["Q6"][1]),
        {**DECISIONS, ("renamed", "Q6", "name"): (["dump"], [])}, {"review", "ingest"}, {},
        id="decisions of people, and a line of the dump",
    ),
    pytest.param(
        KEYED, replace(sushi_moved(KEYED), roots=TWO_ROOTS, verdicts={"Q7": "remove", "Q4": "remove"},
                       wording=OTHER_WORDS),
        # What differs at the filter cannot be told apart; what reaches a candidate can.
        {("added", "Q5", "artifact"): (["config"], []), **MOVED,
         ("removed", "Q4", "artifact"): ([], ["wording", "model"]),
         ("removed", "Q2", "artifact"): ([], ["wording", "model"])},
        {"extract", "ingest", "filter"}, {}, id="all four",
    ),
    pytest.param(COMPLETED, proposing(model="far-2"), proposed(["model"], []), {"completion"}, {}, id="a proposer"),
    pytest.param(
        COMPLETED, proposing(verify="check it well"), proposed(["wording"], []), {"completion"}, {}, id="a check"
    ),
    pytest.param(
        COMPLETED, proposing(verify="check it well", propose="name less"), proposed(["wording"], []), {"completion"},
        {}, id="two wordings",
    ),
    pytest.param(
        COMPLETED, proposing(verify="check it well", model="far-2"), proposed([], ["wording", "model"]),
        {"completion"}, {}, id="check and proposer",
    ),
    pytest.param(
        COMPLETED, proposing(), proposed(["model"], []), {"completion"},
        {"LLM:pamonha": "^model: completion, the same question: an answer -> another answer$"}, id="the same question",
    ),
    pytest.param(
        COMPLETED, proposing(**OTHER_NAMES), proposed(["wording"], [], "LLM:acaraje"), {"completion"}, {},
        id="a proposal of one run only",
    ),
    pytest.param(
        COMPLETED, proposing(**OTHER_NAMES).with_item("Q2", "Moqueca capixaba", statements(STEW, BRAZIL)),
        {**proposed([], ["dump", "wording"], "LLM:acaraje"), ("renamed", "Q2", "name"): (["dump"], [])},
        {"completion", "ingest"}, {}, id="a proposal where the names of its cell are others",
    ),
])  # fmt: skip
def test_every_change_has_its_stage_and_what_differs_there(
    first: World, second: World, expected: Causes, stages: set[str], evidence: dict[str, str], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    a = make_run(tmp_path / "a", first, monkeypatch)
    b = make_run(tmp_path / "b", second, monkeypatch)
    found, notes = compare_spaces(space_behind(a), space_behind(b / "cspace"))
    assert DIFF.problems(found) == []
    assert (causes_of(found), set(found["stage"]), notes["missing"]) == (expected, stages, [])
    assert bool(notes["factors"]) == (first != second and second != proposing())
    for qid, pattern in evidence.items():
        assert re.search(pattern, because(found, qid), re.MULTILINE)


def test_a_judge_over_the_wire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is paid and asked the same may say something else; other words are what the others are removed for."""
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    mind = {"Q7": "remove"}

    def judge(question: Question) -> str:
        other_words = question.row == "Q2" and OTHER_WORDS in question.instructions
        return json.dumps({"id": question.row, "verdict": "remove" if other_words else mind.get(question.row, "keep")})

    with running_server(model=judge) as server:
        spec = f"openai:judge-1?base_url={server.openai_url}&price=1/1"
        a = make_run(tmp_path / "a", FIRST, monkeypatch, spec)
        b = make_run(tmp_path / "b", replace(FIRST, wording=OTHER_WORDS), monkeypatch, spec)
        mind["Q4"] = "remove"
        c = make_run(tmp_path / "c", FIRST.with_item("Q3", "Sushi", statements(DISH, BRAZIL)), monkeypatch, spec)
        d = make_run(tmp_path / "d", FIRST, monkeypatch, spec.replace("judge-1", "judge-2"))
        sides = {name: space_behind(folder) for name, folder in zip("abcd", (a, b, c, d), strict=True)}
        words = compare_spaces(sides["a"], sides["b"])[0]
        mixed = compare_spaces(sides["a"], sides["c"])[0]
        other = compare_spaces(sides["b"], sides["d"])[0]
    assert causes_of(words) == {("removed", "Q2", "artifact"): ([], ["wording", "model"])}
    assert causes_of(mixed) == {
        ("reclassified", "Q3", "country"): (["dump"], []),
        ("reclassified", "Q3", "continent"): (["dump"], []),
        ("removed", "Q4", "artifact"): (["model"], []),
    }
    assert "model: filter, the same question: an answer -> another answer" in because(mixed, "Q4")
    assert causes_of(other) == {
        ("added", "Q2", "artifact"): ([], ["wording", "model"]),
        ("removed", "Q4", "artifact"): ([], ["wording", "model"]),
    }


def test_code_that_drops_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter of another version dropped what today's keeps; what the dump says of another dish is told apart."""
    a = make_run(tmp_path / "a", FIRST, monkeypatch)
    with monkeypatch.context() as older:
        older.setattr(
            candidate_verdicts, "name_problem", lambda name, languages: ("too short", name) if name == "Udon" else None
        )
        older.setattr(
            asking,
            "Stage",
            lambda name, kind, now, *rest, **more: Stage(name, kind, 1 if kind == "filter" else now, *rest, **more),
        )
        b = make_run(tmp_path / "b", FIRST, older)
        c = make_run(tmp_path / "c", FIRST.with_item("Q3", "Sushi", statements(DISH, BRAZIL)), older)
    sides = [space_behind(run) for run in (a, b, c)]
    alone = compare_spaces(sides[0], sides[1])[0]
    assert causes_of(alone) == {("removed", "Q4", "artifact"): (["code"], [])}
    assert re.match(
        r"code: filter: version \d+ -> version 1\nfilter: verdict on Q4 in cuisine: keep ", because(alone, "Q4")
    )
    assert causes_of(compare_spaces(sides[0], sides[2])[0]) == {
        ("removed", "Q4", "artifact"): (["code"], []),
        ("reclassified", "Q3", "country"): (["dump"], []),
        ("reclassified", "Q3", "continent"): (["dump"], []),
    }


FACTORS = {"items": "dump", "roots": "config", "hops": "config", "countries": "config", "verdicts": "model"}
PLACES = (BRAZIL, JAPAN, ITALY)

Rows = Mapping[tuple[str, str, str], Mapping[str, Any]]

SEEDS = 25 if THOROUGH else 6


def drawn(random: Random) -> World:
    """A world whose classes may hang below one another, with things of several classes and countries."""
    items = {qid: item for qid, item in ITEMS.items() if qid in {DISH, DRINK}}
    items[STEW] = ("stew", {"P279": random.sample([DISH, DRINK], random.randint(0, 2))})
    items["Q1002"] = ("soup", {"P279": [random.choice([STEW, DISH])]})
    items["Q50"] = ("always there", {"P31": [DISH, DRINK], "P495": list(PLACES)})
    for number in range(1, 11):
        kinds = random.sample([DISH, STEW, DRINK, "Q1002"], random.randint(1, 2))
        places = random.sample(PLACES, random.randint(0, 2))
        items[f"Q{number}"] = (f"thing {number} {random.choice('ab')}", {"P31": kinds, "P495": places})
    return World(
        items=items, roots=tuple(random.sample([(DISH, None), (DRINK, "drinks")], random.randint(1, 2))),
        hops=random.randint(1, 3), countries=random.choice([None, ("BR", "JP"), ("BR", "IT", "JP")]),
        verdicts={f"Q{number}": random.choice(["remove", "review"]) for number in random.sample(range(1, 11), 2)},
    )  # fmt: skip


def near(random: Random, world: World) -> World:
    """The same world with some of it from another."""
    other = drawn(random)
    items = {qid: random.choice([item, item, other.items[qid]]) for qid, item in world.items.items()}
    chosen = random.sample(["roots", "hops", "countries", "verdicts"], 2)
    return replace(world, items=items, **{name: getattr(other, name) for name in chosen})


def rows_of(run: Path) -> Rows:
    rows = pl.read_parquet(run / "cspace/cspace.parquet").to_dicts()
    return {(row["concept"], row["country"], row["artifact_id"]): row for row in rows}


def value(rows: Rows, key: tuple[str, str, str], part: str) -> object:
    row = rows.get(key)
    return "absent" if row is None else True if part == "artifact" else row[part]


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, SEEDS))])
def test_what_really_makes_a_row_another_is_named(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    first = drawn(random)
    second = near(random, first)
    worlds = {"a": first, "b": second}
    for (side, world), name in itertools.product(list(worlds.items()), FACTORS):
        other = second if side == "a" else first
        worlds[f"{side}-{name}"] = replace(world, **{name: getattr(other, name)})
    spaces = {}
    for name, world in worlds.items():
        spaces[name] = rows_of(make_run(tmp_path / name, world, monkeypatch))
    found, _ = compare_spaces(space_behind(tmp_path / "a"), space_behind(tmp_path / "b"))
    assert found.height
    for row in found.iter_rows(named=True):
        key = (row["concept"], row["value"], row["qid"])
        keys = [key, (row["concept"], row["after"], row["qid"])] if row["part"] == "country" else [key]
        if row["part"] != "country" and key not in spaces["b"] and row["change"] not in {"added", "removed"}:
            continue  # the row moved to another country; its move is looked at
        expected = {
            cause
            for name, cause in FACTORS.items()
            for side in "ab"
            if [value(spaces[f"{side}-{name}"], k, row["part"]) for k in keys]
            != [value(spaces[side], k, row["part"]) for k in keys]
        }
        if expected:
            assert set(row["causes"]) <= expected, row
            assert expected & {*row["causes"], *row["undecided"]}, row
