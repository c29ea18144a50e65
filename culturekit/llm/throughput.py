"""How much went through lately: successes by second, over the last minute."""

from collections import deque

__all__ = ["Throughput"]

MINUTE = 60
LATELY = 2


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

    def within(self, seconds: int, now: float) -> int:
        """Count the successes of the last seconds."""
        return sum(count for second, count in self.seconds if second > now - seconds)

    def ceiling(self, now: float) -> float:
        """Guess, at a refusal, how many requests a second are allowed.

        No less than what went through in the last minute, which a quota by the minute would allow; and no less than
        half of the pace just now, for quotas that count in shorter times.
        """
        minute = self.within(MINUTE, now) / MINUTE
        lately = self.within(LATELY, now) / LATELY
        return max(minute, lately / 2.0, 1 / MINUTE)
