"""What a server saw and sold, request by request and in sum."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from tests.llm.server.answers import Answer
from tests.llm.server.made_replies import Question

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

    def received(self, record: Record) -> None:
        """Count a request."""
        self.records.append(record)
        self.operations[record.operation] += 1
        self.in_flight += 1

    def decided(self, record: Record, status: int, fault: str) -> None:
        """Note what a request is going to be told."""
        record.status, record.fault = status, fault
        self.statuses[str(status)] += 1

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

    def made(self, lines: int) -> None:
        """Count a new job and its lines."""
        self.jobs_made += 1
        self.lines_made += lines

    def ended(self, record: Record, fate: str) -> None:
        """Note how a request ended."""
        record.fate = fate
        self.in_flight -= 1
        if fate == "sent" and record.billed:
            self.delivered.update({"replies": 1, **{name: getattr(record, name) for name in TOKENS}})

    def summary(self) -> dict[str, Any]:
        """Give everything in sum, as plain values."""
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
