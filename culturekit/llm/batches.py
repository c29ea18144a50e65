"""Batches of any provider: what a client of them does, and the jobs as the journal keeps them."""

import hashlib
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, BinaryIO, Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

from culturekit.core.errors import IntegrityError
from culturekit.llm.client import FailureKind, Outgoing, Request

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
        """Return the reply whose usage is to be paid; empty when nothing is."""
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
        """Return its batches; nothing is connected yet."""


Phase: TypeAlias = Literal["sending", "open", "collected", "void"]

_KEY_BYTES = hashlib.sha256().digest_size
_ATTEMPT_BYTES = 4
_ROW_BYTES = _KEY_BYTES + _ATTEMPT_BYTES


class _SmallFacts(Protocol):
    """The part of the journal that keeps facts, each durable when `remember` returns."""

    def remember(self, name: str, value: bytes) -> None:
        """Keep a fact, over what was there."""

    def recall(self, name: str) -> bytes | None:
        """Return a fact back."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A row of a job: the content key of its request, and which attempt at it this is."""

    key: bytes
    attempt: int


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
        return _tag_of(self.run, self.number)


class JobBook:
    """The jobs of one journal, in the order in which they were planned."""

    def __init__(self, facts: _SmallFacts) -> None:
        """Read what is written down."""
        self.facts = facts
        self.records: dict[int, BatchRecord] = {}
        while (raw := facts.recall(_fact(len(self.records) + 1))) is not None:
            record = msgspec.json.decode(raw, type=BatchRecord)
            self.records[record.number] = record

    def next_tag(self, run: str) -> str:
        """Name the job that will be begun next."""
        return _tag_of(run, len(self.records) + 1)

    def begin(
        self, rows: Sequence[Planned], bodies: bytes, *, run: str, begun: float, reserved: float, upload: str
    ) -> BatchRecord:
        """Write down that a job is about to be created, its rows and their bodies first."""
        number = len(self.records) + 1
        packed = b"".join(row.key + row.attempt.to_bytes(_ATTEMPT_BYTES, "big") for row in rows)
        self.facts.remember(_fact(number, "rows"), packed)
        self.facts.remember(_fact(number, "bodies"), bodies)
        return self.store(BatchRecord(number, run, "sending", begun, reserved, upload))

    def move(self, record: BatchRecord, phase: Phase, *, job: str = "") -> BatchRecord:
        """Write down how far a job is."""
        return self.store(replace(record, phase=phase, job=job or record.job))

    def store(self, record: BatchRecord) -> BatchRecord:
        """Make a record durable."""
        self.facts.remember(_fact(record.number), msgspec.json.encode(record))
        self.records[record.number] = record
        return record

    def unfinished(self) -> list[BatchRecord]:
        """List the jobs whose results are not all in the journal."""
        return [record for record in self.records.values() if record.phase in {"sending", "open"}]

    def rows(self, record: BatchRecord) -> list[Planned]:
        """Read the rows of a job, in the order of its lines."""
        packed = self.recalled(record, "rows")
        rows = (packed[start : start + _ROW_BYTES] for start in range(0, len(packed), _ROW_BYTES))
        return [Planned(row[:_KEY_BYTES], int.from_bytes(row[_KEY_BYTES:], "big")) for row in rows]

    def bodies(self, record: BatchRecord) -> Iterator[bytes]:
        """Read the bodies of a job's requests, in the order of its lines."""
        return iter(zlib.decompress(self.recalled(record, "bodies")).splitlines())

    def recalled(self, record: BatchRecord, what: str) -> bytes:
        """Read a fact that has to be there."""
        value = self.facts.recall(_fact(record.number, what))
        if value is None:
            raise IntegrityError(
                f"the {what} of batch job {record.number} are not in the journal",
                hint="Put a backup of the journal in its place; without them the results of the job cannot be placed.",
            )
        return value


def _fact(number: int, what: str = "job") -> str:
    return f"batch/{number}/{what}"


def _tag_of(run: str, number: int) -> str:
    return f"culturekit-{run}-{number}"
