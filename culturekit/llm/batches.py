"""Batches of any provider: what they are, the jobs written down, calls that are tried again, and rows cut into jobs."""

import asyncio
import hashlib
import logging
import tempfile
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, BinaryIO, Literal, Protocol, TypeAlias, TypeVar, cast, runtime_checkable

import msgspec

from culturekit.errors import CultureKitError, IntegrityError, UsageError
from culturekit.llm.asking import Replay
from culturekit.llm.client import Failure, FailureKind, Identity, Outgoing, Request
from culturekit.llm.dispatch import APART, LONG_HOLD, answers_again, given_up, retrying, run_ended_by, spoken
from culturekit.llm.endpoints import is_elsewhere
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry, Reading, key_of
from culturekit.llm.rows import Answered, Question, Row
from culturekit.stages.offline import check_sending

# `waiting` and `running` go on by themselves; the others are for good, and may have results all the same.
JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "expired", "cancelled"]
Status: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=999)]  # of HTTP, or of google.rpc; any other number is none
ENDED: frozenset[JobState] = frozenset({"done", "failed", "expired", "cancelled"})


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The most that one job can hold."""

    rows: int
    size: int


@dataclass(frozen=True, slots=True)
class BatchRow:
    """One request of a job, named by its content key in hexadecimal digits."""

    name: str
    outgoing: Outgoing


@dataclass(frozen=True, slots=True)
class Job:
    """A job as the provider describes it.

    `counted` is how many rows the provider says it has results for, None where it does not say. Results are in the
    files named by `outputs`, or in `inline`. `kind` says what the failure of a whole job means.
    """

    number: str
    state: JobState
    tag: str = ""
    created: float = 0.0
    counted: int | None = None
    outputs: tuple[str, ...] = ()
    inline: tuple[bytes, ...] = ()
    kind: FailureKind = "server"
    detail: str = ""
    rejected: tuple[tuple[int, str], ...] = ()  # lines of the job, counted from 1, that made it fail, and why


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What came back for one row: the raw bytes that a reply would have had online, or of an error.

    `paid` is the raw reply whose usage is to be paid, where `raw` is none.
    """

    name: str
    kind: Literal["reply"] | FailureKind
    status: int
    raw: bytes
    detail: str = ""
    paid: bytes = b""

    @property
    def billed(self) -> bytes:
        """Give the reply whose usage is to be paid; empty when nothing is."""
        return self.raw if self.kind == "reply" else self.paid


class BatchClient(Protocol):
    """The batches of one provider, for one model."""

    @property
    def limits(self) -> BatchLimits:
        """The most that one job can hold."""

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it will leave in a batch; nothing is sent."""

    def line(self, row: BatchRow) -> bytes:
        """Write the line of one row, its images in it, with the line feed."""

    async def upload(self, lines: BinaryIO, *, size: int, tag: str) -> str:
        """Bring the lines to the provider and give the name they have there; empty when they go with the job."""

    async def create(self, lines: BinaryIO, *, upload: str, tag: str) -> Job:
        """Create the job: from here on it is bought.

        Raises:
            Failure: the job was not created, or nobody knows: `find` it before creating it again.
        """

    async def find(self, tag: str) -> list[Job]:
        """List the jobs that carry exactly this tag, the oldest first."""

    async def withdraw(self, upload: str) -> None:
        """Delete uploaded lines, so that no job can be created from them any more."""

    async def poll(self, number: str) -> Job:
        """Ask how a job is doing."""

    def results(self, job: Job) -> AsyncIterator[BatchResult | None]:
        """Read the results that there are, in any order; None for a line that cannot be read."""

    async def close(self) -> None:
        """Close the connections."""


@runtime_checkable
class Batched(Protocol):
    """A client that can also be asked in batches."""

    def batches(self) -> BatchClient:
        """Give its batches; nothing is connected yet."""


Phase: TypeAlias = Literal["sending", "open", "collected", "void"]

KEY_BYTES = hashlib.sha256().digest_size
ATTEMPT_BYTES = 4
ROW_BYTES = KEY_BYTES + ATTEMPT_BYTES


class SmallFacts(Protocol):
    """The part of the journal that keeps facts, each durable when `remember` returns."""

    def remember(self, name: str, value: bytes) -> None:
        """Keep a fact, over what was there."""

    def recall(self, name: str) -> bytes | None:
        """Give a fact back."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A row of a job: the content key of its request, and which attempt at it this is."""

    key: bytes
    attempt: int


