"""The jobs of a journal: which rows went into which job, written down before the job is created and after.

A job is *sending* from just before it is created until its number is stored, then *open* until every result of it is in
the journal, then *collected*. A job that turned out never to have been created is *void*: its rows are free again.
"""

import hashlib
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

import msgspec

from culturekit.errors import IntegrityError

__all__ = ["BatchRecord", "BodyPress", "JobBook", "Phase", "Planned", "SmallFacts"]

Phase: TypeAlias = Literal["sending", "open", "collected", "void"]

KEY_BYTES = hashlib.sha256().digest_size
ATTEMPT_BYTES = 4
ROW_BYTES = KEY_BYTES + ATTEMPT_BYTES


class SmallFacts(Protocol):
    """The part of the journal that keeps facts, each durable when `remember` returns."""

    def remember(self, name: str, value: bytes) -> None:
        """Keep a fact, over what was there."""
        ...

    def recall(self, name: str) -> bytes | None:
        """Give a fact back."""
        ...


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
