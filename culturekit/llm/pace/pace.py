"""An even pace: so many units a second, a little of what was missed made up for, never more."""

import math

__all__ = ["Pace"]

LONGEST_WAIT = 60.0
"""Seconds; what is allowed a minute is allowed anew by then, however much was sent at once."""

MAKE_UP = 0.1
"""Seconds of the pace that may be sent at once, so that a late timer costs nothing of the quota."""


class Pace:
    """When the next units may go. Until a rate is set, whenever they like."""

    def __init__(self, per_second: float = math.inf) -> None:
        """Start with nothing sent."""
        self.per_second = per_second
        self.even = -math.inf
        """When all that was sent would have been sent, had it gone evenly."""

    def due(self, now: float) -> float:
        """Say when the next unit may go, now or later."""
        return max(now, self.even - MAKE_UP)

    def sent(self, units: float, now: float) -> None:
        """Count units as sent."""
        self.even = max(self.even, now)
        self.correct(units, now)

    def correct(self, units: float, now: float) -> None:
        """Count units on top, or take units back, that turned out to be more or fewer than thought."""
        self.even = min(self.even + units / self.per_second, now + LONGEST_WAIT)
