"""A row while it is being asked: where it stands, what leaves for it, what that may cost."""

import math
from dataclasses import dataclass, field

from culturekit.llm.client import Outgoing
from culturekit.llm.journal.journal_entry import Reading
from culturekit.llm.outcomes import Answered
from culturekit.llm.row_automaton import Row

__all__ = ["Question"]


@dataclass(slots=True, eq=False)
class Question:
    """One row at work. It changes hands, never being in two at once: prepared here, sent there, and back.

    `read` are the journal's numbers of the replies that brought the row where it is, with what they said; `twins` are
    the same question again, further down, which are answered by what comes for this one.
    """

    place: int
    row: Row
    outgoing: Outgoing
    key: bytes
    read: list[tuple[int, Reading]] = field(default_factory=list)
    twins: list["Question"] = field(default_factory=list)
    bought: bool = False
    ended: Answered | None = None
    answered: Answered | None = None
    """How the row ended; it may be given out once `answered` is set, by the thread that gives out."""

    input_bound: int = 0
    input_guess: int = 0
    reserved: float = 0.0
    ticket: str = ""
    """The fact of the journal that says that it has left."""

    expected_tokens: float = 0.0

    failures: int = 0
    first_sent: float = math.inf
    sent: float = 0.0
    ready: float = 0.0

    def weight(self) -> int:
        """Give the bytes that this question holds on to."""
        return len(self.outgoing.body) + sum(len(image.content) for image in self.outgoing.images)
