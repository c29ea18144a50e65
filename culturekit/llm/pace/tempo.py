"""How many a second: below a stated ceiling where there is one, and learnt from refusals where that is not enough.

Growth comes with success: quick where nothing was ever refused, slow about the mark where it was. So refusals are few
and the tempo stays near the mark.
"""

import math

__all__ = ["Tempo"]

A_STEP = 0.01
A_STEP_AT_MOST = 0.03
A_SMALL_STEP = 0.0003
SECONDS_TO_GROW = 20.0
"""How long it takes, at most, from little to the ceiling."""

REMEMBERED = 50.0
OFTEN = 0.25
"""Over how many requests the share of refusals is taken, and from which share on the tempo is to blame."""

A_MINUTE = 1.0 / 60.0
NEAR = 0.05
SLOWER = 0.9
MUCH_SLOWER = 0.5
"""What is left of the tempo after a refusal; the second, after one that follows another closely."""

SELDOM = 50
"""Successes between two refusals above which nothing has to be limited that is not limited yet."""

CLOSELY = 30
"""Successes between two refusals below which the tempo is far from what is allowed, not a little above it."""


class Tempo:
    """So many units a second; infinite as long as nothing is stated or learnt."""

    def __init__(self, ceiling: float | None) -> None:
        """Start at the ceiling."""
        self.ceiling = math.inf if ceiling is None else ceiling
        self.per_second = self.ceiling
        self.mark = math.inf
        self.successes = SELDOM
        self.refused_share = 0.0
        self.tested = math.inf
        self.blameless = False

    def succeeded(self) -> None:
        """Grow a little."""
        self.successes += 1
        self.refused_share -= self.refused_share / REMEMBERED
        if self.per_second >= self.ceiling or math.isinf(self.per_second):
            return
        near = self.mark * (1.0 - NEAR) <= self.per_second < self.mark * (1.0 + NEAR)
        step = (
            A_SMALL_STEP * self.mark
            if near
            else max(min(A_STEP * self.per_second, A_STEP_AT_MOST), self.smallest_step())
        )
        self.per_second = min(self.per_second + step, self.ceiling)

    def smallest_step(self) -> float:
        """Give the step that leads to the ceiling or the mark in good time, also where successes are seldom."""
        goal = min(self.ceiling, self.mark)
        return 0.0 if math.isinf(goal) else 1.0 / SECONDS_TO_GROW

    def count_refusal(self) -> None:
        """Count one refusal of many that may be one event."""
        self.refused_share += (1.0 - self.refused_share) / REMEMBERED

    def refused(self, *, minute: float, lately: float) -> None:
        """Slow down; what went through a second, in the last minute and lately, is a guess at what is allowed."""
        if self.has_nothing_to_do_with_it() or (math.isinf(self.per_second) and self.successes >= SELDOM):
            self.successes = 0
            return
        before = max(lately, minute, A_MINUTE) if math.isinf(self.per_second) else self.per_second
        if self.successes >= CLOSELY and not math.isinf(self.per_second):
            self.mark, self.per_second = before, before * SLOWER
        elif before * MUCH_SLOWER <= minute <= before:
            self.mark, self.per_second = minute, minute * SLOWER
        else:
            self.mark, self.per_second = math.inf, max(before, minute) * MUCH_SLOWER
        if self.refused_share >= OFTEN or self.mark < math.inf or math.isinf(self.tested):
            self.tested = before
        self.successes = 0

    def has_nothing_to_do_with_it(self) -> bool:
        """Say whether refusals come whatever the tempo: half of it did not make them go away.

        A tempo that is too high is refused often; a little too high, it is not refused any more at half of it.
        """
        if self.refused_share >= OFTEN:
            self.blameless = False
        elif self.per_second < self.tested * MUCH_SLOWER and not math.isinf(self.tested):
            self.blameless = True
            self.per_second, self.mark, self.tested = self.ceiling, math.inf, math.inf
        return self.blameless

    def restart(self) -> None:
        """Begin at half after an outage."""
        if not math.isinf(self.per_second):
            self.per_second *= MUCH_SLOWER
