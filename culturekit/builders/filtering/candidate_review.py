"""Candidates that wait: the sheet that shows them, what people decided, and what a second judge is sure of."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, asks
from culturekit.builders.country_names import folded
from culturekit.builders.filtering.cspace_filter import (
    REFUSED,
    WAITING,
    FilterReply,
    as_drops,
    code_of,
    country_name,
    filter_candidates,
    judged_concepts,
    parted,
    questions_about,
    stated_qids,
    words_of,
)
from culturekit.builders.prompting.quotas import Mistakes, decided_rows
from culturekit.core.choices import VerdictWord
from culturekit.core.declared import Typed, rules_of
from culturekit.core.errors import UsageError, counted
from culturekit.core.inputs import roles_among
from culturekit.core.schemas import DECISIONS, KEPT, REMOVED, VERDICTS
from culturekit.core.spreadsheet_cells import SheetRow, sheet_bytes
from culturekit.core.stage import Outcome, Work
from culturekit.core.table import Table
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.core.yaml_source import past_day
from culturekit.kg.concepts import Roots
from culturekit.kg.countries import country_files
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.models import quoted

CANDIDATE_SHEET = "review.csv"

SHOWN = ("concept", "qid", "name", "description", "country", "why", "link")
"""What people see of a candidate and one of its countries, in the sheet and in every other form."""

DECIDED = ("decision", "reviewer", "decided_on", "comment")
NEEDED = ("qid", "concept", "decision")

DecisionWord: TypeAlias = Literal["accept", "reject"]
WORDS: Mapping[str, DecisionWord] = {"accept": "accept", "reject": "reject"}

CandidateKey: TypeAlias = tuple[str, str]
"""Concept and item."""

WAITS: Sequence[VerdictWord] = ("review",)

Known: TypeAlias = Mapping[CandidateKey, Collection[str]]
"""The countries of the candidates that can be decided about, by code."""


@dataclass(frozen=True, slots=True)
class CandidateDecision:
    """What one person decided about a candidate, and when; `file` is where it was read, `seen` its name there.

    `country` is the code of the country that it is about, and empty for all that the candidate has. Of a `group` of so
    many, of which people saw a few, it was said of all.
    """

    concept: str
    qid: str
    reviewer: str
    decided_on: str
    decision: DecisionWord
    comment: str | None
    file: str
    seen: str = ""
    country: str = ""
    group: int = 0

    @property
    def note(self) -> str:
        """The comment, and of how many it was said at once."""
        return "; ".join(filter(None, (self.comment, f"in a group of {self.group:,}" if self.group else "")))


def waiting(
    kept: Path, verdicts: Sequence[VerdictWord] = WAITS, *, removed: Path | None = None, told: Path | None = None
) -> list[dict[str, Any]]:
    """Read what people are to look at: candidates, and under `country` each of theirs that has one of some verdicts.

    `told` is the table of what the judge said, from which `why` and `confidence` come.
    """
    rows = reviewable(kept, removed).sort(KEPT.key)
    table = pl.DataFrame(schema=VERDICTS.schema) if told is None else read_table(told, VERDICTS)
    answers = {tuple(key): (why, sure) for *key, why, sure in
            table.select("concept", "qid", "country", "why", "confidence").iter_rows()}  # fmt: skip
    found = [
        {**row, "country": country, "why": why, "confidence": sure}
        for row in rows.iter_rows(named=True)
        for country, word in (words_of(row) or {"": row["verdict"]}).items()
        if word in verdicts
        for why, sure in [answers.get((row["concept"], row["qid"], country), (None, None))]
    ]
    if not found:
        missing = "waits for a person" if list(verdicts) == ["review"] else f"is {' or '.join(verdicts)}"
        raise UsageError(
            f"no candidate {missing}", where=str(kept), expected=f"rows whose verdict is {' or '.join(verdicts)}"
        )
    return found


def reviewable(kept: Path, removed: Path | None) -> pl.DataFrame:
    """Read the candidates that a person can decide about: the kept ones, and those that the judge removed."""
    rows = read_table(kept, KEPT)
    if removed is None:
        return rows
    refused = read_table(removed, REMOVED).join(rows, on=["concept", "qid"], how="anti")
    added = {"source": pl.lit("wikidata"), "round": pl.lit(0, pl.UInt8)}
    lists = {name: pl.lit([], pl.List(pl.String)) for name in ("gained", WAITING, REFUSED, "valueless")}
    blank = {name: cell for name, cell in {**added, **lists}.items() if name in rows.columns}
    refused = refused.with_columns(**{name: cell for name, cell in blank.items() if name not in refused.columns})
    more = [name for name in (WAITING, REFUSED) if name not in rows.columns]
    return pl.concat([rows.with_columns(**{name: lists[name] for name in more}), refused], how="diagonal")


def known_candidates(kept: Path, removed: Path | None) -> Known:
    """List the candidates that can be decided about, with the codes of their countries."""
    rows = reviewable(kept, removed)
    return {(row["concept"], row["qid"]): words_of(row).keys() for row in rows.iter_rows(named=True)}


def shown_candidate(row: Mapping[str, Any]) -> dict[str, str]:
    """Say what people see of a candidate and a country; a dash where nothing is known."""
    why, confidence = row.get("why"), row.get("confidence")
    sure = "" if confidence is None else f" ({confidence:.0%} sure)"
    cells = {
        "concept": row["concept"],
        "qid": row["qid"],
        "name": row["label"],
        "description": row["description"],
        "country": country_name(row["country"]),
        "why": f"{row['reason'] or ''}{f': {why}' if why else ''}{sure}",
        "link": f"https://www.wikidata.org/wiki/{row['qid']}" if row["qid"].startswith("Q") else None,
    }
    return {name: cells[name] or "–" for name in SHOWN}


def candidate_sheet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Write the sheet: a row for each candidate and country, with cells for who decides, what, and when."""
    return sheet_bytes((*SHOWN, *DECIDED), [shown_candidate(row) for row in rows])


