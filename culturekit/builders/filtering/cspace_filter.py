"""Candidates to artifacts: rules first, then a judge with two questions; every drop has a reason."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeGuard

import polars as pl

from culturekit.builders.filtering.candidate_verdicts import (
    WORDING,
    CandidateVerdicts,
    Verdict,
    candidate_rows,
    questions_about,
)
from culturekit.builders.filtering.country_verdicts import REFUSED, WAITING
from culturekit.builders.filtering.pilot import draw_pilot, left_to_the_judge, questions_left
from culturekit.counting import counted
from culturekit.errors import UnusableReplies
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import DEFAULTS, LlmOptions, answers
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.reply_watch import RepliesSeen, ReplyWatch
from culturekit.records.schemas import DROPS, KEPT, REMOVED
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.table_slices import ROWS_PER_SLICE, TableSlices
from culturekit.storage.tables import write_drops, write_frames

__all__ = ["PilotOutcome", "ask_pilot", "filter_candidates"]

SAMPLED = 20
"""Verdicts of a pilot that are shown with what they are about."""

NO_DROPS = pl.DataFrame(schema=DROPS.schema)


def filter_candidates(
    work: Work,
    source: TableSlices,
    concepts: Sequence[Concept],
    client: Client | FreeClient,
    *,
    llm: LlmOptions = DEFAULTS,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Judge candidates; write the kept and the dropped."""
    by_name = {concept.concept: concept for concept in concepts}
    work.progress.begin(questions_left(candidate_rows(source), by_name), "questions")
    verdicts = CandidateVerdicts(concepts, questions_about(concepts, labels), model=client.model)
    watch, requests = ReplyWatch(go_on=llm.go_on), verdicts.requests(candidate_rows(source))
    with closing(answers(client, requests, work=work, llm=llm, watch=watch)) as answered:
        for answer in answered:
            verdicts.settle(answer)
            work.progress.advance(1)
    counts, reasons = write_judged(work.out, source, verdicts)
    set_aside = verdicts.set_aside()
    return Outcome(
        counts | ({QUARANTINED: set_aside} if set_aside else {}),
        reasons,
        {
            "judge": client.model,
            "caveat": client.caveat,
            "outcomes": verdicts.outcomes(),
            **watch.notes(),
            "wording": {WORDING: verdicts.questions.instructions},
        },
    )


@dataclass(frozen=True, slots=True)
class PilotOutcome:
    """How many questions a pilot asked, how they ended, and what came: all verdicts, and some by name."""

    asked: int
    outcomes: Mapping[str, int]
    verdicts: Mapping[str, int]
    samples: Sequence[tuple[str, str, str]]
    replies: RepliesSeen

    @property
    def to_mend(self) -> str:
        """Why a person has to look at the replies first."""
        return self.replies.to_mend

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        ended, verdicts = (
            ", ".join(f"{count:,} {name}" for name, count in counts.items())
            for counts in (self.outcomes, self.verdicts)
        )
        yield f"pilot: asked {counted(self.asked, 'questions')} ({ended}); their answers are kept for the run"
        yield f"  verdicts: {verdicts or 'none'}"
        yield from self.replies.lines()
        for verdict, label, concept in self.samples:
            yield f"    {verdict:<9} {label[:60]!r} ({concept})"


def ask_pilot(
    work: Work,
    source: TableSlices,
    concepts: Sequence[Concept],
    client: Client | FreeClient,
    *,
    size: int,
    llm: LlmOptions = DEFAULTS,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> PilotOutcome:
    """Ask about a few candidates, spread over the concepts; the answers lie in the journal for the run to come."""
    by_name = {concept.concept: concept for concept in concepts}
    drawn = draw_pilot(left_to_the_judge(candidate_rows(source), by_name), size)
    rows = [row for row in candidate_rows(source) if (row["concept"], row["qid"]) in drawn]
    verdicts = CandidateVerdicts(concepts, questions_about(concepts, labels), model=client.model)
    watch, stopped = ReplyWatch(go_on=llm.go_on), ""
    work.progress.begin(questions_left(rows, by_name), "questions of a pilot")
    try:
        with closing(answers(client, verdicts.requests(iter(rows)), work=work, llm=llm, watch=watch)) as answered:
            for answer in answered:
                verdicts.settle(answer)
                work.progress.advance(1)
    except UnusableReplies as error:
        stopped = str(error)
    said = [(verdict.verdict, row) for verdict, row in zip(verdicts.all, rows, strict=False) if usable(verdict)]
    return PilotOutcome(
        watch.rows,
        verdicts.outcomes(),
        dict(sorted(Counter(verdict for verdict, _ in said).items())),
        [(verdict, row["label"], row["concept"]) for verdict, row in said[:SAMPLED]],
        watch.seen(stopped=stopped),
    )


def usable(verdict: Verdict | None) -> TypeGuard[Verdict]:
    """Tell whether a judge has said something about a candidate."""
    return verdict is not None and not verdict.set_aside


def write_judged(
    folder: Path, source: TableSlices, verdicts: CandidateVerdicts
) -> tuple[dict[str, int], dict[str, int]]:
    """Part the candidates by verdict, each table in the order of its key; count rows, and drops by reason."""
    counts = {"kept": 0, "review": 0, "waiting countries": 0, "refused countries": 0}
    dropped: list[pl.DataFrame] = []
    beside = {name: KEPT.optional[name] for name in (WAITING, REFUSED)}
    table = replace(KEPT, optional={**source.table.optional, **beside})
    removed = pl.col("verdict") == "remove"

    def judged() -> Iterator[pl.DataFrame]:
        start = 0
        for frame in source.slices():
            countries = verdicts.country_columns(start, frame["country_qids"].to_list())
            yield frame.with_columns(verdicts.columns(start, start + frame.height)).with_columns(countries)
            start += frame.height

    def kept() -> Iterator[pl.DataFrame]:
        for frame in judged():
            dropped.append(as_drops(frame.filter(removed)))
            stays = frame.filter(~removed).select(*table.columns, *table.optional)
            counts["kept"] += stays.height
            counts["review"] += stays.filter(pl.col("verdict") == "review").height
            for name, column in (("waiting countries", WAITING), ("refused countries", REFUSED)):
                counts[name] += int(stays[column].list.len().sum())
            yield stays

    def refused() -> Iterator[pl.DataFrame]:
        asked = pl.col("reason").str.starts_with("judge ")
        return (frame.filter(removed & asked).select(*table.columns, *table.optional) for frame in judged())

    write_frames(folder, table, kept(), rows_per_group=ROWS_PER_SLICE)
    write_frames(folder, replace(table, name=REMOVED.name), refused(), rows_per_group=ROWS_PER_SLICE)
    drops = pl.concat([NO_DROPS, *dropped])
    found = {name: count for name, count in counts.items() if count or name in {"kept", "review"}}
    return {**found, "drops": drops.height}, write_drops(folder, drops)


def as_drops(removed: pl.DataFrame) -> pl.DataFrame:
    """Write removed candidates as drops."""
    rows = removed.select("concept", "reason", "detail", key="qid", stage=pl.lit("filter"))
    return rows.select(list(DROPS.columns))
