"""How long a row waits before it is tried again: longer each time, and apart from the others."""

import zlib

__all__ = ["FIRST_WAIT", "LONGEST_WAIT", "retry_wait", "upward"]

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0

JITTER = 0.25
"""Waits are drawn out by up to this share, never shortened."""

LATE = 0.002
"""How many seconds later than a server's hint allows we begin, so that no rounding of a clock makes it too early."""


def retry_wait(key: bytes, tries: int, *, hint: float | None = None) -> float:
    """Give the seconds until the next try: doubled with each that failed, and never less than a server's hint.

    The jitter comes from the key of the row, so that rows that failed together come back apart, and a schedule can be
    repeated.
    """
    wait = min(FIRST_WAIT * 2.0 ** max(tries - 1, 0), LONGEST_WAIT)
    drawn_out = wait * (1.0 + JITTER * fraction(key, tries))
    return drawn_out if hint is None else upward(hint)


def upward(hint: float) -> float:
    """Give a server's hint with a little on top, because nothing may be sent before it has expired."""
    return max(hint, 0.0) + LATE


def fraction(key: bytes, tries: int) -> float:
    """Draw a number from 0 to 1 that differs between rows and tries, and is the same each time."""
    return zlib.crc32(key + tries.to_bytes(4, "big")) / 2**32