def read_candidate_sheet(path: Path, known: Known, *, by: str | None, on: str | None) -> list[CandidateDecision]:
    """Read the decisions of a sheet; `by` and `on` say who and when where the row does not."""
    rows = decided_rows(
        path, NEEDED, candidate_of, partial(row_mistakes, known, by, on), partial(decision_of, path.name, by, on)
    )
    return [decision for decision in rows.values() if decision is not None]


def candidate_of(row: SheetRow) -> tuple[str, str, str]:
    """Read which candidate and country a row is about; a sheet without a column for it speaks of all countries."""
    stated = row.cells.get("country", "")
    return row.cells["concept"], row.cells["qid"], "" if stated in {"", "–"} else code_of(stated)


def decision_of(file: str, by: str | None, on: str | None, row: SheetRow) -> CandidateDecision | None:
    """Read the decision of a row; None where there is none yet."""
    word = WORDS.get(row.cells["decision"].lower())
    if word is None:
        return None
    comment, (concept, qid, country) = row.cells.get("comment", "") or None, candidate_of(row)
    who, when = signed(row, by, on)
    return CandidateDecision(concept, qid, who, when, word, comment, file, row.cells.get("name", ""), country)


def signed(row: SheetRow, by: str | None, on: str | None) -> tuple[str, str]:
    """Read who decided, and when; empty where neither the row nor the caller says."""
    return row.cells.get("reviewer", "") or by or "", row.cells.get("decided_on", "") or on or ""


def row_mistakes(known: Known, by: str | None, on: str | None, row: SheetRow) -> Mistakes:
    """Say what is wrong with a row."""
    concept, qid, country = candidate_of(row)
    mistakes = [] if (concept, qid) in known else [("qid", f"{qid!r} is no kept candidate of {concept!r}")]
    countries = known.get((concept, qid), ())
    if not mistakes and country and country not in countries:
        stated = ", ".join(map(country_name, countries)) or "none"
        mistakes.append(("country", f"{row.cells['country']!r} is no country of {qid}; expected one of: {stated}"))
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


