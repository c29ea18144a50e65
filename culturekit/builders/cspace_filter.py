"""Candidates to artifacts: rules first, then a judge with two questions; every drop has a reason."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import MappingProxyType

from culturekit.builders.candidate_verdicts import CandidateVerdicts, candidate_rows
from culturekit.builders.filter_requests import WORDING, questions_about
from culturekit.builders.filter_tables import write_judged
from culturekit.builders.pilot import draw_pilot, left_to_the_judge
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.table_slices import TableSlices

__all__ = ["PilotOutcome", "ask_pilot", "filter_candidates"]

DEFAULTS = LlmOptions()


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
    work.progress.begin(source.rows, "candidates")
    verdicts = CandidateVerdicts(concepts, questions_about(concepts, labels), model=client.model)
    with closing(answers(client, verdicts.requests(candidate_rows(source)), work=work, llm=llm)) as answered:
        for answer in answered:
            work.progress.advance(verdicts.settle(answer))
    work.progress.advance(verdicts.rest())
    counts, reasons = write_judged(work.out, source, verdicts)
    set_aside = verdicts.set_aside()
    return Outcome(
        counts | ({QUARANTINED: set_aside} if set_aside else {}),
        reasons,
        {
            "judge": client.model,
            "caveat": client.caveat,
            "outcomes": verdicts.outcomes(),
            "wording": {WORDING: verdicts.questions.instructions},
        },
    )


@dataclass(frozen=True, slots=True)
class PilotOutcome:
    """How many candidates a pilot asked about, and how their rows ended."""

    asked: int
    outcomes: Mapping[str, int]


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
    rows = (row for row in candidate_rows(source) if (row["concept"], row["qid"]) in drawn)
    verdicts = CandidateVerdicts(concepts, questions_about(concepts, labels), model=client.model)
    work.progress.begin(len(drawn), "candidates of a pilot")
    with closing(answers(client, verdicts.requests(rows), work=work, llm=llm)) as answered:
        for answer in answered:
            work.progress.advance(verdicts.settle(answer))
    return PilotOutcome(len(drawn), verdicts.outcomes())
