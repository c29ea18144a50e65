"""Candidates that wait for a person: out as a sheet, back as verdicts."""

import csv
import io
from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.filtering.candidate_review import (
    CandidateDecision,
    candidate_sheet,
    read_candidate_sheet,
    review_candidates,
    waiting,
)
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import DECISIONS, DROPS, KEPT
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table
from tests.builders.spaces import rows_of

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


def test_nothing_that_waits_is_said(tmp_path: Path) -> None:
    table = write_table(
        tmp_path, KEPT, rows_of(KEPT, {"qid": "Q1", "concept": "art", "verdict": "keep", "reason": "r"})
    )
    with pytest.raises(UsageError, match="no candidate waits for a person"):
        waiting(table)


def test_a_row_says_who_and_when_and_the_caller_where_it_does_not(tmp_path: Path) -> None:
    path = sheet(tmp_path, "Q1,art,Accept,'=Eve,2026-11-21,", "Q2,art,reject,,,a fragment", "Q3,art,,,,")
    assert read_candidate_sheet(path, KNOWN, by="Ada", on="2026-11-22") == [
        CandidateDecision("art", "Q1", "=Eve", "2026-11-21", "accept", None, "sheet.csv"),
        CandidateDecision("art", "Q2", "Ada", "2026-11-22", "reject", "a fragment", "sheet.csv"),
    ]


def test_decisions_about_another_name_are_told(work: Work, kept: Path, tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text(f"{HEAD},name\nQ1,art,accept,,,,=1+1\nQ2,art,accept,,,, Another name\n", encoding="utf-8")
    made = review_candidates(work, kept, read_candidate_sheet(path, KNOWN, by="Ada", on="2026-11-22"))
    assert made.notes["findings"] == [
        "1 decision about another name, to be looked at again: Q2 was 'Another name' and is '=1+1'"
    ]


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


def test_where_reviewers_disagree_the_candidate_waits(work: Work, kept: Path) -> None:
    sides = [decision("Q1"), decision("Q1", "reject", by="Eve"), decision("Q4", "reject"), decision("Q4", by="Eve")]
    outcome = review_candidates(work, kept, sides)
    table = read_table(work.out / "kept.parquet", KEPT)
    assert dict(table.select("qid", "verdict").iter_rows()) == dict.fromkeys(("Q1", "Q2", "Q3", "Q4"), "review")
    assert table["reason"][0] == "review: Ada says accept, Eve says reject"
    assert "disagree about 2 candidates" in str(outcome.notes["findings"])
    assert not read_table(work.out / "decisions.parquet", DECISIONS)["counts"].any()


def test_of_one_reviewer_the_later_decision_counts_and_several_who_agree_are_all_named(work: Work, kept: Path) -> None:
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


def test_an_import_without_any_decision_is_refused(work: Work, kept: Path) -> None:
    with pytest.raises(UsageError, match="nobody decided anything"):
        review_candidates(work, kept, [])
