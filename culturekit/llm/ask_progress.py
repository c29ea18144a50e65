"""What a run of questions says of itself while it goes: rows, cost so far, tokens a second, time left, the limit."""

import time
from collections import deque

from culturekit.records.work import Progress

__all__ = ["AskProgress"]

SECONDS_BETWEEN = 1.0
SECONDS_LOOKED_BACK = 30.0


class AskProgress:
    """Counts, and tells at most once a second."""

    def __init__(self, progress: Progress, *, total: int | None) -> None:
        """Start with nothing done; the total may be unknown."""
        self.progress = progress
        self.total = total
        self.told = time.monotonic()
        self.past: deque[tuple[float, int, int]] = deque([(self.told, 0, 0)])

    def tell(self, *, rows: int, tokens: int, spent: float | None, limit: str) -> None:
        """Say how it goes, if it is time."""
        now = time.monotonic()
        if now - self.told < SECONDS_BETWEEN:
            return
        self.told = now
        self.past.append((now, rows, tokens))
        while now - self.past[0][0] > SECONDS_LOOKED_BACK and len(self.past) > 2:
            self.past.popleft()
        self.progress.tell(self.line(spent, limit))

    def line(self, spent: float | None, limit: str) -> str:
        """Write the line; its speeds are those of the last half minute."""
        (since, rows_then, tokens_then), (now, rows, tokens) = self.past[0], self.past[-1]
        seconds = max(now - since, 1e-9)
        rows_a_second = (rows - rows_then) / seconds
        parts = [f"{rows:,} rows" if self.total is None else f"{rows:,} of {self.total:,} rows"]
        parts.append("cost unknown" if spent is None else f"${spent:,.4f}")
        parts.append(f"{(tokens - tokens_then) / seconds:,.0f} tokens/s")
        if self.total is not None and rows_a_second > 0.0:
            parts.append(f"{duration((self.total - rows) / rows_a_second)} left")
        return ", ".join([*parts, limit])


def duration(seconds: float) -> str:
    """Write a time in the unit that fits."""
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"
