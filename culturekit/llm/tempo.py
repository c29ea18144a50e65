"""How many a second: below a stated ceiling where there is one, and learnt from refusals where that is not enough.

Growth comes with success: quick where nothing was ever refused, slow about the mark where it was. So refusals are few
and the tempo stays near the mark.
"""

import math

__all__ = ["Tempo"]

A_STEP = 0.01
A_SMALL_STEP = 0.0003
SECONDS_TO_GROW = 20.0
"""How long it takes, at most, from little to the ceiling."""

A_MINUTE = 1.0 / 60.0
NEAR = 0.05
SLOWER = 0.9
MUCH_SLOWER = 0.5
"""What is left of the tempo after a refusal; the second, after one that follows another closely."""

CLOSELY = 30
"""Successes between two refusals below which the tempo is far from what is allowed, not a little above it."""


class Tempo:
    """So many units a second; infinite as long as nothing is stated or learnt."""

    def __init__(self, ceiling: float | None) -> None:
        """Start at the ceiling."""
        self.ceiling = math.inf if ceiling is None else ceiling
        self.per_second = self.ceiling
        self.mark = math.inf
        self.successes = 0

    def raise_or_lower(self, ceiling: float) -> None:
        """Take a ceiling in that was told meanwhile."""
        self.ceiling = ceiling
        self.per_second = min(self.per_second, ceiling)

    def succeeded(self) -> None:
        """Grow a little."""
        self.successes += 1
        if self.per_second >= self.ceiling or math.isinf(self.per_second):
            return
        near = self.mark * (1.0 - NEAR) <= self.per_second < self.mark * (1.0 + NEAR)
        step = A_SMALL_STEP * self.mark if near else max(A_STEP * self.per_second, self.smallest_step())
        self.per_second = min(self.per_second + step, self.ceiling)

    def smallest_step(self) -> float:
        """Give the step that leads to the ceiling or the mark in good time, also where successes are seldom."""
        goal = min(self.ceiling, self.mark)
        return 0.0 if math.isinf(goal) else 1.0 / SECONDS_TO_GROW

    def refused(self, *, minute: float, lately: float) -> None:
        """Slow down; what went through a second, in the last minute and lately, is a guess at what is allowed."""
        before = self.per_second
        if math.isinf(before):
            before = max(lately, minute, A_MINUTE)
        if self.successes >= CLOSELY and not math.isinf(self.per_second):
            self.mark, self.per_second = before, before * SLOWER
        elif before * MUCH_SLOWER <= minute <= before:
            self.mark, self.per_second = minute, minute * SLOWER
        else:
            self.mark, self.per_second = math.inf, max(before, minute) * MUCH_SLOWER
        self.successes = 0

    def restart(self) -> None:
        """Begin at half after an outage."""
        if not math.isinf(self.per_second):
            self.per_second *= MUCH_SLOWER
