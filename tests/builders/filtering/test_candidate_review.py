"""Candidates that wait for a person, out as a sheet and back as verdicts; one verdict a country."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.builders.filtering.candidate_review import (
    CandidateDecision,
    candidate_sheet,
    known_candidates,
    read_candidate_sheet,
    review_candidates,
    settle,
    waiting,
)
from culturekit.builders.filtering.cspace_filter import filter_candidates, parted, questions_about, words_of
from culturekit.builders.popularity import SOURCES
from culturekit.builders.space.cspace import release
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CANDIDATES, CSPACE, DECISIONS, DROPS, KEPT, REMOVED, VERDICTS
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.llm.client import Outgoing, Request
from culturekit.llm.clients.clients import CLIENTS
from tests.builders.paid_judge import PaidJudge
from tests.builders.put import put
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.conftest import stage_here

KNOWN = {("art", qid): ("BR",) for qid in ("Q1", "Q2", "Q3")}
HEAD = "qid,concept,decision,reviewer,decided_on,comment"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    same = {"concept": "art", "label": "=1+1", "country_qids": ["Q155"], "reason": "judge m: refused"}
    rows = [{**same, "qid": f"Q{n}", "verdict": "review"} for n in (1, 2, 3)]
    rows.append({**same, "qid": "Q4", "verdict": "keep", "reason": "judge m"})
    return write_table(tmp_path, KEPT, rows_of(KEPT, *rows))


def sheet(tmp_path: Path, *lines: str, name: str = "sheet.csv") -> Path:
    path = tmp_path / name
    path.write_text("\n".join([HEAD, *lines]), encoding="utf-8")
    return path


def decision(qid: str, word: str = "accept", by: str = "Ada", on: str = "2026-11-20") -> CandidateDecision:
    return CandidateDecision("art", qid, by, on, "accept" if word == "accept" else "reject", None, "sheet.csv")


def test_the_sheet_has_what_waits_and_no_formula(kept: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(candidate_sheet(waiting(kept)).decode("utf-8-sig"), newline="")))
    assert [row["qid"] for row in rows] == ["Q1", "Q2", "Q3"]
    assert rows[0]["name"] == "'=1+1"
    assert rows[0]["country"] == "Brazil"
    assert rows[0]["why"] == "judge m: refused"
    assert {rows[0][name] for name in ("decision", "reviewer", "decided_on", "comment")} == {""}


def test_a_row_says_who_and_when_and_the_caller_where_it_does_not(tmp_path: Path) -> None:
    path = sheet(tmp_path, "Q1,art,Accept,'=Eve,2026-11-21,", "Q2,art,reject,,,a fragment", "Q3,art,,,,")
    assert read_candidate_sheet(path, KNOWN, by="Ada", on="2026-11-22") == [
        CandidateDecision("art", "Q1", "=Eve", "2026-11-21", "accept", None, "sheet.csv"),
        CandidateDecision("art", "Q2", "Ada", "2026-11-22", "reject", "a fragment", "sheet.csv"),
    ]


def test_decisions_about_another_name_are_told_and_none_at_all_are_refused(
    work: Work, kept: Path, tmp_path: Path
) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(f"{HEAD},name\nQ1,art,accept,,,,=1+1\nQ2,art,accept,,,, Another name\n", encoding="utf-8")
    made = review_candidates(work, kept, read_candidate_sheet(path, KNOWN, by="Ada", on="2026-11-22"))
    assert made.notes["findings"] == [
        "1 decision about another name, to be looked at again: Q2 was 'Another name' and is '=1+1'"
    ]
    with pytest.raises(UsageError, match="nobody decided anything"):
        review_candidates(work, kept, [])
    write_table(tmp_path, KEPT, read_table(kept, KEPT).filter(verdict="keep"))
    with pytest.raises(UsageError, match="no candidate waits for a person"):
        waiting(kept)


def test_every_mistake_of_a_sheet_is_said_at_once_and_nothing_is_taken_in(tmp_path: Path) -> None:
    path = sheet(
        tmp_path, "Q9,art,accept,Ada,2026-11-20,", "Q1,art,yes,Ada,2026-11-20,", "Q2,art,accept,,20.11.2026,",
        "Q3,art,accept,Ada,2026-11-20,", "Q3,art,reject,Ada,2026-11-20,",
    )  # fmt: skip
    with pytest.raises(ConfigError) as told:
        read_candidate_sheet(path, KNOWN, by=None, on=None)
    assert [(problem.line, problem.key) for problem in told.value.problems] == [
        (2, "qid"), (3, "decision"), (4, "decided_on"), (4, "reviewer"), (6, "decision"),
    ]  # fmt: skip


def test_decisions_become_verdicts_that_name_who_and_when(work: Work, kept: Path) -> None:
    outcome = review_candidates(work, kept, [decision("Q1"), decision("Q2", "reject"), decision("Q4", "reject")])
    table = read_table(work.out / "kept.parquet", KEPT)
    assert table.select("qid", "verdict", "reason", "reviewer", "reviewed_on").rows() == [
        ("Q1", "keep", "review: accepted by Ada on 2026-11-20", "Ada", "2026-11-20"),
        ("Q3", "review", "judge m: refused", None, None),
    ]
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert drops.select("key", "reason", "detail").rows() == [
        ("Q2", "rejected in review", "Ada on 2026-11-20"), ("Q4", "rejected in review", "Ada on 2026-11-20"),
    ]  # fmt: skip
    decided = read_table(work.out / "decisions.parquet", DECISIONS)
    assert decided.select("qid", "reason").rows()[-1] == ("Q4", "judge m")
    assert outcome.counts == {"kept": 2, "review": 1, "drops": 2, "decisions": 3}
    assert "findings" not in outcome.notes


def test_where_reviewers_disagree_the_candidate_waits_and_who_agree_are_all_named(work: Work, kept: Path) -> None:
    sides = [decision("Q1"), decision("Q1", "reject", by="Eve"), decision("Q4", "reject"), decision("Q4", by="Eve")]
    outcome = review_candidates(work, kept, sides)
    table = read_table(work.out / "kept.parquet", KEPT)
    assert dict(table.select("qid", "verdict").iter_rows()) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4"), "review")
    assert table["reason"][0] == "review: Ada says accept, Eve says reject"
    assert "disagree about 2 candidates" in str(outcome.notes["findings"])
    assert not read_table(work.out / "decisions.parquet", DECISIONS)["counts"].any()
    # Of one reviewer the later decision counts.
    review_candidates(work, kept, [decision("Q1", "reject"), decision("Q1"), decision("Q1", by="Eve", on="2026-11-21")])
    row = read_table(work.out / "kept.parquet", KEPT).filter(qid="Q1").row(0, named=True)
    assert (row["verdict"], row["reviewer"], row["reviewed_on"]) == ("keep", "Ada, Eve", "2026-11-21")


def test_a_reviewed_table_can_be_reviewed_again_and_keeps_what_completion_knows(
    work: Work, kept: Path, tmp_path: Path
) -> None:
    completed = {"source": pl.lit("wikidata"), "round": pl.lit(0, pl.UInt8), "proposer": pl.lit(None, pl.String)}
    table = pl.read_parquet(kept).with_columns(**completed, gained=pl.lit([], pl.List(pl.String)))
    review_candidates(work, write_table(tmp_path, KEPT, table), [decision("Q1")])
    once = work.out / "kept.parquet"
    review_candidates(work, once, [decision("Q2", "reject", by="Eve")])
    twice = read_table(once, KEPT)
    assert dict(twice.select("qid", "reviewer").iter_rows()) == {"Q1": "Ada", "Q3": None, "Q4": None}
    assert twice["source"].to_list() == ["wikidata"] * 3


BRAZIL, NIGERIA, INDIA, FRANCE = "Q155", "Q1033", "Q668", "Q142"
CONCEPT = Concept(concept="cuisine", hops=1, roots=(Root(qid="Q1", label="x"),), countries=("BR", "IN", "NG"))


class ByCountry(PaidJudge):
    """Says of each item and country what a test says."""

    def __init__(self, said: Mapping[tuple[str, str], str]) -> None:
        super().__init__()
        self.said = said
        self.asked: list[tuple[str, str]] = []

    async def send(self, outgoing: Any) -> bytes:
        data = json.loads(outgoing.body)["data"]
        assert "countries" not in data
        self.asked.append((data["id"], data["country"]))
        word = self.said[data["id"], data["country"]]
        self.judge = lambda qid: f'{{"id":"{qid}","verdict":"{word}"}}'
        return await super().send(outgoing)


SAID = {
    ("Q2", "Brazil"): "remove", ("Q2", "Nigeria"): "keep",
    ("Q3", "Brazil"): "keep", ("Q3", "India"): "review", ("Q3", "Nigeria"): "remove",
    ("Q4", "Brazil"): "remove",
    ("Q5", "India"): "review",
}  # fmt: skip


@dataclass
class Heard(PaidJudge):
    """Keeps what it is asked."""

    requests: list[Request] = field(default_factory=list)

    def compose(self, request: Request) -> Outgoing:
        self.requests.append(request)
        return super().compose(request)


def test_a_judge_says_why_and_how_surely_of_each_country_and_is_not_asked_where_that_costs_too_much(
    work: Work, tmp_path: Path
) -> None:
    concept = CONCEPT.model_copy(update={"description": "Dishes, no brands."})
    same = {"concept": "cuisine", "label": "a dish", "roots": ["Q1"], "path": ["Q1"]}
    rows = [{**same, "qid": "Q2", "country_qids": [BRAZIL, FRANCE, NIGERIA]}]
    judge = Heard(lambda _: '{"why": "a brand", "verdict": "remove", "confidence": 80}')
    put(filter_candidates, work, judge, write_table(tmp_path, CANDIDATES, rows_of(CANDIDATES, *rows)), roots=(concept,))
    told = read_table(work.out / "verdicts.parquet", VERDICTS)
    assert told.select("country", "verdict", "confidence", "why").rows() == [
        ("BR", "remove", 0.8, "a brand"), ("NG", "remove", 0.8, "a brand"),
    ]  # fmt: skip
    assert {request.data["country"] for request in judge.requests} == {"Brazil", "Nigeria"}
    assert {request.data["definition"] for request in judge.requests} == {"Dishes, no brands."}
    shapes = [set(next(iter(questions_about([concept], {}, reasons=reasons).about(rows_of(CANDIDATES, *rows).row(
        0, named=True), concept))).schema_type.__struct_fields__) for reasons in (True, False)]  # fmt: skip
    assert shapes == [{"why", "verdict", "confidence"}, {"verdict"}]


def test_a_second_judge_settles_what_it_is_sure_of_and_says_by_which_rule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = {"concept": "cuisine", "label": "a dish", "roots": ["Q1"], "path": ["Q1"], "country_qids": [BRAZIL],
            "reason": "judge paid-1"}  # fmt: skip
    rows = [{**same, "qid": f"Q{n}", "verdict": "keep" if n == 1 else "review"} for n in range(1, 6)]
    kept = write_table(tmp_path, KEPT, rows_of(KEPT, *rows))
    said = {"Q2": ("keep", 95), "Q3": ("remove", 92), "Q4": ("keep", 80), "Q5": ("review", 100)}
    judge = PaidJudge(lambda qid: json.dumps({"why": "x", "verdict": said[qid][0], "confidence": said[qid][1]}))
    monkeypatch.setattr(CLIENTS, "make", lambda _: judge)
    stage = settle.stage(kept, roots=(CONCEPT,), judge="openai:m", sure=0.9)
    manifest = stage_here(stage, tmp_path / "settled").manifest
    table = read_table(tmp_path / "settled/kept.parquet", KEPT)
    assert dict(table.select("qid", "verdict").iter_rows()) == {
        "Q1": "keep", "Q2": "keep", "Q4": "review", "Q5": "review",
    }  # fmt: skip
    assert table.filter(qid="Q2")["reason"].item() == "judge paid-1, at least 90% sure"
    drops = read_table(tmp_path / "settled/drops.parquet", DROPS)
    assert drops.select("key", "stage", "reason").rows() == [("Q3", "settle", "judge paid-1, at least 90% sure")]
    assert manifest.counts["settled"] == 2
    assert read_table(tmp_path / "settled/removed.parquet", REMOVED)["qid"].to_list() == ["Q3"]
    assert judge.sent.total() == 4


@pytest.fixture
def judged(work: Work, tmp_path: Path) -> tuple[Path, ByCountry]:
    """Judge four candidates, two of which state France, which nobody asks about."""
    places = {
        "Q2": [BRAZIL, NIGERIA, FRANCE], "Q3": [BRAZIL, INDIA, NIGERIA], "Q4": [FRANCE, BRAZIL], "Q5": [INDIA],
        "Q6": [FRANCE],
    }  # fmt: skip
    rows = [
        {"qid": qid, "label": f"dish {qid}", "concept": "cuisine", "country_qids": qids, "roots": ["Q1"]}
        for qid, qids in places.items()
    ]
    table = write_table(tmp_path, CANDIDATES, rows_of(CANDIDATES, *rows))
    judge = ByCountry(SAID)
    put(filter_candidates, work, judge, table, roots=(CONCEPT,))
    return work.out, judge


def released(work: Work, kept: Path, folder: Path, *include: Any) -> tuple[set[tuple[str, str, str]], Any]:
    folder.mkdir()
    outcome = release(replace(work, out=folder), [kept], [CONCEPT], SOURCES.make("sitelinks"), include=include)
    rows = read_table(folder / "cspace.parquet", CSPACE).select("artifact_id", "country", "verdict")
    return set(rows.iter_rows()), outcome


def test_the_judge_is_asked_about_countries_in_scope_one_at_a_time(judged: tuple[Path, ByCountry]) -> None:
    folder, judge = judged
    assert sorted(judge.asked) == sorted(SAID), "never about France"
    kept = read_table(folder / "kept.parquet", KEPT)
    assert kept.select("qid", "verdict", "country_qids", "waiting_qids", "refused_qids").rows() == [
        ("Q2", "keep", [NIGERIA], [], [BRAZIL]),
        ("Q3", "keep", [BRAZIL], [INDIA], [NIGERIA]),
        ("Q5", "review", [INDIA], [], []),
    ]
    removed = read_table(folder / "removed.parquet", REMOVED)
    assert removed.select("qid", "verdict", "country_qids").rows() == [("Q4", "remove", [BRAZIL])]
    drops = read_table(folder / "drops.parquet", DROPS)
    assert drops.select("key", "reason").rows() == [("Q4", "judge paid-1"), ("Q6", "country out of scope")]


def test_a_yes_for_one_country_releases_no_other(judged: tuple[Path, ByCountry], work: Work, tmp_path: Path) -> None:
    rows, outcome = released(work, judged[0] / "kept.parquet", tmp_path / "a")
    assert rows == {("Q2", "NG", "keep"), ("Q3", "BR", "keep")}
    assert "2 artifacts wait for a person" in str(outcome.notes["findings"]) or "2 artifacts" in str(outcome.notes)
    assert outcome.counts["drops"] == 2
    rows, outcome = released(work, judged[0] / "kept.parquet", tmp_path / "b", "review")
    assert rows == {("Q2", "NG", "keep"), ("Q3", "BR", "keep"), ("Q3", "IN", "review"), ("Q5", "IN", "review")}
    assert "2 artifacts" in str(outcome.notes["caveat"])


def test_a_person_is_asked_about_each_country_and_can_overrule_keep_and_remove(
    judged: tuple[Path, ByCountry], tmp_path: Path
) -> None:
    kept = str(judged[0] / "kept.parquet")

    def sheet(*words: str) -> list[dict[str, str]]:
        name = tmp_path / f"sheet{len(words)}.csv"
        out = ("--kept", kept, "--sheet", str(name), "--out", str(tmp_path / f"out{len(words)}"))
        done = culturekit("cspace", "review", "export", *out, *words)
        assert done.returncode == 0, done.stderr
        with name.open(encoding="utf-8-sig", newline="") as file:
            return list(csv.DictReader(file))

    assert [(row["qid"], row["country"]) for row in sheet()] == [("Q3", "India"), ("Q5", "India")]
    every = sheet("--verdict", "keep", "--verdict", "remove")
    asked = [(row["qid"], row["country"]) for row in every]
    assert asked == [("Q2", "Nigeria"), ("Q2", "Brazil"), ("Q3", "Brazil"), ("Q3", "Nigeria"), ("Q4", "Brazil")]
    words = {
        ("Q2", "Nigeria"): "reject",
        ("Q2", "Brazil"): "accept",
        ("Q3", "Nigeria"): "accept",
        ("Q4", "Brazil"): "accept",
    }
    filled = tmp_path / "filled.csv"
    with filled.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(every[0]))
        writer.writeheader()
        for row in every:
            writer.writerow({**row, "decision": words.get((row["qid"], row["country"]), "")})
    by = ("--by", "Ada", "--on", "2026-11-20")
    done = culturekit("cspace", "review", "import", str(filled), "--kept", kept, *by, "--out", str(tmp_path / "done"))
    assert done.returncode == 0, done.stderr
    rows = read_table(tmp_path / "done/kept.parquet", KEPT)
    assert rows.select("qid", "verdict", "country_qids", "waiting_qids", "refused_qids").rows() == [
        ("Q2", "keep", [BRAZIL], [], [NIGERIA]),
        ("Q3", "keep", [BRAZIL, NIGERIA], [INDIA], []),
        ("Q4", "keep", [BRAZIL], [], []),
        ("Q5", "review", [INDIA], [], []),
    ]
    assert rows["reason"].to_list()[:3] == [
        "review: BR accepted by Ada on 2026-11-20; NG rejected by Ada on 2026-11-20",
        "review: accepted by Ada on 2026-11-20", "review: accepted by Ada on 2026-11-20",
    ]  # fmt: skip
    decided = read_table(tmp_path / "done/decisions.parquet", DECISIONS)
    assert decided.select("qid", "decision", "by_country").row(0) == ("Q2", "accept", ["BR accept", "NG reject"])


def ruling(qid: str, word: Any, country: str = "", by: str = "Ada") -> CandidateDecision:
    return CandidateDecision("cuisine", qid, by, "2026-11-20", word, None, "sheet.csv", country=country)


def reviewed(work: Work, folder: Path, out: Path, decisions: Sequence[CandidateDecision]) -> dict[str, tuple[Any, ...]]:
    out.mkdir()
    kept, removed = folder / "kept.parquet", folder / "removed.parquet"
    review_candidates(replace(work, out=out), kept, decisions, removed=removed)
    rows = read_table(out / "kept.parquet", KEPT).select(
        "qid", "verdict", "country_qids", "waiting_qids", "refused_qids"
    )
    return {row[0]: row[1:] for row in rows.iter_rows()}


def test_a_decision_without_a_country_is_about_all_and_a_dispute_about_one(
    judged: tuple[Path, ByCountry], work: Work, tmp_path: Path
) -> None:
    rows = reviewed(work, judged[0], tmp_path / "a", [ruling("Q3", "accept"), ruling("Q2", "reject")])
    assert rows["Q3"] == ("keep", [BRAZIL, INDIA, NIGERIA], [], [])
    assert "Q2" not in rows
    assert "Q4" not in rows, "what nobody decided about stays removed"
    sides = [
        ruling("Q3", "accept", "IN"),
        ruling("Q3", "reject", "IN", by="Eve"),
        ruling("Q3", "reject", "BR"),
    ]
    rows = reviewed(work, judged[0], tmp_path / "b", sides)
    assert rows["Q3"] == ("review", [INDIA], [], [BRAZIL, NIGERIA])


def test_a_sheet_that_names_another_country_is_refused(judged: tuple[Path, ByCountry], tmp_path: Path) -> None:
    known = known_candidates(judged[0] / "kept.parquet", judged[0] / "removed.parquet")
    path = tmp_path / "sheet.csv"
    path.write_text("qid,concept,country,decision\nQ3,cuisine,France,accept\n", encoding="utf-8")
    with pytest.raises(Exception, match="'France' is no country of Q3; expected one of: Brazil, India, Nigeria"):
        read_candidate_sheet(path, known, by="Ada", on="2026-11-20")
    path.write_text("qid,concept,country,decision\nQ3,cuisine,BR,accept\nQ3,cuisine,India,reject\n", encoding="utf-8")
    read = read_candidate_sheet(path, known, by="Ada", on="2026-11-20")
    assert [(one.country, one.decision) for one in read] == [("BR", "accept"), ("IN", "reject")]


def test_a_table_of_an_earlier_version_has_one_verdict_for_all(work: Work, tmp_path: Path) -> None:
    row = {"qid": "Q2", "concept": "cuisine", "country_qids": [BRAZIL, NIGERIA], "roots": ["Q1"], "label": "x"}
    table = write_table(tmp_path, KEPT, rows_of(KEPT, {**row, "verdict": "keep", "reason": "judge m"}))
    assert words_of(pl.read_parquet(table).row(0, named=True)) == {"BR": "keep", "NG": "keep"}
    rows, _ = released(work, table, tmp_path / "a")
    assert rows == {("Q2", "BR", "keep"), ("Q2", "NG", "keep")}


def test_items_of_one_country_stand_together() -> None:
    assert parted(["Q155", "Q1", "Q668"], {"BR": "remove", "IN": "remove"}) == ("remove", ["Q155", "Q668"], [], [])
    assert parted(["Q155", "Q668"], {"BR": "review", "IN": "keep"}) == ("keep", ["Q668"], ["Q155"], [])
