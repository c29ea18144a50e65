"""What a person hears of waiting: why nothing comes, how long that is borne, and that it is over.

All of it is logged as warnings, at most a few lines a minute. Times come in, so any wait can be played.
"""

import logging
from collections.abc import Iterator

from culturekit.llm.dispatch import Dispatch

__all__ = ["WaitNotices", "answers_again", "retrying", "spoken"]

logger = logging.getLogger(__name__)

LASTING = 3.0
LONG_HOLD = 3.0
"""Seconds of failures, and of a wait that a server asks for, that are worth a line.

A server that is not there, and a reply that took too long, are said at once.
"""

APART = 60.0
"""Seconds between two lines about the same."""

QUIET = 15.0
"""Seconds without a reply after which a line says that one is awaited; twice as many the next time."""


class WaitNotices:
    """Watches the dispatch of one model."""

    def __init__(self, dispatch: Dispatch) -> None:
        """Start with nothing said."""
        self.dispatch = dispatch
        self.failing_since: float | None = None
        self.failing_next = self.hold_next = 0.0
        self.quiet = QUIET

    def give(self, now: float) -> None:
        """Say what is to be said now."""
        for sentence in self.due(now):
            logger.warning("%s: %s", self.dispatch.model, sentence)

    def due(self, now: float) -> Iterator[str]:
        """List what is to be said now."""
        since = self.dispatch.outage.silent_since
        silent = 0.0 if since is None else now - since
        failed = self.dispatch.failed
        if failed is None:
            yield from self.about_quiet(silent, now)
        elif now >= self.failing_next and (silent >= LASTING or not failed.sent or failed.kind == "timeout"):
            self.failing_next = now + APART
            self.failing_since = self.failing_since or now - silent
            yield retrying(self.dispatch.last_failure, self.dispatch.patience - silent)
        held = self.dispatch.limiter.held_until - now
        if held >= LONG_HOLD and now >= self.hold_next:
            self.hold_next = now + max(held, APART)
            yield f"the server asks to wait {spoken(held)}: nothing is sent until then; Ctrl-C keeps everything"

    def about_quiet(self, silent: float, now: float) -> Iterator[str]:
        """Say that failures are over, or that replies are awaited."""
        if self.failing_since is not None:
            yield answers_again(now - self.failing_since)
            self.failing_since = None
        if silent >= self.quiet and self.dispatch.in_flight:
            self.quiet *= 2.0
            awaited = f"{self.dispatch.in_flight:,} awaited"
            left = spoken(self.dispatch.patience - silent)
            yield f"no reply for {spoken(silent)}, {awaited}; waiting for {left} more; Ctrl-C keeps everything"


def retrying(why: str, left: float) -> str:
    """Say that a server does not answer, why, and how long it is asked again."""
    return f"{why}: server does not answer, retrying for {spoken(left)}; Ctrl-C keeps everything"


def answers_again(after: float) -> str:
    """Say that it is over."""
    return f"the server answers again, after {spoken(after)}"


def spoken(seconds: float) -> str:
    """Write a length of time as people say it."""
    if seconds < 100.0:
        return f"{max(seconds, 0.0):.0f} s"
    return f"{seconds / 60.0:.0f} minutes" if seconds < 6000.0 else f"{seconds / 3600.0:.0f} hours"
