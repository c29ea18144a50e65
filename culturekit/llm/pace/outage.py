"""A circuit breaker: when everything fails, one probe at a time goes out, with growing pauses between.

Rows that fail while others succeed have themselves to blame; only rows whose every failure lies after the last success
are evidence of an outage. No clock here: times come in.
"""

import math

__all__ = ["FAILING_ROWS", "FIRST_PAUSE", "LONGEST_PAUSE", "Outage"]

FAILING_ROWS = 8
"""As many different rows in a row make an outage."""

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 20.0


class Outage:
    """Whether the model as a whole is out of service, as far as what came back tells."""

    def __init__(self) -> None:
        """Start with no evidence."""
        self.failing: set[int] = set()
        self.last_success = -math.inf
        self.silent_since: float | None = None
        """Since when something was sent and nothing was answered; None where nothing is owed."""

        self.opened_at: float | None = None
        self.next_probe = 0.0
        self.pause = FIRST_PAUSE

    @property
    def open(self) -> bool:
        """Whether only probes may go out."""
        return self.opened_at is not None

    def sent(self, now: float) -> None:
        """Hear that a request left."""
        self.silent_since = now if self.silent_since is None else self.silent_since

    def succeeded(self, *, sent: float, now: float, owed: int) -> bool:
        """Hear that a reply came; True when that ends an outage. One that was sent before the outage does not.

        `owed` is how many requests are still under way.
        """
        self.last_success = now
        self.silent_since = now if owed else None
        self.failing.clear()
        if self.opened_at is not None and sent < self.opened_at:
            return False
        ended, self.opened_at, self.pause = self.open, None, FIRST_PAUSE
        return ended

    def failed(self, row: int, *, first_sent: float, sent: float, now: float) -> bool:
        """Hear that a try of a row failed; True when that begins an outage.

        `first_sent` is when the first try of the row that failed was sent, `sent` when this one was.
        """
        if self.opened_at is not None:
            if sent >= self.opened_at:
                self.next_probe = now + self.pause
                self.pause = min(self.pause * 2.0, LONGEST_PAUSE)
            return False
        if first_sent > self.last_success:
            self.failing.add(row)
        if len(self.failing) < FAILING_ROWS:
            return False
        self.opened_at, self.next_probe = now, now + FIRST_PAUSE
        self.pause = FIRST_PAUSE * 2.0
        return True

    def gives_up_at(self, patience: float) -> float:
        """Say when patience ends, if nothing succeeds until then."""
        return math.inf if self.silent_since is None else self.silent_since + patience
