"""What a server saw and sold, request by request and in sum."""

import asyncio
import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.llm.server.answers import Answer, Model, Question, fraction_of
from tests.llm.server.error_replies import Refused
from tests.llm.server.script import FAULT_KINDS, LINE_FAULTS, PLAIN_FAULTS, Fault, Rule, Script, When
from tests.llm.server.wire import Arrived, Connection, Departing

# US dollars per million tokens; a cached token costs half of one sent, a batch half of all
SENT, CAME, CACHED, BATCH = 0.15, 0.60, 0.5, 0.5
TOKENS = ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens")


@dataclass(slots=True)
class Record:
    """One request received. `fate` is `open`, `sent`, `cut` or `left`; `at` is in seconds since the script began.

    `early` is how many seconds before the end of the last hint given for this row the request came; `early_model` the
    same for hints given to any row of the model.
    """

    number: int
    at: float
    operation: str
    provider: str
    row: str = ""
    digest: str = ""
    model: str = ""
    attempt: int = 0
    status: int = 0
    fault: str = ""
    fate: str = "open"
    billed: bool = False
    good: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    early: float = 0.0
    early_model: float = 0.0
    problem: str = ""


def _none_sold() -> Counter[str]:
    return Counter(dict.fromkeys(("replies", *TOKENS), 0))


@dataclass(slots=True)
class Statistics:
    """All that is counted; `delivered` are the online sales whose reply was handed over whole."""

    records: list[Record] = field(default_factory=list)
    online: Counter[str] = field(default_factory=_none_sold)
    delivered: Counter[str] = field(default_factory=_none_sold)
    batch: Counter[str] = field(default_factory=_none_sold)
    statuses: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    jobs_made: int = 0
    lines_made: int = 0
    bought: Counter[str] = field(default_factory=Counter)
    # Mistakes of the server itself; a test that meets one means nothing.
    broken: list[str] = field(default_factory=list)
    in_flight: int = 0

    def sold(self, question: Question, answer: Answer, *, good: bool, record: Record | None = None) -> None:
        """Bill an answer, or a line of a batch where there is no record."""
        counts = {name: getattr(answer, name) for name in TOKENS}
        (self.batch if record is None else self.online).update({"replies": 1, **counts})
        if good:
            self.bought[question.digest] += 1
        if record is not None:
            record.billed, record.good = True, good
            for name, count in counts.items():
                setattr(record, name, count)

    def ended(self, record: Record, fate: str) -> None:
        record.fate = fate
        self.in_flight -= 1
        if fate == "sent" and record.billed:
            self.delivered.update({"replies": 1, **{name: getattr(record, name) for name in TOKENS}})

    def summary(self) -> dict[str, Any]:
        usd = [
            SENT * (sold["input_tokens"] - (1 - CACHED) * sold["cached_tokens"]) + CAME * sold["output_tokens"]
            for sold in (self.online, self.batch)
        ]
        plain = ("broken", "operations", "statuses", "online", "delivered", "batch", "jobs_made")
        return {
            **{name: getattr(self, name) for name in plain},
            "requests": len(self.records), "rows": len({record.row for record in self.records if record.row}),
            "bought": len(self.bought), "bought_twice": self.bought.total() - len(self.bought),
            "early": sum(record.early > 0 for record in self.records),
            "early_model": sum(record.early_model > 0 for record in self.records),
            "lines_made": self.lines_made, "usd": (usd[0] + BATCH * usd[1]) / 1e6,
        }  # fmt: skip


_STRIKES = {"online": frozenset(FAULT_KINDS), "batch": LINE_FAULTS, "": PLAIN_FAULTS}