def review_candidates(
    work: Work, kept: Path, decisions: Sequence[CandidateDecision], *, removed: Path | None = None
) -> Outcome:
    """Turn decisions into verdicts: accepted countries are kept, rejected ones dropped, the others wait on.

    Of one reviewer the last decision about a country counts. Where reviewers disagree about it, it waits. `removed` has
    the candidates that a judge removed; only those that somebody decided about come in.
    """
    if not decisions:
        raise UsageError("nobody decided anything", where=str(kept), expected="accept or reject in at least one row")
    keys = sorted({(one.concept, one.qid) for one in decisions})
    asked = pl.DataFrame(keys, schema={"concept": pl.String, "qid": pl.String}, orient="row")
    known, held = reviewable(kept, removed), read_table(kept, KEPT).select("concept", "qid")
    rows = known.join(pl.concat([held, asked]).unique(), on=["concept", "qid"], how="semi").sort(KEPT.key)
    stated = {
        (row["concept"], row["qid"]): row
        for row in rows.join(asked, on=["concept", "qid"], how="semi").iter_rows(named=True)
    }
    latest = {
        (one.concept, one.qid, country, one.reviewer): one
        for one in decisions
        for country in ([one.country] if one.country else words_of(stated[one.concept, one.qid]) or [""])
    }
    about: dict[CandidateKey, dict[str, list[CandidateDecision]]] = {}
    for (concept, qid, country, _), one in sorted(latest.items()):
        about.setdefault((concept, qid), {}).setdefault(country, []).append(one)
    decided = [settled(row, about[key]) for key, row in stated.items()]
    schema = {**DECISIONS.schema, "by_country": pl.List(pl.String())}
    table = pl.DataFrame([each for _, rows_of_one in decided for each in rows_of_one], schema=schema, orient="row")
    judged = with_verdicts(rows, pl.DataFrame([one for one, _ in decided], schema=SETTLED, orient="row"))
    stays, goes = write_stays(work, judged)
    comment = pl.when(pl.col("comment") != "").then(pl.format(": {}", "comment")).otherwise(pl.lit(""))
    detail = pl.format("{} on {}{}", "reviewer", "reviewed_on", comment)
    drops = as_drops(goes.with_columns(reason=pl.lit(REJECTED), detail=detail), "review")
    reasons = write_drops(work.out, drops)
    write_table(work.out, DECISIONS, table)
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


