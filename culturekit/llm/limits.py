"""How much may be sent to a model: requests and tokens a minute, how many at once, and when nothing at all.

What the provider states is the ceiling; where it states nothing, its refusals teach one. Growth is slow, decrease is
quick and once per event (additive increase, multiplicative decrease), and a hint to wait stops the whole model. No
clock here: times come in, so schedules are tested without waiting.
"""

import math
from dataclasses import dataclass

from culturekit.llm.client import Failure, Quota, Usage
from culturekit.llm.pace import Pace
from culturekit.llm.retry_waits import upward
from culturekit.llm.throughput import Throughput

__all__ = ["HEADROOM", "Limiter"]

HEADROOM = 0.97
"""The share of a stated quota that is aimed at; the rest is for clocks that differ."""

FIRST_WINDOW = 4.0
FEWER = 0.7
SLOWER = 0.9
RESTART = 0.5
"""The shares that are left of the requests at once and of the pace after a refusal, and of the pace after an outage."""

SECONDS_TO_GROW = 20.0
"""How long it takes, at most, from nothing to nearly the ceiling."""

LEARNING = 0.05

OVERLOADED = frozenset({502, 503, 504, 529})
"""The statuses of servers that have too much to do, or a tired one behind them; a 500 is a matter of the request."""


@dataclass(slots=True)
class Share:
    """How much of a ceiling is used; it grows with each success: quickly where it is safe, slowly near the ceiling."""

    value: float = 1.0

    def grow(self, ceiling: float, highest: float) -> None:
        """Grow by one success; `ceiling` is in requests a second."""
        quickly = max(0.01, 1.0 / (ceiling * SECONDS_TO_GROW))
        step = quickly if self.value < 0.95 else 0.0003 if self.value < 1.05 else 0.005
        self.value = min(self.value + step, highest)


class Limiter:
    """The limits of one model in one run."""

    def __init__(self, quota: Quota, concurrency: int) -> None:
        """Start slowly, below what is allowed."""
        self.most = float(concurrency)
        self.window = min(FIRST_WINDOW, self.most)
        self.slow_start_until = self.most
        self.share = Share()
        self.learnt: float | None = None
        self.throughput = Throughput()
        self.requests, self.tokens = Pace(), Pace()
        self.typical_output: float | None = None
        self.input_ratio = 1.0
        self.held_until = -math.inf
        self.decreased_at = -math.inf
        self.quota = Quota()
        self.allow(quota)

    def allow(self, quota: Quota) -> None:
        """Take a quota in; one that the replies told of may change meanwhile."""
        if quota != self.quota:
            self.quota = quota
            self.set_rates()

    def at_once(self) -> int:
        """Say how many requests may be under way at the same time."""
        return max(int(self.window), 1)

    def due(self, now: float) -> float:
        """Say when the next request may go, now or later."""
        return max(self.held_until, self.requests.due(now), self.tokens.due(now))

    def sent(self, input_guess: int, max_tokens: int, now: float) -> float:
        """Count a request as sent; give the tokens that it is expected to take."""
        output = max_tokens if self.typical_output is None else min(self.typical_output, max_tokens)
        expected = input_guess * self.input_ratio + output
        self.requests.sent(1.0, now)
        self.tokens.sent(expected, now)
        return expected

    def succeeded(self, expected: float, input_guess: int, usage: Usage, now: float) -> None:
        """Hear of a reply, and of how many tokens it took in truth."""
        self.tokens.correct(usage.input_tokens + usage.output_tokens - expected)
        self.learn(input_guess, usage)
        self.throughput.count(now)
        self.window = min(self.window + (1.0 if self.window < self.slow_start_until else 1.0 / self.window), self.most)
        if self.share.value < 1.0 or self.learnt is not None:
            self.share.grow(self.requests.per_second, 1.0 if self.learnt is None else math.inf)
            self.set_rates()

    def learn(self, input_guess: int, usage: Usage) -> None:
        """Learn what requests of this kind take, from the last few dozen."""
        if input_guess and usage.input_tokens:
            self.input_ratio += (usage.input_tokens / input_guess - self.input_ratio) * LEARNING
        typical = usage.output_tokens if self.typical_output is None else self.typical_output
        self.typical_output = typical + (usage.output_tokens - typical) * LEARNING

    def failed(self, failure: Failure, now: float, *, sent: float) -> None:
        """Hear of a failure of a request that was sent at a time."""
        if failure.wait is not None:
            self.held_until = max(self.held_until, now + upward(failure.wait))
        too_much = failure.kind in {"busy", "timeout"} or failure.status in OVERLOADED
        if not too_much or sent <= self.decreased_at:
            return
        self.decreased_at = now
        self.window = self.slow_start_until = max(self.window * FEWER, 1.0)
        if failure.kind == "busy":
            self.slow_down(now)

    def slow_down(self, now: float) -> None:
        """Go slower after a refusal; without a stated quota, what went through lately is the ceiling from now on."""
        unstated = self.quota.requests is None and self.quota.tokens is None
        if unstated and (self.learnt is None or not 0.7 < self.share.value < 1.1):
            self.learnt = self.throughput.ceiling(now)
            self.share.value = 1.0
        self.share.value *= SLOWER
        self.set_rates()

    def restart(self) -> None:
        """Begin slowly again after an outage."""
        self.window, self.slow_start_until = min(FIRST_WINDOW, self.most), self.most
        self.share.value = min(self.share.value, RESTART)
        self.set_rates()

    def set_rates(self) -> None:
        """Set the pace of requests and of tokens to the share of the ceiling that is used."""
        requests = self.learnt if self.quota.requests is None else self.quota.requests * HEADROOM / 60.0
        tokens = None if self.quota.tokens is None else self.quota.tokens * HEADROOM / 60.0
        self.requests.set_rate(math.inf if requests is None else max(requests * self.share.value, 1 / 60))
        self.tokens.set_rate(math.inf if tokens is None else max(tokens * self.share.value, 1.0))

    def told(self) -> str:
        """Say the limit in force now, for people."""
        pace = self.requests.per_second
        rate = "" if math.isinf(pace) else f", {pace * 60.0:,.0f} requests/min"
        return f"{self.at_once()} at once{rate}"
