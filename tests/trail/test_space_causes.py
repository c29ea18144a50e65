import json
import re
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders import asking
from culturekit.builders.asking import wording
from culturekit.builders.filtering import cspace_filter as candidate_verdicts
from culturekit.core.digests import digest_bytes
from culturekit.core.schemas import DIFF
from culturekit.core.stage import Stage
from culturekit.core.work import Work
from culturekit.trail.space_causes import SpaceBehind, SpaceDiff, compare_spaces
from tests.llm.server.made_replies import Question
from tests.llm.server.running import running_server
from tests.trail.space_world import BRAZIL, DISH, DRINK, STEW, Completion, World, make_run, statements

FIRST = World(verdicts={"Q7": "remove"})


def compared(tmp_path: Path, first: World, second: World, work: Work, monkeypatch: pytest.MonkeyPatch) -> SpaceDiff:
    a = make_run(tmp_path / "a", first, monkeypatch)
    b = make_run(tmp_path / "b", second, monkeypatch)
    found = compare_spaces(SpaceBehind.found_at(a), SpaceBehind.found_at(b / "cspace"), work)
    assert DIFF.problems(found.rows) == []
    return found


def told(found: SpaceDiff) -> dict[tuple[str, str, str], tuple[list[str], list[str]]]:
    return {
        (row["change"], row["qid"], row["part"]): (row["causes"], row["undecided"])
        for row in found.rows.iter_rows(named=True)
    }


def because(found: SpaceDiff, qid: str) -> str:
    return "\n".join(found.rows.filter(pl.col("qid") == qid)["because"])


