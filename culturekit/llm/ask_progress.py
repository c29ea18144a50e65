"""What a run of questions says of itself while it goes: cost so far, tokens a second, the limit.

How many rows there are, and how long they take, whoever asks counts and shows.
"""

import time
from collections import deque

from culturekit.records.work import Progress

__all__ = ["AskProgress"]

SECONDS_BETWEEN = 1.0
SECONDS_LOOKED_BACK = 30.0


class AskProgress:
    """Counts, and tells at most once a second."""

    def __init__(self, progress: Progress) -> None:
        """Start with nothing done."""
        self.progress = progress
        self.told = time.monotonic()
        self.past: deque[tuple[float, int]] = deque([(self.told, 0)])

    def tell(self, *, tokens: int, spent: float | None, limit: str) -> None:
        """Say how it goes, if it is time."""
        now = time.monotonic()
        if now - self.told < SECONDS_BETWEEN:
            return
        self.told = now
        self.past.append((now, tokens))
        while now - self.past[0][0] > SECONDS_LOOKED_BACK and len(self.past) > 2:
            self.past.popleft()
        self.progress.tell(self.line(spent, limit))

    def line(self, spent: float | None, limit: str) -> str:
        """Write the line, money first; its speed is that of the last half minute."""
        (since, tokens_then), (now, tokens) = self.past[0], self.past[-1]
        cost = "cost unknown" if spent is None else f"${spent:,.4f}"
        return f"{cost}, {(tokens - tokens_then) / max(now - since, 1e-9):,.0f} tokens/s, {limit}"