def write_stays(work: Work, judged: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Write the candidates that are not removed; give them, and those that are."""
    goes = pl.col("verdict") == "remove"
    stays = judged.filter(~goes)
    write_table(work.out, KEPT, stays.select([name for name in (*KEPT.columns, *KEPT.optional) if name in judged]))
    return stays, judged.filter(goes)


def table_beside(kept: Path, table: Table = REMOVED) -> Path | None:
    """Find another table of the judge beside that of what it kept."""
    path = kept.parent / f"{table.name}.parquet"
    return path if path.is_file() else None


def renamed(rows: pl.DataFrame, decisions: Iterable[CandidateDecision]) -> Iterator[str]:
    """Say which decisions are about candidates that went by another name then, as in an earlier dump."""
    names = {(row["concept"], row["qid"]): row["label"] for row in rows.select("concept", "qid", "label").to_dicts()}
    now = [(one, names.get((one.concept, one.qid)) or "–") for one in decisions if one.seen]
    others = [f"{one.qid} was {one.seen!r} and is {name!r}" for one, name in now if folded(one.seen) != folded(name)]
    if others:
        yield f"{counted(len(others), 'decisions')} about another name, to be looked at again: {'; '.join(others[:3])}"


REJECTED = "rejected in review"


SETTLED: Mapping[str, pl.DataType] = {
    **dict.fromkeys(("concept", "qid", "decided", "because", "reviewer", "reviewed_on", "comment"), pl.String()),
    **dict.fromkeys(("country_qids", WAITING, REFUSED), pl.List(pl.String())),
}


Cells: TypeAlias = tuple[object, ...]


def settled(row: Mapping[str, Any], about: Mapping[str, list[CandidateDecision]]) -> tuple[Cells, list[Cells]]:
    """Settle the countries of a candidate that somebody decided about; the others keep their verdicts.

    Gives a row of SETTLED, and rows of DECISIONS.
    """
    key = (row["concept"], row["qid"])
    words = words_of(row) or {"": row["verdict"]}
    open_countries = set()
    for country, several in about.items():
        decisions = {one.decision for one in several}
        words[country] = "review" if len(decisions) > 1 else "keep" if decisions == {"accept"} else "remove"
        if len(decisions) > 1:
            open_countries.add(country)
    stated = stated_qids(row)
    if set(words) == {""}:
        verdict, kept, waits, refused = words[""], stated, list[str](), list[str]()
    else:
        verdict, kept, waits, refused = parted(stated, words)
    every = [one for several in about.values() for one in several]
    agreed = [one for country, several in about.items() if country not in open_countries for one in several]
    because = because_of(about, open_countries)
    who = listed(sorted(one.reviewer for one in agreed)) or None
    when = max((one.decided_on for one in agreed), default=None)
    comment = listed(one.note for one in agreed if one.note) if agreed else None
    cells = (*key, verdict, because, who, when, comment, kept, waits, refused)
    return cells, decision_rows(row, every, about, counts=not open_countries)


def because_of(about: Mapping[str, Sequence[CandidateDecision]], open_countries: Collection[str]) -> str:
    """Say what people decided, country by country where they did not say the same of all."""
    parts: dict[str, list[str]] = {}
    for country, several in about.items():
        if country in open_countries:
            words = ", ".join(f"{one.reviewer} says {one.decision}" for one in several)
        else:
            who = listed(sorted(one.reviewer for one in several))
            words = f"{several[0].decision}ed by {who} on {max(one.decided_on for one in several)}"
            words += f", in a group of {several[0].group:,}" if several[0].group else ""
        parts.setdefault(words, []).append(country)
    if len(parts) == 1:
        return f"review: {next(iter(parts))}"
    return "review: " + "; ".join(f"{', '.join(places)} {words}" for words, places in parts.items())


def decision_rows(
    row: Mapping[str, Any],
    every: Sequence[CandidateDecision],
    about: Mapping[str, Sequence[CandidateDecision]],
    *,
    counts: bool,
) -> list[Cells]:
    """Write what each person decided about a candidate."""
    rows = list[Cells]()
    for reviewer in sorted({one.reviewer for one in every}):
        by_country = {country: one for country, several in about.items() for one in several if one.reviewer == reviewer}
        last = max(by_country.values(), key=lambda one: one.decided_on)
        word = "accept" if any(one.decision == "accept" for one in by_country.values()) else "reject"
        comment = listed(one.note for one in by_country.values() if one.note) or None
        stated = [f"{country} {one.decision}" for country, one in by_country.items() if country]
        rows.append((row["concept"], row["qid"], reviewer, last.decided_on, word, comment, row["reason"], last.file,
                     counts, stated))  # fmt: skip
    return rows


def with_verdicts(rows: pl.DataFrame, decided: pl.DataFrame) -> pl.DataFrame:
    """Put verdicts in the place of those that rows have; what an earlier review said of the others stays."""
    texts = {name: pl.lit(None, pl.String) for name in ("reviewer", "reviewed_on")}
    lists = {name: pl.lit([], pl.List(pl.String)) for name in (WAITING, REFUSED)}
    blank = {name: cell for name, cell in {**texts, **lists}.items() if name not in rows.columns}
    joined = rows.with_columns(**blank).join(
        decided, on=["concept", "qid"], how="left", suffix="_now", maintain_order="left"
    )
    is_settled = pl.col("decided").is_not_null()
    taken = ("reviewer", "reviewed_on", "country_qids", WAITING, REFUSED)
    now = {name: pl.when(is_settled).then(f"{name}_now").otherwise(name) for name in taken}
    return joined.with_columns(
        verdict=pl.coalesce("decided", "verdict"), reason=pl.coalesce("because", "reason"), **now
    )


def listed(texts: Iterable[str]) -> str:
    """List texts, each once."""
    return ", ".join(dict.fromkeys(texts))


# A second judge of what the first left open: what it is sure enough of is settled, and the rest waits for people.


@asks(
    "settle", "settled", "cspace.settle", words="cspace_filter", unit="questions",
    key=lambda unit: str(unit[0]["qid"]),
    reads=lambda given: {**roles_among({"removed": table_beside(given["kept"])}), **country_files()},
    decides=lambda given: {**judged_concepts(given["roots"]), "sure": given["sure"]},
    example=f"--kept kept/kept.parquet --roots cuisine --llm {quoted('text')} --out settled",
)  # fmt: skip
def settle(
    asked: Asked,
    kept: Annotated[Path, Field(description="Table that `cspace filter`, `complete` or `review import` wrote.")],
    graph: Annotated[Path | None, Field(description="Graph of the candidates, which names their classes.")] = None,
    *,
    roots: Roots,
    judge: Annotated[str, rules_of(filter_candidates, "judge"), Typed("llm")],
    sure: Annotated[
        float, Field(ge=0.5, le=1, description="How sure the second judge has to be that it is right; else it waits.")
    ] = 0.9,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Let a second judge settle what it is sure of.

    The other candidates that wait for a person wait on.
    """
    concepts, rows = {concept.concept: concept for concept in roots}, read_table(kept, KEPT)
    units = [(row, iso) for row in rows.filter(pl.col("concept").is_in(list(concepts))).iter_rows(named=True)
             for iso, word in words_of(row).items() if word == "review"]  # fmt: skip
    questions = questions_about(roots, {} if graph is None else GraphTables(graph).class_names([rows]))
    answers = asked.every(
        units, lambda unit: questions.about_country(unit[0], concepts[unit[0]["concept"]], unit[1]), unit="questions"
    )
    settled: dict[tuple[str, str], dict[str, VerdictWord]] = {}
    for (row, iso), answer in zip(units, answers, strict=True):
        reply = answer.value
        if isinstance(reply, FilterReply) and reply.verdict != "review" and (reply.confidence or 0) >= 100 * sure:
            settled.setdefault((row["concept"], row["qid"]), {})[iso] = reply.verdict
    rule = f"judge {asked.client.model}, at least {sure:.0%} sure"
    decided = dict[tuple[str, str], Cells]()
    for row, _ in units:
        key = (row["concept"], row["qid"])
        verdict, *parts = parted(stated_qids(row), {**words_of(row), **settled.get(key, {})})
        because = row["reason"] if verdict == "review" else rule
        decided[key] = (*key, verdict, because, row.get("reviewer"), row.get("reviewed_on"), None, *parts)
    judged = with_verdicts(rows, pl.DataFrame(list(decided.values()), schema=SETTLED, orient="row"))
    stays, goes = write_stays(asked.work, judged)
    before = table_beside(kept)
    columns = [name for name in (*REMOVED.columns, *REMOVED.optional) if name in goes.columns]
    removed = [goes.select(columns), *([] if before is None else [read_table(before, REMOVED)])]
    write_table(asked.work.out, REMOVED, pl.concat(removed, how="diagonal").sort(REMOVED.key))
    drops = as_drops(goes.with_columns(detail=pl.lit(None, pl.String)), "settle")
    asked.drops += drops.to_dicts()
    counts = {"kept": stays.height, "review": stays.filter(verdict="review").height, "drops": drops.height}
    return asked.outcome(asked.work, counts | {"settled": sum(map(len, settled.values()))}, rule=rule)
