"""How much went through lately: successes by second, over the last minute."""

from collections import deque

__all__ = ["LATELY", "MINUTE", "Throughput"]

MINUTE = 60
LATELY = 2
SHORTEST = 0.25


class Throughput:
    """Counts successes; a ceiling can be read off when a provider begins to refuse."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.seconds: deque[tuple[int, int]] = deque()
        self.first: float | None = None

    def count(self, now: float) -> None:
        """Count one success."""
        if self.first is None:
            self.first = now
        second = int(now)
        if self.seconds and self.seconds[-1][0] == second:
            self.seconds[-1] = (second, self.seconds[-1][1] + 1)
        else:
            self.seconds.append((second, 1))
        while self.seconds[0][0] <= second - MINUTE:
            self.seconds.popleft()

    def a_second(self, seconds: int, now: float) -> float:
        """Give the successes a second within so many seconds."""
        since = now if self.first is None else self.first
        counted = sum(count for second, count in self.seconds if second > now - seconds)
        return counted / (seconds if seconds == MINUTE else min(max(now - since, SHORTEST), seconds))
