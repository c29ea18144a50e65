"""What completing a collection can take at most, and what a pilot says of it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Protocol

from culturekit.builders.completing.completion import CompletionInputs, asking, prepare
from culturekit.builders.completing.completion_lookup import KnownItem
from culturekit.builders.completing.completion_names import MOST_CHARACTERS
from culturekit.builders.completing.completion_questions import (
    LONGEST_WHAT,
    MOST_OTHER_NAMES,
    MOST_REPEATED,
    PROPOSE,
    VERIFY,
    Cell,
    CompletionLimits,
    Proposal,
    Shown,
    cells_of,
    drawn_cells,
    proposal_request,
    verification_request,
    wordings,
)
from culturekit.builders.completing.completion_rounds import CompletionRounds
from culturekit.builders.completing.completion_state import CellState
from culturekit.builders.completing.item_facts import LONGEST_CLASS, MOST_LISTED, ItemNames
from culturekit.errors import UnusableReplies
from culturekit.kg.concepts import Concept
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.cost_plan import CostPlan, cost_plan_lines, plan_requests
from culturekit.llm.ledger import read_spending
from culturekit.llm.reply_watch import RepliesSeen, ReplyWatch
from culturekit.records.work import Work
from culturekit.stages.asking import Left

__all__ = ["CompletionPilot", "CompletionPlan", "PlannedCells", "plan_completion", "try_cells"]

SAMPLED = 40
"""Proposals of a pilot that are shown."""


USUAL_NAME, USUAL_TEXT = "Name of a usual length", "a dish of the region, made of rice and beans, on feast days"
LONGEST_NAME, WORST_TEXT = "\U00010348" * MOST_CHARACTERS, "~"
"""A letter of four bytes, and a mark that is written with an escape: nothing takes more room."""

USUAL_ITEM = KnownItem("Q1", "x", USUAL_NAME, USUAL_TEXT, frozenset(), ("Q155",), ("Q746549", "Q2095"), "kept")


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


@dataclass(frozen=True, slots=True)
class PlannedCells:
    """What is to be completed; `known` says whether the names that are there could be read yet."""

    states: Sequence[CellState]
    limits: CompletionLimits
    names: ItemNames
    known: bool = True

    def there(self, state: CellState, name: str) -> list[str]:
        """Give the names that go along with a question, or as many as can."""
        return list(state.there) if self.known else [name] * self.limits.shown

    @property
    def checks(self) -> int:
        """How many proposals of one cell are checked at most."""
        return self.limits.rounds * min(self.limits.per_round, self.limits.per_cell)


class Questions(Protocol):
    """Writes all questions of one kind that a completion can come to."""

    def __call__(self, planned: PlannedCells, *, worst: bool) -> Iterator[Request]:
        """Write them, of the usual size or of the largest."""
        ...


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """Cells, and the most that asking about them, and checking what comes of it, can take in so many rounds."""

    judge: str
    cells: int
    rounds: int
    proposals: CostPlan
    checks: CostPlan

    @property
    def units(self) -> int:
        """What is asked about."""
        return self.cells

    @property
    def left(self) -> Left:
        """What is left to ask at most."""
        parts = self.proposals.left, self.checks.left
        requests, tokens = (sum(part[place] or 0 for part in parts) for place in (0, 1))
        return Left(int(requests), int(tokens), added(self.proposals.usd, self.checks.usd))

    @property
    def most(self) -> float | None:
        """US dollars that surely suffice when nothing has to be asked twice."""
        return added(self.proposals.most, self.checks.most)

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        sums = dict(zip(("requests", "tokens", "usd"), self.left, strict=True))
        return {**asdict(self), **sums, "most": self.most}

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        yield (
            f"{self.cells:,} pairs of concept and country, at most {self.rounds} rounds: {self.proposals.requests:,} "
            f"questions to {self.judge}, and a check of at most {self.checks.requests:,} proposals"
        )
        if self.most == 0.0 and self.left.tokens == 0 and self.left.requests:
            yield f"{self.judge} answers in this process and costs nothing"
            return
        for name, part in (("questions", self.proposals), ("checks", self.checks)):
            yield from (f"{name}: {line}" for line in cost_plan_lines(part))


def added(one: float | None, other: float | None) -> float | None:
    """Add two sums, where both are known."""
    return None if one is None or other is None else one + other


def plan_completion(
    planned: PlannedCells,
    client: Client | FreeClient,
    *,
    journal: Path | None,
    batch: bool,
    pilot: Sequence[Request] = (),
) -> CompletionPlan:
    """Plan, offline; `pilot` are checks that a pilot asked, from which those to come are reckoned."""
    cells, rounds = len(planned.states), planned.limits.rounds
    cost = partial(plan_requests, client, spent=read_spending(journal), batch=batch)

    def both(kind: Questions, asked: Sequence[Request] = ()) -> CostPlan:
        usual = cost(chain(asked, islice(kind(planned, worst=False), len(asked), None)))
        worst = cost(kind(planned, worst=True))
        times = usual.requests // worst.requests if worst.requests else 1
        return replace(usual, most=None if worst.most is None else worst.most * times)

    return CompletionPlan(client.model, cells, rounds, both(asked_at_most), both(checked_at_most, pilot))


def asked_at_most(planned: PlannedCells, *, worst: bool) -> Iterator[Request]:
    """Write questions as large as they can become: the first round as it is, the others full of names."""
    name, limits = LONGEST_NAME if worst else USUAL_NAME, planned.limits
    most, wording = min(limits.per_round, limits.per_cell), wordings()[PROPOSE]
    for state in planned.states:
        for number in range(1, limits.rounds + 1):
            earlier = min(most * (number - 1), limits.per_cell)
            last = min(most, earlier)
            others = MOST_REPEATED if number > 1 and worst else 0
            shown = Shown(
                number,
                [*planned.there(state, name), *[name] * (earlier - last)],
                {str(place + 1): name for place in range(last)},
                [name] * others,
                [name] * others,
            )
            yield proposal_request(state.cell, shown, limits, instructions=wording)


def checked_at_most(planned: PlannedCells, *, worst: bool) -> Iterator[Request]:
    """Write a check for each proposal that can come; of the largest, which are all the same, one for each cell."""
    wording = wordings()[VERIFY]
    item = planned.names.describe([largest_item() if worst else USUAL_ITEM])[0]
    for state in planned.states:
        one = check_of(state, item, worst=worst)
        request = verification_request(*one, instructions=wording)
        yield from repeat(request, 1 if worst else planned.checks)


def check_of(
    state: CellState, item: Mapping[str, object] | None, *, worst: bool
) -> tuple[str, Proposal, Cell, Mapping[str, object] | None]:
    """Make up a proposal."""
    name = LONGEST_NAME if worst else USUAL_NAME
    others = [name] * (MOST_OTHER_NAMES if worst else 1)
    kind = max(state.cell.kinds, key=len)
    proposal = Proposal(name, others, kind, WORST_TEXT * LONGEST_WHAT if worst else USUAL_TEXT)
    return f"{state.cell.id}/00/000", proposal, state.cell, item


def largest_item() -> KnownItem:
    """Make up an item of which nothing more can be shown."""
    long = WORST_TEXT * 10_000
    names = tuple(f"Q{WORST_TEXT * LONGEST_CLASS}{number}" for number in range(MOST_LISTED))
    return KnownItem("Q1", "x", long, long, frozenset(), names, names, "dropped", long)
