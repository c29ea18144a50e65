import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.filter_requests import wording
from culturekit.records.schemas import DIFF
from culturekit.records.work import Work
from culturekit.storage.digests import digest_bytes
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.causes import SpaceDiff, compare_spaces
from tests.llm.server.questions import Question
from tests.llm.server.running import running_server
from tests.trail.space_world import BRAZIL, DISH, DRINK, World, make_run, statements

FIRST = World(verdicts={"Q7": "remove"})


def compared(tmp_path: Path, first: World, second: World, work: Work, monkeypatch: pytest.MonkeyPatch) -> SpaceDiff:
    a = make_run(tmp_path / "a", first, monkeypatch)
    b = make_run(tmp_path / "b", second, monkeypatch)
    found = compare_spaces(SpaceBehind.of(a), SpaceBehind.of(b / "cspace"), work)
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
KEYED = (("Q2", wording(), "keep"), ("Q2", OTHER_WORDS, "remove"))
FOUR: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {
    ("added", "Q5", "artifact"): (["config"], []),
    ("reclassified", "Q3", "country"): (["dump"], []),
    ("reclassified", "Q3", "continent"): (["dump"], []),
    ("removed", "Q4", "artifact"): (["model"], []),
    ("removed", "Q2", "artifact"): (["wording"], []),
}


def test_one_wording(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    first = replace(FIRST, keyed=KEYED)
    found = compared(tmp_path, first, replace(first, wording=OTHER_WORDS), work, monkeypatch)
    assert told(found) == {("removed", "Q2", "artifact"): (["wording"], [])}
    before, after = (digest_bytes(text.encode())[:12] for text in (wording(), OTHER_WORDS))
    assert because(found, "Q2").startswith(f"wording: cspace_filter.txt {before} -> {after}")


def test_all_four_together(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    first = replace(FIRST, keyed=KEYED)
    second = replace(
        first.with_item("Q3", "Sushi", statements(DISH, BRAZIL)),
        roots=((DISH, None), (DRINK, None)),
        verdicts={"Q7": "remove", "Q4": "remove"},
        wording=OTHER_WORDS,
    )
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
        sides = {name: SpaceBehind.of(folder) for name, folder in zip("abcd", (a, b, c, d), strict=True)}
        words = compare_spaces(sides["a"], sides["b"], work)
        mixed = compare_spaces(sides["a"], sides["c"], work)
        other = compare_spaces(sides["b"], sides["d"], work)
    assert told(words) == {("removed", "Q2", "artifact"): (["wording"], [])}
    assert told(mixed) == {
        ("reclassified", "Q3", "country"): (["dump"], []),
        ("reclassified", "Q3", "continent"): (["dump"], []),
        ("removed", "Q4", "artifact"): (["model"], []),
    }
    assert "model: first run, journal entry " in because(mixed, "Q4")
    assert told(other) == {
        ("added", "Q2", "artifact"): ([], ["wording", "model"]),
        ("removed", "Q4", "artifact"): ([], ["wording", "model"]),
    }


def test_nothing_changed(tmp_path: Path, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(tmp_path, FIRST, FIRST, work, monkeypatch)
    assert (found.rows.height, found.untold, found.factors, found.missing) == (0, {}, (), ())