class BodyPress:
    """Presses the bodies of a job's requests together; they are alike, and take little room."""

    def __init__(self) -> None:
        """Start empty."""
        self.press = zlib.compressobj(6)
        self.parts: list[bytes] = []

    def add(self, body: bytes) -> None:
        """Take one body; canonical JSON has no line feed in it."""
        self.parts.append(self.press.compress(body + b"\n"))

    def pressed(self) -> bytes:
        """Give all of them; nothing can be added afterwards."""
        self.parts.append(self.press.flush())
        return b"".join(self.parts)


@dataclass(frozen=True, slots=True)
class BatchRecord:
    """What is written down of a job; `number` is ours, `job` the provider's, `begun` when it began to be created."""

    number: int
    run: str
    phase: Phase
    begun: float
    reserved: float
    upload: str = ""
    job: str = ""

    @property
    def tag(self) -> str:
        """Name the job as the provider is told it."""
        return tag_of(self.run, self.number)


class JobBook:
    """The jobs of one journal, in the order in which they were planned."""

    def __init__(self, facts: SmallFacts) -> None:
        """Read what is written down."""
        self.facts = facts
        self.records: dict[int, BatchRecord] = {}
        while (raw := facts.recall(place(len(self.records) + 1))) is not None:
            record = msgspec.json.decode(raw, type=BatchRecord)
            self.records[record.number] = record

    def next_tag(self, run: str) -> str:
        """Name the job that will be begun next."""
        return tag_of(run, len(self.records) + 1)

    def begin(
        self, rows: Sequence[Planned], bodies: bytes, *, run: str, begun: float, reserved: float, upload: str
    ) -> BatchRecord:
        """Write down that a job is about to be created, its rows and their bodies first."""
        number = len(self.records) + 1
        packed = b"".join(row.key + row.attempt.to_bytes(ATTEMPT_BYTES, "big") for row in rows)
        self.facts.remember(place(number, "rows"), packed)
        self.facts.remember(place(number, "bodies"), bodies)
        return self.store(BatchRecord(number, run, "sending", begun, reserved, upload))

    def move(self, record: BatchRecord, phase: Phase, *, job: str = "") -> BatchRecord:
        """Write down how far a job is."""
        return self.store(replace(record, phase=phase, job=job or record.job))

    def store(self, record: BatchRecord) -> BatchRecord:
        """Make a record durable."""
        self.facts.remember(place(record.number), msgspec.json.encode(record))
        self.records[record.number] = record
        return record

    def unfinished(self) -> list[BatchRecord]:
        """List the jobs whose results are not all in the journal."""
        return [record for record in self.records.values() if record.phase in {"sending", "open"}]

    def rows(self, record: BatchRecord) -> list[Planned]:
        """Read the rows of a job, in the order of its lines."""
        packed = self.recalled(record, "rows")
        return [
            Planned(
                packed[start : start + KEY_BYTES], int.from_bytes(packed[start + KEY_BYTES : start + ROW_BYTES], "big")
            )
            for start in range(0, len(packed), ROW_BYTES)
        ]

    def bodies(self, record: BatchRecord) -> Iterator[bytes]:
        """Read the bodies of a job's requests, in the order of its lines."""
        return iter(zlib.decompress(self.recalled(record, "bodies")).splitlines())

    def recalled(self, record: BatchRecord, what: str) -> bytes:
        """Read a fact that has to be there."""
        value = self.facts.recall(place(record.number, what))
        if value is None:
            raise IntegrityError(
                f"the {what} of batch job {record.number} are not in the journal",
                hint="Put a backup of the journal in its place; without them the results of the job cannot be placed.",
            )
        return value


def place(number: int, what: str = "job") -> str:
    """Name the fact that holds something about a job."""
    return f"batch/{number}/{what}"


def tag_of(run: str, number: int) -> str:
    """Name a job by the run that planned it and its number in the journal."""
    return f"culturekit-{run}-{number}"


PASSING = frozenset({"busy", "server", "timeout", "connection"})

