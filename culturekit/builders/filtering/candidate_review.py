"""Candidates that wait for a person: the sheet that shows them, and what people decided, as verdicts."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl

from culturekit.builders.folded_names import folded
from culturekit.builders.prompting.review_sheet import Mistakes, decided_rows
from culturekit.builders.space.spreadsheet_rows import SheetRow, sheet_bytes
from culturekit.counting import counted
from culturekit.errors import UsageError
from culturekit.kg.countries import by_qid
from culturekit.records.schemas import DECISIONS, KEPT
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_drops, write_table
from culturekit.storage.yaml_model import past_day

__all__ = [
    "CANDIDATE_SHEET",
    "CandidateDecision",
    "CandidateKey",
    "DecisionWord",
    "candidate_sheet",
    "check_day",
    "day_problem",
    "read_candidate_sheet",
    "review_candidates",
    "shown_candidate",
    "waiting",
]

CANDIDATE_SHEET = "review.csv"

SHOWN = ("concept", "qid", "name", "description", "countries", "why", "link")
"""What people see of a candidate, in the sheet and in every other form."""

DECIDED = ("decision", "reviewer", "decided_on", "comment")
NEEDED = ("qid", "concept", "decision")

DecisionWord: TypeAlias = Literal["accept", "reject"]
WORDS: Mapping[str, DecisionWord] = {"accept": "accept", "reject": "reject"}

CandidateKey: TypeAlias = tuple[str, str]
"""Concept and item."""


@dataclass(frozen=True, slots=True)
class CandidateDecision:
    """What one person decided about a candidate, and when; `file` is where it was read, `seen` its name there."""

    concept: str
    qid: str
    reviewer: str
    decided_on: str
    decision: DecisionWord
    comment: str | None
    file: str
    seen: str = ""


def waiting(kept: Path) -> pl.DataFrame:
    """Read the candidates that wait for a person to look at."""
    rows = read_table(kept, KEPT).filter(verdict="review").sort(KEPT.key)
    if rows.is_empty():
        raise UsageError("no candidate waits for a person", where=str(kept), expected="rows whose verdict is review")
    return rows


def shown_candidate(row: Mapping[str, Any]) -> dict[str, str]:
    """Say what people see of a candidate; a dash where nothing is known."""
    known = by_qid()
    places = [known[qid].name if qid in known else qid for qid in row["country_qids"]]
    cells = {
        "concept": row["concept"],
        "qid": row["qid"],
        "name": row["label"],
        "description": row["description"],
        "countries": ", ".join(dict.fromkeys(places)),
        "why": row["reason"],
        "link": f"https://www.wikidata.org/wiki/{row['qid']}" if row["qid"].startswith("Q") else None,
    }
    return {name: cells[name] or "–" for name in SHOWN}


def candidate_sheet(rows: pl.DataFrame) -> bytes:
    """Write the sheet: a row for each candidate, with cells for who decides, what, and when."""
    return sheet_bytes((*SHOWN, *DECIDED), [shown_candidate(row) for row in rows.iter_rows(named=True)])


def read_candidate_sheet(
    path: Path, known: Collection[CandidateKey], *, by: str | None, on: str | None
) -> list[CandidateDecision]:
    """Read the decisions of a sheet; `by` and `on` say who and when where the row does not."""
    rows = decided_rows(
        path,
        NEEDED,
        candidate_of,
        partial(row_mistakes, known, by, on),
        partial(decision_of, path.name, by, on),
    )
    return [decision for decision in rows.values() if decision is not None]


def candidate_of(row: SheetRow) -> CandidateKey:
    """Read which candidate a row is about."""
    return row.cells["concept"], row.cells["qid"]


def decision_of(file: str, by: str | None, on: str | None, row: SheetRow) -> CandidateDecision | None:
    """Read the decision of a row; None where there is none yet."""
    word = WORDS.get(row.cells["decision"].lower())
    if word is None:
        return None
    comment = row.cells.get("comment", "") or None
    return CandidateDecision(*candidate_of(row), *signed(row, by, on), word, comment, file, row.cells.get("name", ""))


def signed(row: SheetRow, by: str | None, on: str | None) -> tuple[str, str]:
    """Read who decided, and when; empty where neither the row nor the caller says."""
    return row.cells.get("reviewer", "") or by or "", row.cells.get("decided_on", "") or on or ""


def row_mistakes(known: Collection[CandidateKey], by: str | None, on: str | None, row: SheetRow) -> Mistakes:
    """Say what is wrong with a row."""
    concept, qid = candidate_of(row)
    mistakes = [] if (concept, qid) in known else [("qid", f"{qid!r} is no kept candidate of {concept!r}")]
    stated = row.cells["decision"]
    if not stated:
        return mistakes
    if stated.lower() not in WORDS:
        mistakes.append(("decision", f"{stated!r} is no decision; expected accept, reject or nothing"))
    reviewer, day = signed(row, by, on)
    if not reviewer:
        mistakes.append(("reviewer", "nobody signed this decision; fill in the cell, or name one person with --by"))
    if problem := day_problem(day):
        mistakes.append(("decided_on", f"{problem} in the cell, or for all with --on"))
    return mistakes


def day_problem(text: str) -> str:
    """Say what is wrong with the day of a decision; nothing where it is one that has come."""
    if not text:
        return "nobody says when this was decided; expected YYYY-MM-DD"
    try:
        past_day(text)
    except ValueError as error:
        return str(error)
    return ""


def check_day(text: str | None) -> None:
    """Refuse a day that is none, or has not come."""
    if text is not None and (problem := day_problem(text)):
        raise UsageError(f"not a day on which somebody decided: {problem}")


def review_candidates(work: Work, kept: Path, decisions: Sequence[CandidateDecision]) -> Outcome:
    """Turn decisions into verdicts: accepted candidates are kept, rejected ones dropped, the others wait on.

    Of one reviewer the last decision counts. Where reviewers disagree, the candidate waits.
    """
    if not decisions:
        raise UsageError("nobody decided anything", where=str(kept), expected="accept or reject in at least one row")
    rows = read_table(kept, KEPT)
    latest = {(one.concept, one.qid, one.reviewer): one for one in decisions}
    table = pl.DataFrame([asdict(one) for one in latest.values()], schema=schema_of(DECISIONS.schema))
    agreed = pl.col("decision").n_unique().over("concept", "qid") == 1
    before = rows.select("concept", "qid", "reason")
    table = table.with_columns(counts=agreed).join(before, on=["concept", "qid"], how="left")
    judged = with_verdicts(rows, verdicts(table))
    removed = pl.col("verdict") == "remove"
    stays, drops = judged.filter(~removed), as_drops(judged.filter(removed))
    columns = [name for name in (*KEPT.columns, *KEPT.optional) if name in judged.columns]
    write_table(work.out, KEPT, stays.select(columns))
    reasons = write_drops(work.out, drops)
    write_table(work.out, DECISIONS, table.select(list(DECISIONS.schema)))
    disputed = table.filter(~pl.col("counts")).select("concept", "qid").n_unique() if not table["counts"].all() else 0
    counts = {
        "kept": stays.height,
        "review": stays.filter(verdict="review").height,
        "drops": drops.height,
        "decisions": table.height,
    }
    found = [f"reviewers disagree about {disputed:,} candidates, which wait on: decisions.parquet has both sides"]
    findings = [*(found if disputed else ()), *renamed(rows, latest.values())]
    notes = {"reviewers": sorted(table["reviewer"].unique()), **({"findings": findings} if findings else {})}
    return Outcome(counts, reasons, notes)


def renamed(rows: pl.DataFrame, decisions: Iterable[CandidateDecision]) -> Iterator[str]:
    """Say which decisions are about candidates that went by another name then, as in an earlier dump."""
    names = {(row["concept"], row["qid"]): row["label"] for row in rows.select("concept", "qid", "label").to_dicts()}
    now = [(one, names.get((one.concept, one.qid)) or "–") for one in decisions if one.seen]
    others = [f"{one.qid} was {one.seen!r} and is {name!r}" for one, name in now if folded(one.seen) != folded(name)]
    if others:
        yield f"{counted(len(others), 'decisions')} about another name, to be looked at again: {'; '.join(others[:3])}"


REJECTED = "rejected in review"


def schema_of(schema: Mapping[str, pl.DataType]) -> dict[str, pl.DataType]:
    """Give the columns of a decision as it was read."""
    return {name: dtype for name, dtype in schema.items() if name not in {"reason", "counts"}}


def verdicts(table: pl.DataFrame) -> pl.DataFrame:
    """Give the verdict that follows from the decisions about each candidate, with who and when."""
    rows = [verdict_row(part) for part in table.partition_by("concept", "qid", maintain_order=True)]
    names = ("concept", "qid", "decided", "because", "reviewer", "reviewed_on", "comment")
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String()), orient="row")


def with_verdicts(rows: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    """Put verdicts in the place of those that rows have; what an earlier review said of the others stays."""
    blank = {name: pl.lit(None, pl.String) for name in ("reviewer", "reviewed_on") if name not in rows.columns}
    joined = rows.with_columns(**blank).join(
        decided, on=["concept", "qid"], how="left", suffix="_now", maintain_order="left"
    )
    settled = pl.col("decided").is_not_null()
    now = {name: pl.when(settled).then(f"{name}_now").otherwise(name) for name in ("reviewer", "reviewed_on")}
    return joined.with_columns(
        verdict=pl.coalesce("decided", "verdict"), reason=pl.coalesce("because", "reason"), **now
    )


def verdict_row(part: pl.DataFrame) -> tuple[str | None, ...]:
    """Give the verdict on one candidate."""
    said = list(part.sort("reviewer").iter_rows(named=True))
    who, when = listed(one["reviewer"] for one in said), max(one["decided_on"] for one in said)
    key = (said[0]["concept"], said[0]["qid"])
    if not said[0]["counts"]:
        sides = ", ".join(f"{one['reviewer']} says {one['decision']}" for one in said)
        return (*key, "review", f"review: {sides}", None, None, None)
    verdict = "keep" if said[0]["decision"] == "accept" else "remove"
    comment = listed(one["comment"] for one in said if one["comment"])
    return (*key, verdict, f"review: {said[0]['decision']}ed by {who} on {when}", who, when, comment)


def listed(texts: Iterable[str]) -> str:
    """List texts, each once."""
    return ", ".join(dict.fromkeys(texts))


def as_drops(removed: pl.DataFrame) -> pl.DataFrame:
    """Write rejected candidates as drops, with who rejected them, when and why."""
    comment = pl.when(pl.col("comment") != "").then(pl.format(": {}", "comment")).otherwise(pl.lit(""))
    return removed.select(
        "concept",
        key="qid",
        stage=pl.lit("review"),
        reason=pl.lit(REJECTED),
        detail=pl.format("{} on {}{}", "reviewer", "reviewed_on", comment),
    )
