"""A server's hint to wait, kept across a kill: whoever resumes does not ask earlier than the killed run would have."""

import time

from culturekit.llm.client import Identity
from culturekit.llm.journal import Journal

__all__ = ["DurableHold"]

WORTH_KEEPING = 0.25
"""Seconds; a shorter hint has expired before anything could be started again."""


class DurableHold:
    """When a model may be asked again, by the clock on the wall."""

    def __init__(self, journal: Journal, identity: Identity) -> None:
        """Name the model."""
        self.journal = journal
        self.fact = f"held:{identity.base_url} {identity.model}"
        self.until = 0.0

    def keep(self, wait: float) -> None:
        """Write down a hint that reaches further than those before."""
        until = time.time() + wait
        if wait >= WORTH_KEEPING and until > self.until:
            self.until = until
            self.journal.remember(self.fact, repr(until).encode())

    def left(self) -> float:
        """Give the seconds that are still to be waited for, longest one hint that an earlier process was given."""
        known = self.journal.recall(self.fact)
        return 0.0 if known is None else max(float(known) - time.time(), 0.0)