def test_one_root_more(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(tmp_path, FIRST, replace(FIRST, roots=((DISH, None), (DRINK, None))), work, monkeypatch)
    assert told(found) == {("added", "Q5", "artifact"): (["config"], [])}
    assert because(found, "Q5") == "config: cuisine.roots: + Q2000 (drink)"
    assert found.rows["stage"].to_list() == ["extract"]


def test_one_line_of_the_dump(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    second = FIRST.with_item("Q3", "Sushi", statements(DISH, BRAZIL)).with_item(
        "Q1", "Feijoada completa", FIRST.items["Q1"][1]
    )
    found = compared(tmp_path, FIRST, second, work, monkeypatch)
    assert told(found) == {
        ("renamed", "Q1", "name"): (["dump"], []),
        ("reclassified", "Q3", "country"): (["dump"], []),
        ("reclassified", "Q3", "continent"): (["dump"], []),
    }
    assert "- P495 Q17; + P495 Q155" not in because(found, "Q1")
    assert "+ P495 Q155" in because(found, "Q3")
    assert "dump.json, line 6 (member 0, byte " in because(found, "Q3")
    assert set(found.rows["stage"]) == {"ingest"}


def test_one_verdict(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(tmp_path, FIRST, replace(FIRST, verdicts={"Q7": "remove", "Q4": "remove"}), work, monkeypatch)
    assert told(found) == {("removed", "Q4", "artifact"): (["model"], [])}
    assert "verdict on Q4 in cuisine: keep because judge replay-" in because(found, "Q4")
    assert " -> remove because judge replay-" in because(found, "Q4")
    assert found.rows["stage"].to_list() == ["filter"]


OTHER_WORDS = "Keep only what is eaten at feasts."
KEYED = (("Q2", wording("cspace_filter"), "keep"), ("Q2", OTHER_WORDS, "remove"))
# What differs at the filter cannot be told apart; what reaches a candidate can
FOUR: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {
    ("added", "Q5", "artifact"): (["config"], []),
    ("reclassified", "Q3", "country"): (["dump"], []),
    ("reclassified", "Q3", "continent"): (["dump"], []),
    ("removed", "Q4", "artifact"): ([], ["wording", "model"]),
    ("removed", "Q2", "artifact"): ([], ["wording", "model"]),
}


UNSURE = World(verdicts={"Q1": "review", "Q7": "remove"})


def test_what_a_release_takes_in_besides_what_was_kept(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compared(tmp_path, UNSURE, replace(UNSURE, include="review"), work, monkeypatch)
    assert told(found) == {("added", "Q1", "artifact"): (["config"], [])}
    assert because(found, "Q1") == "config: release.include: + review"
    assert found.rows["stage"].to_list() == ["release"]
    other = replace(UNSURE, include="review").with_item("Q3", "Sushi roll", UNSURE.items["Q3"][1])
    both = told(compared(tmp_path / "both", UNSURE, other, work, monkeypatch))
    assert both == {("added", "Q1", "artifact"): (["config"], []), ("renamed", "Q3", "name"): (["dump"], [])}


def test_what_people_decided(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    second = replace(UNSURE, decisions={"Q1": "accept", "Q3": "reject"})
    found = compared(tmp_path, UNSURE, second, work, monkeypatch)
    assert told(found) == {
        ("added", "Q1", "artifact"): (["config"], []),
        ("removed", "Q3", "artifact"): (["config"], []),
    }
    assert because(found, "Q1").startswith("config: review: none -> a stage\nfilter: verdict on Q1 in cuisine: review ")
    assert found.rows["stage"].to_list() == ["review", "review"]
    both = told(compared(tmp_path / "both", FIRST, second, work, monkeypatch))
    assert both == {("removed", "Q3", "artifact"): (["config"], [])}
    dump = second.with_item("Q6", "Risotto bianco", second.items["Q6"][1])
    assert told(compared(tmp_path / "dump", UNSURE, dump, work, monkeypatch)) == {
        ("added", "Q1", "artifact"): (["config"], []),
        ("removed", "Q3", "artifact"): (["config"], []),
        ("renamed", "Q6", "name"): (["dump"], []),
    }


def test_one_wording(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    first = replace(FIRST, keyed=KEYED)
    found = compared(tmp_path, first, replace(first, wording=OTHER_WORDS), work, monkeypatch)
    assert told(found) == {("removed", "Q2", "artifact"): (["wording"], [])}
    before, after = (digest_bytes(text.encode())[:12] for text in (wording("cspace_filter"), OTHER_WORDS))
    assert because(found, "Q2").startswith(f"wording: filter.wording: {before} -> {after}")


def test_all_four_together(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    first = replace(FIRST, keyed=KEYED)
    second = replace(
        first.with_item("Q3", "Sushi", statements(DISH, BRAZIL)), roots=((DISH, None), (DRINK, None)),
        verdicts={"Q7": "remove", "Q4": "remove"}, wording=OTHER_WORDS,
    )  # fmt: skip
    assert told(compared(tmp_path, first, second, work, monkeypatch)) == FOUR


def test_a_judge_over_the_wire(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is paid and asked the same may say something else; other words are what the others are removed for."""
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    mind = {"Q7": "remove"}

    def judge(question: Question) -> str:
        told_otherwise = question.row == "Q2" and OTHER_WORDS in question.instructions
        return json.dumps(
            {"id": question.row, "verdict": "remove" if told_otherwise else mind.get(question.row, "keep")}
        )

    with running_server(model=judge) as server:
        spec = f"openai:judge-1?base_url={server.openai_url}&price=1/1"
        a = make_run(tmp_path / "a", FIRST, monkeypatch, spec)
        b = make_run(tmp_path / "b", replace(FIRST, wording=OTHER_WORDS), monkeypatch, spec)
        mind["Q4"] = "remove"
        c = make_run(tmp_path / "c", FIRST.with_item("Q3", "Sushi", statements(DISH, BRAZIL)), monkeypatch, spec)
        d = make_run(tmp_path / "d", FIRST, monkeypatch, spec.replace("judge-1", "judge-2"))
        sides = {name: SpaceBehind.found_at(folder) for name, folder in zip("abcd", (a, b, c, d), strict=True)}
        words = compare_spaces(sides["a"], sides["b"], work)
        mixed = compare_spaces(sides["a"], sides["c"], work)
        other = compare_spaces(sides["b"], sides["d"], work)
    assert told(words) == {("removed", "Q2", "artifact"): ([], ["wording", "model"])}
    assert told(mixed) == {
        ("reclassified", "Q3", "country"): (["dump"], []),
        ("reclassified", "Q3", "continent"): (["dump"], []),
        ("removed", "Q4", "artifact"): (["model"], []),
    }
    assert "model: filter, the same question: an answer -> another answer" in because(mixed, "Q4")
    assert told(other) == {
        ("added", "Q2", "artifact"): ([], ["wording", "model"]),
        ("removed", "Q4", "artifact"): ([], ["wording", "model"]),
    }


def test_nothing_changed(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(tmp_path, FIRST, FIRST, work, monkeypatch)
    assert (found.rows.height, found.untold, found.factors, found.missing) == (0, {}, (), ())


PROPOSED = Completion({"LLM:vatapa": "added", "LLM:pamonha": "refused"})
COMPLETED = replace(FIRST, completion=PROPOSED)


@pytest.mark.parametrize(("changed", "causes", "undecided"), [
    ({"model": "far-2"}, ["model"], []),
    ({"verify": "check it well"}, ["wording"], []),
    ({"verify": "check it well", "propose": "name less"}, ["wording"], []),
    ({"verify": "check it well", "model": "far-2"}, [], ["wording", "model"]),
    ({"propose": "name less", "model": "far-2"}, [], ["wording", "model"]),
    ({}, ["model"], []),
])  # fmt: skip
def test_a_proposal_that_ended_otherwise(
    changed: dict[str, str], causes: list[str], undecided: list[str], tmp_path: Path, work: Work,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    second = replace(PROPOSED, outcomes={"LLM:vatapa": "added", "LLM:pamonha": "added"}, **changed)
    found = compared(tmp_path, COMPLETED, replace(COMPLETED, completion=second), work, monkeypatch)
    assert told(found) == {("added", "LLM:pamonha", "artifact"): (causes, undecided)}
    assert "completion: LLM:pamonha in cuisine, BR: refused in round 1 -> added in round 1" in because(
        found, "LLM:pamonha"
    )
    assert found.rows["stage"].to_list() == ["completion"]


def test_a_proposal_of_one_run_only(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    second = replace(PROPOSED, outcomes={"LLM:vatapa": "added", "LLM:acaraje": "added"}, propose="name more")
    found = compared(tmp_path, COMPLETED, replace(COMPLETED, completion=second), work, monkeypatch)
    assert told(found) == {("added", "LLM:acaraje", "artifact"): (["wording"], [])}
    assert "not proposed -> added in round 1" in because(found, "LLM:acaraje")


def test_a_proposal_where_the_names_of_its_cell_are_others(
    tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = replace(PROPOSED, outcomes={"LLM:vatapa": "added", "LLM:acaraje": "added"}, propose="name more")
    second = replace(COMPLETED, completion=other).with_item("Q2", "Moqueca capixaba", statements(STEW, BRAZIL))
    found = compared(tmp_path, COMPLETED, second, work, monkeypatch)
    assert told(found) == {
        ("added", "LLM:acaraje", "artifact"): ([], ["dump", "wording"]),
        ("renamed", "Q2", "name"): (["dump"], []),
    }


def test_code_that_drops_a_name(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
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
    sides = [SpaceBehind.found_at(run) for run in (a, b, c)]
    alone = compare_spaces(sides[0], sides[1], work)
    assert told(alone) == {("removed", "Q4", "artifact"): (["code"], [])}
    assert re.match(
        r"code: filter: version \d+ -> version 1\nfilter: verdict on Q4 in cuisine: keep ", because(alone, "Q4")
    )
    assert told(compare_spaces(sides[0], sides[2], work)) == {
        ("removed", "Q4", "artifact"): (["code"], []),
        ("reclassified", "Q3", "country"): (["dump"], []),
        ("reclassified", "Q3", "continent"): (["dump"], []),
    }
