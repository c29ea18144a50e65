"""A server's hint to wait, kept across a kill: whoever resumes does not ask earlier than the killed run would have."""

import logging
import math
import time

from culturekit.llm.client import Identity
from culturekit.llm.journal.journal import Journal

__all__ = ["DurableHold"]

WORTH_KEEPING = 0.25
"""Seconds; a shorter hint has expired before anything could be started again."""

logger = logging.getLogger(__name__)


class DurableHold:
    """When a model may be asked again: kept by the clock on the wall, which is believed as far as the hint goes."""

    def __init__(self, journal: Journal, identity: Identity, patience: float) -> None:
        """Name the model, and how long a run waits at most."""
        self.journal = journal
        self.model = identity.model
        self.fact = f"held:{identity.base_url} {identity.model}"
        self.patience = patience
        self.until = -math.inf
        self.passed_over = False

    def keep(self, wait: float) -> None:
        """Write down a hint that reaches further than those before."""
        until = time.monotonic() + wait
        if wait >= WORTH_KEEPING and until > self.until:
            self.until = until
            self.journal.remember(self.fact, f"{time.time() + wait!r} {wait!r}".encode())

    def left(self) -> float:
        """Give the seconds that are still to be waited for.

        A clock that was ahead when the hint came, or is behind now, makes them no more than the hint itself. A hint
        longer than patience ended the run that got it: the next run was started to see whether the server answers.
        """
        until, wait = hint_of(self.journal.recall(self.fact))
        left = until - time.time()
        wait = left if wait is None else wait
        if left > 0.0 and wait > self.patience:
            if not self.passed_over:
                text = (
                    "%s: earlier the server asked to be left alone for %.0f s more; it is asked whether it answers now"
                )
                logger.warning(text, self.model, left)
            self.passed_over = True
            return 0.0
        return max(min(left, wait), 0.0)


def hint_of(known: bytes | None) -> tuple[float, float | None]:
    """Read a hint: until when, and how long it was, which earlier versions did not note; what is no hint has passed."""
    try:
        numbers = [float(part) for part in (known or b"").split()]
    except ValueError:
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        return -math.inf, None
    return numbers[0], numbers[1] if len(numbers) > 1 else None
