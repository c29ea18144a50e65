"""Where a row stands, by what the journal holds of it: how it ended, or what has to be asked next.

Nothing is remembered outside the journal, so that a row stands where it stood before a kill.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from culturekit.llm.batches.batch_client import BatchClient
from culturekit.llm.client import Client, Failure, Outgoing, Reply, Request, Usage
from culturekit.llm.journal import Journal
from culturekit.llm.journal_entry import ANSWERS, Entry, Reading
from culturekit.llm.keys import key_of
from culturekit.llm.outcomes import Answered
from culturekit.llm.row_automaton import Row, failed, heard

__all__ = ["Ask", "Standing"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A request that has to leave: the next attempt at the first question, or at its repair."""

    key: bytes
    outgoing: Outgoing
    attempt: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Takes rows through what the journal holds of them; `cost` prices what a reply used, by how it was bought."""

    client: Client
    batches: BatchClient
    journal: Journal
    cost: Callable[[Entry, Usage], float | None]
    run: str
    tries: int
    found: dict[bytes, Sequence[Entry]] = field(default_factory=dict)

    def key(self, request: Request) -> bytes:
        """Give the key of a request as it leaves in a batch."""
        return key_of(self.client.identity, self.batches.compose(request))

    def of_all(self, requests: Sequence[Request], keys: Sequence[bytes]) -> list[Answered | Ask]:
        """Tell where rows stand; `keys` are those of their first questions."""
        self.found.clear()
        self.found.update(dict.fromkeys(keys, ()))
        self.found.update(self.journal.found(list(self.found), run=self.run))
        return [self.of(request, key) for request, key in zip(requests, keys, strict=True)]

    def of(self, request: Request, key: bytes) -> Answered | Ask:
        """Tell how a row ended, or what to ask next."""
        step = self.through(Row(request), self.entries(key))
        if isinstance(step, Row) and step.repairing:
            key = self.key(step.request)
            step = self.through(step, self.entries(key))
        if isinstance(step, Answered):
            return step
        return Ask(key, self.batches.compose(step.request), step.tries + 1)

    def entries(self, key: bytes) -> Sequence[Entry]:
        """Give what the journal holds for a key."""
        if key not in self.found:
            self.found[key] = self.journal.found([key], run=self.run).get(key, ())
        return self.found[key]

    def through(self, row: Row, entries: Sequence[Entry]) -> Row | Answered:
        """Take a row through the replies to what it asks now, until it ends or asks something else."""
        for entry in entries:
            step = self.after(row, entry)
            if isinstance(step, Answered) or step.repairing != row.repairing:
                return step
            row = step
        return row

    def after(self, row: Row, entry: Entry) -> Row | Answered:
        """Take in one entry; of other runs only answers count, and what ended a run counts for nothing."""
        ours = entry.run == self.run
        if entry.kind != "reply":
            if not ours or entry.kind == "fatal":
                return row
            return failed(row, failure_of(entry), tries=self.tries)
        reply = self.client.read(entry.raw)
        step = heard(row, reply, tries=self.tries)
        if not entry.outcome:
            self.journal.note(entry.number, Reading(said(reply, step), reply.usage, self.cost(entry, reply.usage)))
        answer = isinstance(step, Answered) and step.outcome in ANSWERS
        return step if ours or answer else row


def said(reply: Reply, step: Row | Answered) -> str:
    """Name what one reply said, which is not always how its row ends."""
    if reply.stop == "unreadable":
        return "unreadable"
    return step.outcome if isinstance(step, Answered) else "invalid"


def failure_of(entry: Entry) -> Failure:
    """Make the failure of an entry again."""
    return Failure(entry.kind, "", status=entry.status, raw=entry.raw)  # type: ignore[arg-type]
