"""What a server saw and sold, request by request and in sum."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.llm.server.answers import Answer
from tests.llm.server.questions import Question
from tests.llm.server.script import Prices

__all__ = ["Record", "Sales", "Statistics"]


@dataclass(slots=True)
class Record:
    """One request received. `fate` is `open`, `sent`, `cut` or `left`; times are seconds since the script began.

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
    statuses: Counter[int] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    jobs_made: int = 0
    lines_made: Counter[str] = field(default_factory=Counter)
    bought: Counter[str] = field(default_factory=Counter)
    bought_online: Counter[str] = field(default_factory=Counter)
    in_flight: int = 0
    most_in_flight: int = 0

    def received(self, record: Record) -> None:
        """Count a request."""
        self.records.append(record)
        self.operations[record.operation] += 1
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)

    def decided(self, record: Record, status: int, fault: str) -> None:
        """Note what a request is going to be told."""
        record.status, record.fault = status, fault
        self.statuses[status] += 1
        if fault:
            self.faults[fault] += 1

    def sold(self, record: Record, question: Question, answer: Answer, *, good: bool) -> None:
        """Bill an answer. Only good ones count as bought: a client must ask again for what it cannot use."""
        record.billed, record.good = True, good
        record.input_tokens, record.output_tokens = answer.input_tokens, answer.output_tokens
        record.thinking_tokens, record.cached_tokens = answer.thinking_tokens, answer.cached_tokens
        self.online.add(answer)
        if good:
            self.bought[question.digest] += 1
            self.bought_online[question.digest] += 1

    def sold_line(self, question: Question, answer: Answer, *, good: bool) -> None:
        """Bill a line of a batch."""
        self.batch.add(answer)
        if good:
            self.bought[question.digest] += 1

    def ended(self, record: Record, fate: str, at: float) -> None:
        """Note how a request ended."""
        record.fate, record.finished = fate, at
        self.fates[fate] += 1
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
        asked = sum(count for status, count in self.statuses.items() if status)
        return {
            "requests": len(self.records),
            "operations": dict(self.operations),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "faults": dict(self.faults),
            "fates": dict(self.fates),
            "busy_share": self.statuses[429] / asked if asked else 0.0,
            "in_flight": self.in_flight,
            "most_in_flight": self.most_in_flight,
            "rows": len({record.row for record in self.records if record.row}),
            "bought": len(self.bought),
            "bought_twice": self.bought.total() - len(self.bought),
            "bought_twice_online": self.bought_online.total() - len(self.bought_online),
            "early": sum(record.early > 0 for record in self.records),
            "earliest": max((record.early for record in self.records), default=0.0),
            "early_model": sum(record.early_model > 0 for record in self.records),
            "online": asdict(self.online),
            "delivered": asdict(self.delivered),
            "batch": asdict(self.batch),
            "jobs_made": self.jobs_made,
            "lines_made": self.lines_made.total(),
            "lines_made_twice": self.lines_made.total() - len(self.lines_made),
            "usd": self.online.usd(self.prices, batch=False) + self.batch.usd(self.prices, batch=True),
            "usd_delivered": self.delivered.usd(self.prices, batch=False) + self.batch.usd(self.prices, batch=True),
        }
