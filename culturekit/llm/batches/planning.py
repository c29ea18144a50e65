"""What has to be asked, cut into jobs: in order, each as large as the provider and the budget allow.

Where a row stands, by what the journal holds of it: how it ended, or what has to be asked next. Nothing is remembered
outside the journal, so that a row stands where it stood before a kill.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, cast

from culturekit.errors import CultureKitError, UsageError
from culturekit.llm.batches.batch_client import BatchClient, BatchRow, Job
from culturekit.llm.batches.jobs import BatchRecord, BodyPress, JobBook, Planned
from culturekit.llm.batches.waiting import Caller
from culturekit.llm.client import Failure, Identity, Outgoing, Request
from culturekit.llm.clients.endpoints import is_elsewhere
from culturekit.llm.endings import run_ended_by
from culturekit.llm.journal.journal import Journal
from culturekit.llm.journal.journal_entry import Entry, Reading, key_of
from culturekit.llm.journal.replaying import Replay
from culturekit.llm.outcomes import Answered
from culturekit.llm.question import Question
from culturekit.llm.row_automaton import Row

__all__ = ["Ask", "Creator", "Plan", "Purse", "Standing", "cut"]

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
        return [self.of_row(request, key) for request, key in zip(requests, keys, strict=True)]

    def of_row(self, request: Request, key: bytes) -> Answered | Ask:
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


IN_MEMORY = 8_000_000
"""Lines beyond as many bytes wait on disk."""


class Purse(Protocol):
    """Who decides whether a row can be asked."""

    def reserve(self, ask: Ask) -> float | None:
        """Set aside what a row can cost at worst, and say how much; None when there is not enough."""
        ...

    def too_large(self, ask: Ask, size: int) -> None:
        """Hear of a row that fits into no job."""
        ...


@dataclass(slots=True)
class Plan:
    """A job to be: its lines, whose they are, and what they can cost at worst."""

    lines: BinaryIO
    rows: list[Planned] = field(default_factory=list)
    bodies: BodyPress = field(default_factory=BodyPress)
    size: int = 0
    reserved: float = 0.0

    def add(self, ask: Ask, line: bytes, cost: float) -> None:
        """Put a row in."""
        self.lines.write(line)
        self.rows.append(Planned(ask.key, ask.attempt))
        self.bodies.add(ask.outgoing.body)
        self.size += len(line)
        self.reserved += cost


async def cut(asks: Iterable[Sequence[Ask]], batches: BatchClient, purse: Purse) -> AsyncIterator[Plan]:
    """Cut into plans as long as the money lasts; all asks are gone through.

    A plan is closed when the next one is asked for.
    """
    limits, plan, money_left = batches.limits, empty(), True
    try:
        for some in asks:
            await asyncio.sleep(0)
            for ask in some if money_left else ():
                line = batches.line(BatchRow(ask.key.hex(), ask.outgoing))
                if len(line) > limits.size:
                    purse.too_large(ask, len(line))
                    continue
                if len(plan.rows) >= limits.rows or plan.size + len(line) > limits.size:
                    yield plan
                    plan.lines.close()
                    plan = empty()
                cost = purse.reserve(ask)
                if cost is None:
                    money_left = False
                    break
                plan.add(ask, line, cost)
        if plan.rows:
            yield plan
    finally:
        plan.lines.close()


def empty() -> Plan:
    """Begin a plan."""
    return Plan(cast(BinaryIO, tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)))


UNCLEAR = frozenset({"server", "timeout", "connection"})
"""Failures after which the job may be there all the same."""


NO_SUCH_PLACE = frozenset({404, 405, 501})
"""Statuses of a server that does not know what it was asked for."""


@dataclass(frozen=True, slots=True)
class Creator:
    """Creates the jobs of one run."""

    batches: BatchClient
    identity: Identity
    caller: Caller
    book: JobBook
    run: str

    async def create(self, plan: Plan) -> BatchRecord:
        """Create a job; the record says `void` when it came to nothing.

        Raises:
            CultureKitError: the provider does not take it.
        """
        tag = self.book.next_tag(self.run)
        try:
            upload = await self.caller.call(lambda: self.batches.upload(plan.lines, size=plan.size, tag=tag))
        except Failure as failure:
            raise self.ended_by(failure) from failure
        record = self.book.begin(
            plan.rows,
            plan.bodies.pressed(),
            run=self.run,
            begun=self.caller.clock.now(),
            reserved=plan.reserved,
            upload=upload,
        )
        try:
            job = await self.caller.call(
                lambda: self.batches.create(plan.lines, upload=upload, tag=tag),
                retried=frozenset({"busy"}),
            )
        except Failure as failure:
            if failure.kind in UNCLEAR:
                return await self.find(record)
            self.book.move(record, "void")
            raise self.ended_by(failure) from failure
        return self.book.move(record, "open", job=job.number)

    def ended_by(self, failure: Failure) -> CultureKitError:
        """Make the error of a job that cannot be created: a server of one's own may know no batches at all."""
        if failure.status not in NO_SUCH_PLACE or not is_elsewhere(self.identity):
            return run_ended_by(failure, self.identity.model)
        return UsageError(
            "this server has no batch API",
            where=self.identity.base_url,
            expected="a server that takes files and batches, as the provider's own does",
            found=f"status {failure.status}",
            hint="Nothing was bought. Ask it one by one: leave out --batch.",
        )

    async def find(self, record: BatchRecord) -> BatchRecord:
        """Look for a job that was begun and whose number nobody stored; without one, make sure that none can come.

        A creation may still be under way somewhere: its lines are withdrawn, and some time is given to it.
        """
        found = await self.listed(record)
        if not found:
            if record.upload:
                await self.caller.call(lambda: self.batches.withdraw(record.upload))
            settled = record.begun + self.caller.pauses.settle
            if (left := settled - self.caller.clock.now()) > 0:  # a clock that was ahead is not waited for
                await self.caller.clock.sleep(min(left, self.caller.pauses.settle))
            found = await self.listed(record)
        if not found:
            return self.book.move(record, "void")
        return self.book.move(record, "open", job=found[0].number)

    async def listed(self, record: BatchRecord) -> list[Job]:
        """List the jobs that carry the tag of a record."""
        try:
            return await self.caller.call(lambda: self.batches.find(record.tag))
        except Failure as failure:
            raise run_ended_by(failure, self.caller.model) from failure
