"""What a server saw and sold, request by request and in sum."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.llm.server.answers import Answer
from tests.llm.server.made_replies import Question
from tests.llm.server.script import Prices

TOKENS = ("input_tokens", "output_tokens", "thinking_tokens", "cached_tokens")


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


def _none_sold() -> Counter[str]:
    return Counter(dict.fromkeys(("replies", *TOKENS), 0))


@dataclass(slots=True)
class Statistics:
    """All that is counted; `delivered` are the online sales whose reply was handed over whole."""

    prices: Prices = field(default_factory=Prices)
    records: list[Record] = field(default_factory=list)
    online: Counter[str] = field(default_factory=_none_sold)
    delivered: Counter[str] = field(default_factory=_none_sold)
    batch: Counter[str] = field(default_factory=_none_sold)
    statuses: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    fates: Counter[str] = field(default_factory=Counter)
    jobs_made: int = 0
    lines_made: Counter[str] = field(default_factory=Counter)
    bought: Counter[str] = field(default_factory=Counter)
    # Mistakes of the server itself; a test that meets one means nothing.
    broken: list[str] = field(default_factory=list)
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
        self.statuses[str(status)] += 1
        if fault:
            self.faults[fault] += 1

    def sold(self, question: Question, answer: Answer, *, good: bool, record: Record | None = None) -> None:
        """Bill an answer, or a line of a batch where there is no record.

        Only good ones count as bought: a client must ask again for what it cannot use.
        """
        counts = {name: getattr(answer, name) for name in TOKENS}
        (self.batch if record is None else self.online).update({"replies": 1, **counts})
        if good:
            self.bought[question.digest] += 1
        if record is not None:
            record.billed, record.good = True, good
            for name, count in counts.items():
                setattr(record, name, count)

    def made(self, digests: list[str]) -> None:
        """Count a new job and its lines."""
        self.jobs_made += 1
        self.lines_made.update(digests)

    def ended(self, record: Record, fate: str, at: float) -> None:
        """Note how a request ended."""
        record.fate, record.finished = fate, at
        self.fates[fate] += 1
        self.in_flight -= 1
        if fate == "sent" and record.billed:
            self.delivered.update({"replies": 1, **{name: getattr(record, name) for name in TOKENS}})

    def _usd(self, sold: Counter[str], share: float = 1.0) -> float:
        prices, cached = self.prices, sold["cached_tokens"]
        fresh = sold["input_tokens"] - cached
        full = fresh * prices.input + cached * prices.input * prices.cached
        return (full + sold["output_tokens"] * prices.output) * share / 1e6

    def summary(self) -> dict[str, Any]:
        """Give everything in sum, as plain values."""
        batch = self._usd(self.batch, self.prices.batch)
        plain = ("broken", "operations", "statuses", "faults", "fates", "online", "delivered", "batch", "in_flight")
        return {
            **{name: getattr(self, name) for name in (*plain, "most_in_flight", "jobs_made")},
            "requests": len(self.records), "rows": len({record.row for record in self.records if record.row}),
            "bought": len(self.bought), "bought_twice": self.bought.total() - len(self.bought),
            "early": sum(record.early > 0 for record in self.records),
            "early_model": sum(record.early_model > 0 for record in self.records),
            "lines_made": self.lines_made.total(), "lines_made_twice": self.lines_made.total() - len(self.lines_made),
            "usd": self._usd(self.online) + batch, "usd_delivered": self._usd(self.delivered) + batch,
        }  # fmt: skip