class Schedule:
    def __init__(self, script: Script) -> None:
        self._rules = script.rules
        self._used: Counter[int] = Counter()

    def fault(self, seen: Record, body: bytes, *, mode: str = "online", asks: bool = True) -> Fault | None:
        """Give the fault of the first rule that fits and is not used up; None where nothing is to go wrong.

        A rule is never used up by a request that its fault cannot touch; `asks` is whether a model is asked.
        """
        for at, rule in enumerate(self._rules):
            used_up = rule.times is not None and self._used[at] >= rule.times
            if not used_up and rule.then.kind in _STRIKES[mode if asks else ""] and _fits(rule, seen, body, mode):
                self._used[at] += 1
                return None if rule.then.kind == "none" and rule.then.delay == 0 else rule.then
        return None


def _fits(rule: Rule, seen: Record, body: bytes, mode: str) -> bool:
    when = rule.when
    return (
        (not when.operations or seen.operation in when.operations)
        and (not when.providers or seen.provider in when.providers)
        and (not when.modes or mode in when.modes)
        and _between(max(seen.attempt, 1), when.attempts)
        and _between(seen.number, when.requests)
        and seen.number % when.every == 0
        and _drawn(when, seen.row)
        and (not when.contains or when.contains.encode() in body)
    )


def _drawn(when: When, row: str) -> bool:
    return (
        (not when.rows or row in when.rows)
        and (not when.row_matches or re.search(when.row_matches, row) is not None)
        and (when.share >= 1.0 or fraction_of("share", when.salt, row) < when.share)
    )


def _between(count: int, bounds: tuple[int, int | None]) -> bool:
    first, last = bounds
    return first <= count and (last is None or count <= last)


_PROMISES = {"retry-after", "retry-after-date", "retry-after-ms", "retry-info"}


@dataclass(slots=True)
class StoredFile:
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
        self.made += 1
        return prefix + hashlib.sha256(f"{prefix}{self.made}".encode()).hexdigest()[:24]

    def keep(self, prefix: str, provider: str, content: bytes, *, filename: str, purpose: str) -> StoredFile:
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
        self.follow(self.script)

    def follow(self, script: Script) -> None:
        """Follow another script from now on; its time and its counts of requests start anew, statistics go on."""
        self.script, self.schedule, self.epoch = script, Schedule(script), self.clock()
        self.first, self.first_job = len(self.statistics.records), self.statistics.jobs_made
        self.lines = 0
        self.attempts.clear()
        self.promised.clear()

    def now(self) -> float:
        return self.clock() - self.epoch

    @property
    def busy(self) -> int:
        """How much of what arrived is not settled: connections but the asker's, and answers that are being made.

        New connections are taken in the order in which they came. Once everybody who asked is dead and this is 0,
        nothing is sold any more that was not counted.
        """
        return len(self.connections) - 1 + len(self.work) + self.statistics.in_flight

    def begin(self, operation: str, provider: str) -> Record:
        number = len(self.statistics.records) - self.first + 1
        record = Record(number, self.now(), operation, provider)
        self.statistics.records.append(record)
        self.statistics.operations[operation] += 1
        self.statistics.in_flight += 1
        return record

    def asked(self, record: Record, question: Question) -> None:
        record.row, record.digest, record.model = question.row, question.digest, question.model
        self.attempts[question.row] += 1
        record.attempt = self.attempts[question.row]
        record.early = max(0.0, self.promised.get(f"row {question.row}", 0.0) - record.at)
        record.early_model = max(0.0, self.promised.get(f"model {question.model}", 0.0) - record.at)

    def line_fault(self, question: Question) -> Fault | None:
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
        record.status, record.fault = 0 if cut else departing.status, fault
        statistics.statuses[str(record.status)] += 1

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
        """Read the body as JSON."""
        try:
            return orjson.loads(self.arrived.body or b"{}")
        except ValueError:
            raise Refused("bad-request", "Invalid JSON payload received.") from None

    def file(self, prefix: str = "") -> StoredFile:
        """Find the file that a path names."""
        name = prefix + self.groups["name"]
        stored = self.service.storage.files.get(name)
        if stored is None or stored.provider != self.record.provider:
            kind = "forbidden" if self.record.provider == "google" else "not-found"
            raise Refused(kind, f"No such File object: {name}", param="id", code="not_found")
        return stored
