"""The pilot of a completion: one round of a few cells, to see what comes of it and what the rest can cost."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from culturekit.builders.completing.completion import CompletionInputs, asking, prepare
from culturekit.builders.completing.completion_cells import cells_of, drawn_cells
from culturekit.builders.completing.completion_questions import CompletionLimits
from culturekit.builders.completing.completion_rounds import CompletionRounds
from culturekit.errors import UnusableReplies
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.reply_watch import RepliesSeen, ReplyWatch
from culturekit.records.work import Work

__all__ = ["CompletionPilot", "try_cells"]

SAMPLED = 40
"""Proposals of a pilot that are shown."""


@dataclass(frozen=True, slots=True)
class CompletionPilot:
    """What one round of a few cells brought: what became of the proposals, and what of the replies could be used."""

    tried: CompletionRounds
    replies: RepliesSeen

    @property
    def to_mend(self) -> str:
        """Why a person has to look at the replies first."""
        return self.replies.to_mend

    @property
    def fates(self) -> dict[str, int]:
        """How many proposals ended in which way."""
        return dict(sorted(Counter(row.outcome for row in self.tried.proposals).items()))

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return {
            "asked": len(self.tried.rounds),
            "outcomes": dict(self.tried.ended_in()),
            "proposals": self.fates,
            "samples": [(row.outcome, row.name, row.cell.id) for row in self.tried.proposals[:SAMPLED]],
            "replies": asdict(self.replies),
        }

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        ended = ", ".join(f"{count:,} {outcome}" for outcome, count in self.tried.ended_in().items())
        yield f"pilot: one round of {len(self.tried.rounds):,} pairs ({ended}); the answers are kept for the run"
        yield f"  proposals: {', '.join(f'{count:,} {fate}' for fate, count in self.fates.items()) or 'none'}"
        yield from self.replies.lines()
        for row in self.tried.proposals[:SAMPLED]:
            yield f"  {row.cell.id}: {row.name[:60]!r} {row.outcome} {row.reason}".rstrip()


def try_cells(
    work: Work,
    inputs: CompletionInputs,
    concepts: Sequence[Concept],
    client: Client | FreeClient,
    *,
    size: int,
    limits: CompletionLimits,
    llm: LlmOptions = DEFAULTS,
) -> CompletionPilot:
    """Do the first round of a few cells; the answers lie in the journal for the run to come."""
    cells = drawn_cells(cells_of(concepts), size)
    completion = prepare(inputs.open(work.scratch), concepts, cells, limits)
    watch, stopped = ReplyWatch(go_on=llm.go_on), ""
    try:
        completion.run(asking(work, client, llm, watch), rounds=1)
    except UnusableReplies as error:
        stopped = str(error)
    return CompletionPilot(completion, watch.seen(stopped=stopped))
