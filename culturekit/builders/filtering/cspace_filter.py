"""Candidates to artifacts: rules first, then a judge with two questions; every drop has a reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeGuard

from culturekit.builders.filtering.candidate_verdicts import CandidateVerdicts, candidate_rows
from culturekit.builders.filtering.filter_requests import WORDING, questions_about
from culturekit.builders.filtering.filter_tables import write_judged
from culturekit.builders.filtering.pilot import draw_pilot, left_to_the_judge
from culturekit.builders.filtering.verdicts import Verdict
from culturekit.errors import UnusableReplies
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.reply_watch import RepliesSeen, ReplyWatch
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.table_slices import TableSlices

__all__ = ["PilotOutcome", "ask_pilot", "filter_candidates"]

DEFAULTS = LlmOptions()
SAMPLED = 20
"""Verdicts of a pilot that are shown with what they are about."""


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
    work.progress.begin(sum(1 for _ in left_to_the_judge(candidate_rows(source), by_name)), "candidates")
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
    """How many candidates a pilot asked about, how their rows ended, and what came: all verdicts, and some by name."""

    asked: int
    outcomes: Mapping[str, int]
    verdicts: Mapping[str, int]
    samples: Sequence[tuple[str, str, str]]
    replies: RepliesSeen


def ask_pilot(
    work: Work,
    source: TableSlices,
    concepts: Sequence[Concept],
    client: Client,
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
    work.progress.begin(len(drawn), "candidates of a pilot")
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
