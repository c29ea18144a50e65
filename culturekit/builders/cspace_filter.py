"""Candidates to artifacts: rules first, then a judge with two questions; every drop has a reason."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType

from culturekit.builders.candidate_verdicts import CandidateVerdicts, candidate_rows
from culturekit.builders.filter_requests import questions_about
from culturekit.builders.filter_tables import write_judged
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import LlmOptions, answers
from culturekit.llm.client import Client, FreeClient
from culturekit.records.schemas import CANDIDATES
from culturekit.records.work import QUARANTINED, Outcome, Work
from culturekit.storage.table_slices import slices_of

__all__ = ["filter_candidates"]

DEFAULTS = LlmOptions()


def filter_candidates(
    work: Work,
    candidates: Path,
    concepts: Sequence[Concept],
    client: Client | FreeClient,
    *,
    llm: LlmOptions = DEFAULTS,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Outcome:
    """Judge candidates; write the kept and the dropped."""
    source = slices_of(candidates, CANDIDATES, scratch=work.scratch)
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
        {"judge": client.model, "caveat": client.caveat, "outcomes": verdicts.outcomes()},
    )
