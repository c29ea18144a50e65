"""What a server saw and sold, request by request and in sum."""

from dataclasses import asdict, dataclass, field
from typing import Any

from tests.llm.server.answers import Answer
from tests.llm.server.made_replies import Question
from tests.llm.server.script import Prices


@dataclass(slots=True)
class Record:
    """One request received. `fate` is `open`, `sent`, `cut` or `left`; `at` and `finished` are seconds since
    the script began, `time` is the time of day in seconds since 1970.

    `early` is how many seconds before the end of the last hint given for this row the request came; `early_model` the
    same for hints given to any row of the model.
    """

    number: int
    at: float
    time: float
    operation: str
    provider: str
    row: str = ""
    digest: str = ""
    model: str = ""
    attempt: int = 0
    status: int = 0
    fault: str = ""
    fate: str = "open"
    finished: float = 0.0
    billed: bool = False
    good: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    bytes_in: int = 0
    early: float = 0.0
    early_model: float = 0.0
    problem: str = ""


@dataclass(slots=True)
class Sales:
    """Tokens sold."""

    replies: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0

    def add(self, answer: Answer) -> None:
        """Add one answer."""
        self.replies += 1
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens
        self.thinking_tokens += answer.thinking_tokens
        self.cached_tokens += answer.cached_tokens

    def usd(self, prices: Prices, *, batch: bool) -> float:
        """Say what it costs, in US dollars."""
        fresh = self.input_tokens - self.cached_tokens
        full = fresh * prices.input + self.cached_tokens * prices.input * prices.cached
        return (full + self.output_tokens * prices.output) * (prices.batch if batch else 1.0) / 1e6


@dataclass(slots=True)
class Statistics:
    """All that is counted; `delivered` are the online sales whose reply was handed over whole."""

    prices: Prices = field(default_factory=Prices)
    records: list[Record] = field(default_factory=list)
    online: Sales = field(default_factory=Sales)
    delivered: Sales = field(default_factory=Sales)
    batch: Sales = field(default_factory=Sales)
    statuses: dict[str, int] = field(default_factory=dict)
    operations: dict[str, int] = field(default_factory=dict)
    faults: dict[str, int] = field(default_factory=dict)
    fates: dict[str, int] = field(default_factory=dict)
    jobs_made: int = 0
    lines_made: dict[str, int] = field(default_factory=dict)
    bought: dict[str, int] = field(default_factory=dict)
    # Mistakes of the server itself; a test that meets one means nothing.
    broken: list[str] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0

    def received(self, record: Record) -> None:
        """Count a request."""
        self.records.append(record)
        _count(self.operations, record.operation)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def struck(self, fault: str) -> None:
        """Count a fault of a line in a batch."""
        _count(self.faults, fault)

    def decided(self, record: Record, status: int, fault: str) -> None:
        """Note what a request is going to be told."""
        record.status, record.fault = status, fault
        _count(self.statuses, str(status))
        if fault:
            _count(self.faults, fault)

    def sold(self, record: Record, question: Question, answer: Answer, *, good: bool) -> None:
        """Bill an answer. Only good ones count as bought: a client must ask again for what it cannot use."""
        record.billed, record.good = True, good
        record.input_tokens, record.output_tokens = answer.input_tokens, answer.output_tokens
        record.thinking_tokens, record.cached_tokens = answer.thinking_tokens, answer.cached_tokens
        self.online.add(answer)
        if good:
            _count(self.bought, question.digest)

    def sold_line(self, question: Question, answer: Answer, *, good: bool) -> None:
        """Bill a line of a batch."""
        self.batch.add(answer)
        if good:
            _count(self.bought, question.digest)

    def made(self, digests: list[str]) -> None:
        """Count a new job and its lines."""
        self.jobs_made += 1
        for digest in digests:
            _count(self.lines_made, digest)

    def ended(self, record: Record, fate: str, at: float) -> None:
        """Note how a request ended."""
        record.fate, record.finished = fate, at
        _count(self.fates, fate)
        self.in_flight -= 1
        if fate == "sent" and record.billed:
            self.delivered.add(
                Answer(
                    "",
                    input_tokens=record.input_tokens,
                    output_tokens=record.output_tokens,
                    thinking_tokens=record.thinking_tokens,
                    cached_tokens=record.cached_tokens,
                )
            )

    def summary(self) -> dict[str, Any]:
        """Give everything in sum, as plain values."""
        return {
            "broken": list(self.broken),
            "requests": len(self.records),
            "operations": dict(self.operations),
            "statuses": dict(self.statuses),
            "faults": dict(self.faults),
            "fates": dict(self.fates),
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "rows": len({record.row for record in self.records if record.row}),
            "bought": len(self.bought),
            "bought_twice": _repeated(self.bought),
            "early": sum(record.early > 0 for record in self.records),
            "early_model": sum(record.early_model > 0 for record in self.records),
            "online": asdict(self.online),
            "delivered": asdict(self.delivered),
            "batch": asdict(self.batch),
            "jobs_made": self.jobs_made,
            "lines_made": sum(self.lines_made.values()),
            "lines_made_twice": _repeated(self.lines_made),
            "usd": self.online.usd(self.prices, batch=False) + self.batch.usd(self.prices, batch=True),
            "usd_delivered": self.delivered.usd(self.prices, batch=False) + self.batch.usd(self.prices, batch=True),
        }


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


def _repeated(counts: dict[str, int]) -> int:
    return sum(counts.values()) - len(counts)
