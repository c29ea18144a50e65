"""Where one cell of a completion stands between its rounds, and what its next question shows."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from culturekit.builders.completing.completion_additions import Additions, ProposalRow
from culturekit.builders.completing.completion_names import proposal_problem, stripped_name
from culturekit.builders.completing.completion_questions import Cell, CompletionLimits, Proposal, ProposalReply, Shown
from culturekit.builders.folded_names import folded
from culturekit.llm.rows import Answered
from culturekit.records.choices import ANSWERED

__all__ = ["ADDED", "CellState", "Round"]

ADDED = ("added", "country added")


@dataclass(frozen=True, slots=True)
class Round:
    """What came of one question to the proposer."""

    cell: Cell
    number: int
    outcome: str
    ended: str
    counts: Counter[str]
    taken_back: int
    raw: str | None

    @property
    def set_aside(self) -> bool:
        """Whether the reply could not be used."""
        return self.outcome not in ANSWERED


@dataclass(slots=True)
class CellState:
    """A cell; `there` is named in each question, `seen` are the folded names that were proposed."""

    cell: Cell
    there: Sequence[str]
    limits: CompletionLimits
    round: int = 0
    earlier: list[str] = field(default_factory=list)
    last: dict[str, ProposalRow] = field(default_factory=dict)
    repeated: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    rows: list[ProposalRow] = field(default_factory=list)
    taken_back: int = 0
    ended: str = ""

    def next_question(self) -> Shown:
        """Begin a round, and say what its question shows."""
        self.round += 1
        added = {number: row.name for number, row in self.last.items()}
        return Shown(self.round, [*self.there, *self.earlier], added, self.repeated, self.refused)

    @property
    def room(self) -> int:
        """How many artifacts may still be added."""
        return self.limits.per_cell - len(self.earlier) - len(self.last)

    def take(self, reply: ProposalReply, additions: Additions) -> list[ProposalRow]:
        """Read a reply: what was wrong goes, and what is proposed is held to what a name must be."""
        self.criticise(reply.wrong, additions)
        languages = self.cell.concept.languages
        self.rows = [
            ProposalRow(
                self.cell, self.round, position, proposal, stripped_name(proposal.name),
                aliases=usable_aliases(proposal, languages),
            )
            for position, proposal in enumerate(reply.artifacts, start=1)
        ]  # fmt: skip
        opened: list[ProposalRow] = []
        for row in self.rows:
            self.look_at(row, room=self.room - len(opened))
            if not row.outcome:
                self.seen.add(folded(row.name))
                opened.append(row)
        return opened

    def criticise(self, wrong: Sequence[str], additions: Additions) -> None:
        """Take back what the proposer found wrong in its last round."""
        self.taken_back = len(wrong)
        for number in wrong:
            row = self.last.pop(number)
            additions.take_back(row, self.round)
            self.refused.append(row.name)
        self.earlier += [row.name for row in self.last.values()]
        self.last = {}

    def look_at(self, row: ProposalRow, *, room: int) -> None:
        """End a proposal that needs no verification."""
        problem = proposal_problem(row.name, languages=self.cell.concept.languages)
        if row.position > self.limits.per_round:
            row.end("left out", "over the limit of a round")
        elif problem is not None:
            row.end("left out", *problem)
        elif row.proposal.kind not in self.cell.kinds:
            row.end("left out", "kind that was not offered", row.proposal.kind)
        elif folded(row.name) in self.seen:
            row.end("repeated")
        elif room <= 0:
            row.end("left out", "over the limit of a cell")

    def close(self, answered: Answered) -> Round:
        """End a round, and with it the cell where nothing more may or need be asked."""
        added = [row for row in self.rows if row.outcome in ADDED]
        self.last = {str(number): row for number, row in enumerate(added, start=1)}
        self.repeated = [row.name for row in self.rows if row.outcome in {"known", "repeated"}]
        self.refused += [row.name for row in self.rows if row.outcome == "refused"]
        usable = isinstance(answered.value, ProposalReply)
        if not usable:
            self.ended = "no answer"
        elif not added:
            self.ended = "dry"
        elif self.room <= 0:
            self.ended = "limit of artifacts"
        elif self.round >= self.limits.rounds:
            self.ended = "limit of rounds"
        counts = Counter(row.outcome for row in self.rows)
        raw = None if usable else answered.raw.encode("utf-8", "replace").decode()
        return Round(self.cell, self.round, answered.outcome, self.ended, counts, self.taken_back, raw)


def usable_aliases(proposal: Proposal, languages: Sequence[str]) -> tuple[str, ...]:
    """Give the other names of a proposal that are names."""
    said = [stripped_name(name) for name in proposal.other_names]
    usable = [name for name in said if proposal_problem(name, languages=languages) is None]
    return tuple(name for name in dict.fromkeys(usable) if name != stripped_name(proposal.name))
