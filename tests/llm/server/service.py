"""The state of a running server: its script and where it stands, its statistics, what it holds for its clients."""

import asyncio
import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.llm.server.answers import Model
from tests.llm.server.jobs import Storage
from tests.llm.server.made_replies import Question, fraction_of
from tests.llm.server.schedule import Allowance, Circumstances, QuotaWindow, Schedule
from tests.llm.server.script import Fault, Script
from tests.llm.server.statistics import Record, Statistics
from tests.llm.server.wire import Arrived, Connection, Departing

_PROMISES = {"retry-after", "retry-after-date", "retry-after-ms", "retry-info"}


@dataclass(slots=True)
class Service:
    """Everything that lasts from one request to the next."""

    script: Script
    model: Model | None = None
    clock: Callable[[], float] = time.monotonic
    statistics: Statistics = field(init=False)
    schedule: Schedule = field(init=False)
    storage: Storage = field(default_factory=Storage)
    attempts: Counter[str] = field(default_factory=Counter)
    windows: dict[str, QuotaWindow] = field(default_factory=dict)
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
        self.statistics = Statistics(self.script.prices)
        self.follow(self.script)

    def follow(self, script: Script) -> None:
        """Follow another script from now on; its time and its counts of requests start anew, statistics go on."""
        self.script = script
        self.schedule = Schedule(script)
        self.statistics.prices = script.prices
        self.epoch = self.clock()
        self.first = len(self.statistics.records)
        self.first_job = self.statistics.jobs_made
        self.lines = 0
        self.attempts.clear()
        self.windows.clear()
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

    def begin(self, arrived: Arrived, operation: str, provider: str) -> Record:
        """Open the record of a request."""
        number = len(self.statistics.records) - self.first + 1
        record = Record(number, self.now(), time.time(), operation, provider, bytes_in=len(arrived.body))
        self.statistics.received(record)
        return record

    def asked(self, record: Record, question: Question) -> None:
        """Note what a request asks."""
        record.row, record.digest, record.model = question.row, question.digest, question.model
        self.attempts[question.row] += 1
        record.attempt = self.attempts[question.row]
        record.early = max(0.0, self.promised.get(f"row {question.row}", 0.0) - record.at)
        record.early_model = max(0.0, self.promised.get(f"model {question.model}", 0.0) - record.at)

    def fault_for(self, record: Record, body: bytes, *, asks: bool) -> Fault | None:
        """Look up what is to go wrong with an online request."""
        return self.schedule.fault(
            Circumstances(
                operation=record.operation,
                provider=record.provider,
                asks=asks,
                row=record.row,
                attempt=max(record.attempt, 1),
                number=record.number,
                at=record.at,
                model=record.model,
                body=body,
            )
        )

    def allowance(self, question: Question, used: int) -> Allowance | None:
        """Ask the quota of a model; None where there is none."""
        quota = self.script.quota
        if quota is None:
            return None
        counts = quota.counts
        if counts == "provider":
            counts = "asked" if question.provider == "openai" else "input"
        tokens = question.input_tokens + {"asked": question.max_tokens, "input": 0, "used": used}[counts]
        if question.model not in self.windows:
            self.windows[question.model] = QuotaWindow(quota)
        return self.windows[question.model].ask(self.now(), tokens)

    def finish(self, record: Record, departing: Departing, fault: str = "", hint: Fault | None = None) -> Departing:
        """Close a record with the reply that goes out, once it has gone out."""
        statistics = self.statistics
        cut = departing.cut in {"before", "after"} or departing.delay is None
        statistics.decided(record, 0 if cut else departing.status, fault)

        def sent() -> None:
            statistics.ended(record, "sent", self.now())
            if hint is not None:
                self._promise(record, hint)

        if record.provider == "openai":
            departing.headers.append(("x-request-id", f"req_{record.number:08d}"))
        departing.on_sent = sent
        departing.on_left = lambda: statistics.ended(record, "cut" if departing.cut else "left", self.now())
        return departing

    def _promise(self, record: Record, hint: Fault) -> None:
        if hint.hint not in _PROMISES or hint.wait <= 0:
            return
        wait = float(math.ceil(hint.wait)) if hint.hint == "retry-after" else hint.wait
        for name in (f"row {record.row}", f"model {record.model}"):
            self.promised[name] = max(self.promised.get(name, 0.0), self.now() + wait)

    def latency(self, question: Question) -> float:
        """Say how long an answer takes."""
        script = self.script
        if not script.jitter:
            return script.latency
        return script.latency + script.jitter * fraction_of("latency", script.salt, question.digest)