logger = logging.getLogger(__name__)

Thing = TypeVar("Thing")


class Clock(Protocol):
    """What time it is, and how to wait; tests bring their own."""

    def now(self) -> float:
        """Seconds since 1970."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class WallClock:
    """The clock on the wall as it was in the beginning; from then on it never jumps."""

    def __init__(self) -> None:
        """Look at the wall once."""
        self.began = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self.began + time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


@dataclass(frozen=True, slots=True)
class Pauses:
    """How long to wait between two looks at the jobs, in seconds.

    `settle` is how long after a creation that nobody saw the end of a job may still turn up at the provider.
    """

    first: float = 1.0
    longest: float = 60.0
    growth: float = 1.5
    settle: float = 10.0

    def after(self, pause: float) -> float:
        """Give the pause that follows one; the first follows none."""
        return min(max(self.first, pause * self.growth), self.longest)


class Caller:
    """Calls a provider until it answers; what one call learns about waiting holds for all of them."""

    def __init__(self, clock: Clock, pauses: Pauses, *, patience: float, model: str) -> None:
        """Start without a reason to wait."""
        self.model = model
        self.clock = clock
        self.pauses = pauses
        self.patience = patience
        self.closed_until = self.asked_until = 0.0
        self.last = ""
        self.failing_since: float | None = None
        self.spoke = -APART

    async def call(self, ask: Callable[[], Awaitable[Thing]], *, retried: frozenset[str] = PASSING) -> Thing:
        """Ask again while what went wrong may pass.

        Raises:
            Failure: of a kind that is not asked again.
            UpstreamUnavailable: it went on for longer than patience lasts.
        """
        check_sending(self.model)
        began = self.clock.now()
        pause, patience = 0.0, self.patience
        while True:
            await self.turn(began, patience)
            try:
                answer = await ask()
            except Failure as failure:
                pause = self.pauses.after(pause)
                if failure.wait is not None:
                    self.asked_until = max(self.asked_until, self.clock.now() + failure.wait)
                self.hold(failure.wait if failure.wait is not None else pause)
                self.last = failure.detail
                patience = min(self.patience, failure.patience or self.patience)
                if failure.sent and failure.kind not in retried:
                    raise
                self.fails(patience)
            else:
                self.answers()
                return answer

    async def turn(self, began: float, patience: float) -> None:
        """Wait until the provider wants to hear from us again.

        Raises:
            UpstreamUnavailable: that is later than patience lasts.
        """
        held = self.closed_until - self.clock.now()
        if self.closed_until - began > patience:
            asked = self.asked_until - self.clock.now()
            raise given_up(self.model, patience=patience, held_for=asked, last=self.last)
        if held >= LONG_HOLD:
            logger.warning("%s: nothing is sent for %s; Ctrl-C keeps everything", self.model, spoken(held))
        while (left := self.closed_until - self.clock.now()) > 0:
            await self.clock.sleep(left)

    def fails(self, patience: float) -> None:
        """Say that calls fail."""
        now = self.clock.now()
        self.failing_since = self.failing_since or now
        if now - self.spoke >= APART:
            self.spoke = now
            logger.warning("%s: %s", self.model, retrying(self.last, patience))

    def answers(self) -> None:
        """Say that calls succeed again."""
        if self.failing_since is not None:
            logger.warning("%s: %s", self.model, answers_again(self.clock.now() - self.failing_since))
        self.failing_since, self.spoke = None, -APART

    def hold(self, seconds: float) -> None:
        """Let nothing be sent for a while."""
        self.closed_until = max(self.closed_until, self.clock.now() + seconds)


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


IN_MEMORY = 8_000_000  # lines beyond as many bytes wait on disk


class Purse(Protocol):
    """Who decides whether a row can be asked."""

    def reserve(self, ask: Ask) -> float | None:
        """Set aside what a row can cost at worst, and say how much; None when there is not enough."""

    def too_large(self, ask: Ask, size: int) -> None:
        """Hear of a row that fits into no job."""


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


UNCLEAR = frozenset({"server", "timeout", "connection"})  # failures after which the job may be there all the same

NO_SUCH_PLACE = frozenset({404, 405, 501})  # statuses of a server that does not know what it was asked for


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
