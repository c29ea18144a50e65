"""The state of a running server: its script and where it stands, its statistics, what it holds for its clients."""

import asyncio
import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.llm.server.answers import Model
from tests.llm.server.error_replies import Refused
from tests.llm.server.made_replies import Question, fraction_of
from tests.llm.server.schedule import Schedule
from tests.llm.server.script import Fault, Script
from tests.llm.server.statistics import Record, Statistics
from tests.llm.server.wire import Arrived, Connection, Departing

_PROMISES = {"retry-after", "retry-after-date", "retry-after-ms", "retry-info"}


@dataclass(slots=True)
class StoredFile:
    """A file somebody uploaded, or a job wrote."""

    name: str
    provider: str
    filename: str
    purpose: str
    content: bytes
    announced: int = 0
    created: int = field(default_factory=lambda: int(time.time()))


@dataclass(slots=True)
class Storage:
    """Files and jobs by name, in the order of their making; names are never given twice."""

    files: dict[str, StoredFile] = field(default_factory=dict)
    jobs: dict[str, Any] = field(default_factory=dict)
    uploads: dict[str, StoredFile] = field(default_factory=dict)
    made: int = 0

    def new_name(self, prefix: str) -> str:
        """Make a name, the same ones in the same order for every server."""
        self.made += 1
        return prefix + hashlib.sha256(f"{prefix}{self.made}".encode()).hexdigest()[:24]

    def keep(self, prefix: str, provider: str, content: bytes, *, filename: str, purpose: str) -> StoredFile:
        """Keep a new file."""
        stored = StoredFile(self.new_name(prefix), provider, filename, purpose, content)
        self.files[stored.name] = stored
        return stored


@dataclass(slots=True)
class Service:
    """Everything that lasts from one request to the next."""

    script: Script
    model: Model | None = None
    clock: Callable[[], float] = time.monotonic
    statistics: Statistics = field(default_factory=Statistics)
    schedule: Schedule = field(init=False)
    storage: Storage = field(default_factory=Storage)
    attempts: Counter[str] = field(default_factory=Counter)
    promised: dict[str, float] = field(default_factory=dict)
    connections: set[Connection] = field(default_factory=set)
    work: "set[asyncio.Task[None]]" = field(default_factory=set)
    epoch: float = 0.0
    first: int = 0
    first_job: int = 0
    lines: int = 0
    fetches: int = 0

    def __post_init__(self) -> None:
        """Begin."""
        self.follow(self.script)

    def follow(self, script: Script) -> None:
        """Follow another script from now on; its time and its counts of requests start anew, statistics go on."""
        self.script, self.schedule, self.epoch = script, Schedule(script), self.clock()
        self.first, self.first_job = len(self.statistics.records), self.statistics.jobs_made
        self.lines = 0
        self.attempts.clear()
        self.promised.clear()

    def now(self) -> float:
        """Say how many seconds the script has been followed."""
        return self.clock() - self.epoch

    @property
    def busy(self) -> int:
        """How much of what arrived is not settled: connections but the asker's, and answers that are being made.

        New connections are taken in the order in which they came. Once everybody who asked is dead and this is 0,
        nothing is sold any more that was not counted.
        """
        return len(self.connections) - 1 + len(self.work) + self.statistics.in_flight

    def begin(self, operation: str, provider: str) -> Record:
        """Open the record of a request."""
        number = len(self.statistics.records) - self.first + 1
        record = Record(number, self.now(), operation, provider)
        self.statistics.received(record)
        return record

    def asked(self, record: Record, question: Question) -> None:
        """Note what a request asks."""
        record.row, record.digest, record.model = question.row, question.digest, question.model
        self.attempts[question.row] += 1
        record.attempt = self.attempts[question.row]
        record.early = max(0.0, self.promised.get(f"row {question.row}", 0.0) - record.at)
        record.early_model = max(0.0, self.promised.get(f"model {question.model}", 0.0) - record.at)

    def line_fault(self, question: Question) -> Fault | None:
        """Look up what is to go wrong with a line of a batch, which is looked at like a request of its own."""
        self.attempts[question.row] += 1
        self.lines += 1
        seen = Record(
            self.lines, self.now(), "batch-line", question.provider,
            row=question.row, model=question.model, attempt=self.attempts[question.row],
        )  # fmt: skip
        return self.schedule.fault(seen, question.user.encode("utf-8", "replace"), mode="batch")

    def finish(self, record: Record, departing: Departing, fault: str = "", hint: Fault | None = None) -> Departing:
        """Close a record with the reply that goes out, once it has gone out."""
        statistics = self.statistics
        cut = departing.cut in {"before", "after"} or departing.delay is None
        statistics.decided(record, 0 if cut else departing.status, fault)

        def sent() -> None:
            statistics.ended(record, "sent")
            if hint is not None and hint.hint in _PROMISES and hint.wait > 0:
                until = self.now() + (float(math.ceil(hint.wait)) if hint.hint == "retry-after" else hint.wait)
                for name in (f"row {record.row}", f"model {record.model}"):
                    self.promised[name] = max(self.promised.get(name, 0.0), until)

        if record.provider == "openai":
            departing.headers.append(("x-request-id", f"req_{record.number:08d}"))
        departing.on_sent = sent
        departing.on_left = lambda: statistics.ended(record, "cut" if departing.cut else "left")
        return departing

    def latency(self, question: Question) -> float:
        """Say how long an answer takes."""
        script = self.script
        return script.latency + script.jitter * fraction_of("latency", "", question.digest)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request with what the server knows about it. `groups` are the named parts of its path."""

    service: Service
    record: Record
    arrived: Arrived
    groups: dict[str, str]

    def json(self) -> Any:
        """Read the body as JSON.

        Raises:
            Refused: it is none.
        """
        try:
            return orjson.loads(self.arrived.body or b"{}")
        except ValueError:
            raise Refused("bad-request", "Invalid JSON payload received.") from None

    def file(self, prefix: str = "") -> StoredFile:
        """Find the file that a path names.

        Raises:
            Refused: there is none; Google tells nobody whether it is that, or somebody else's.
        """
        name = prefix + self.groups["name"]
        stored = self.service.storage.files.get(name)
        if stored is None or stored.provider != self.record.provider:
            kind = "forbidden" if self.record.provider == "google" else "not-found"
            raise Refused(kind, f"No such File object: {name}", param="id", code="not_found")
        return stored
