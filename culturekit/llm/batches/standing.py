"""Where a row stands, by what the journal holds of it: how it ended, or what has to be asked next.

Nothing is remembered outside the journal, so that a row stands where it stood before a kill.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from culturekit.llm.batches.batch_client import BatchClient
from culturekit.llm.client import Identity, Outgoing, Request
from culturekit.llm.journal.journal import Journal
from culturekit.llm.journal.journal_entry import Entry, Reading
from culturekit.llm.journal.keys import key_of
from culturekit.llm.journal.replaying import Replay
from culturekit.llm.outcomes import Answered
from culturekit.llm.question import Question
from culturekit.llm.row_automaton import Row

__all__ = ["Ask", "Standing"]

NOTHING = Outgoing(b"")


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that has to leave: the next attempt at the first question, or at its repair."""

    key: bytes
    row: Row
    outgoing: Outgoing
    attempt: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Takes rows through what the journal holds of them, as the engine does."""

    identity: Identity
    batches: BatchClient
    journal: Journal
    replay: Replay
    found: dict[bytes, Sequence[Entry]] = field(default_factory=dict)

    def key(self, request: Request) -> bytes:
        """Give the key of a request as it leaves in a batch."""
        return key_of(self.identity, self.batches.compose(request))

    def of_all(self, requests: Sequence[Request], keys: Sequence[bytes]) -> list[Answered | Ask]:
        """Tell where rows stand; `keys` are those of their first questions."""
        self.found.clear()
        self.found.update(dict.fromkeys(keys, ()))
        self.found.update(self.journal.found(list(self.found), run=self.replay.run))
        return [self.of(request, key) for request, key in zip(requests, keys, strict=True)]

    def of(self, request: Request, key: bytes) -> Answered | Ask:
        """Tell how a row ended, or what to ask next."""
        question = Question(0, Row(request), NOTHING, key)
        while self.replay.take_in(question, self.entries(question.key)):
            question.key = self.key(question.row.request)
        if question.ended is None:
            row = question.row
            return Ask(question.key, row, self.batches.compose(row.request), row.tries + 1)
        if question.ended.outcome == "repaired":
            for number, reading in question.read[:-1]:
                self.journal.note(number, Reading("repaired", reading.usage, reading.usd))
        return question.ended

    def entries(self, key: bytes) -> Sequence[Entry]:
        """Give what the journal holds for a key."""
        if key not in self.found:
            self.found[key] = self.journal.found([key], run=self.replay.run).get(key, ())
        return self.found[key]
