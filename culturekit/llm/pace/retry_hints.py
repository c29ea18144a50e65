"""When a server says to come back: headers and error details, in seconds from now."""

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

__all__ = ["wait_of"]

RETRY_INFO = "google.rpc.RetryInfo"
LONGEST_HINT = 10 * 365 * 86_400.0
"""Seconds; more is no hint but a mistake, and is as long as this."""

DURATION = re.compile(r"(?P<seconds>\d+(?:\.\d+)?)s")


def wait_of(headers: Mapping[str, str], details: object = None, *, now: float) -> float | None:
    """Find the longest wait that a reply asks for; None where it asks for none.

    `headers` have names in small letters, `details` is the list of details of an error in Google's form, and `now` is
    in seconds since 1970.
    """
    told = (
        scaled(number(headers.get("retry-after-ms")), 0.001),
        retry_after(headers.get("retry-after"), headers.get("date"), now),
        retry_info(details),
    )
    waits = [wait for wait in told if wait is not None]
    return min(max(waits), LONGEST_HINT) if waits else None


def retry_after(value: str | None, date: str | None, now: float) -> float | None:
    """Read Retry-After: seconds, or a date, which is compared with the clock of the server that wrote it."""
    if value is None:
        return None
    seconds = number(value)
    if seconds is not None:
        return seconds
    until = instant(value)
    if until is None:
        return None
    written = instant(date) if date else None
    return max(0.0, until - (now if written is None else written))


def retry_info(details: object) -> float | None:
    """Read the delay in the details of an error in Google's form."""
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(RETRY_INFO):
            return duration(detail.get("retryDelay"))
    return None


def duration(value: object) -> float | None:
    """Read a duration: `3.5s`, or seconds and nanoseconds apart."""
    if isinstance(value, str):
        found = DURATION.fullmatch(value.strip())
        return float(found["seconds"]) if found else None
    if isinstance(value, dict):
        seconds, nanos = number(value.get("seconds", 0)), number(value.get("nanos", 0))
        return None if seconds is None or nanos is None else seconds + nanos / 1e9
    return None


def number(value: object) -> float | None:
    """Read a finite number that is not negative."""
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found >= 0 else None


def scaled(value: float | None, factor: float) -> float | None:
    """Multiply a number that may not be there."""
    return None if value is None else value * factor


def instant(value: str) -> float | None:
    """Read an HTTP date as seconds since 1970."""
    try:
        found = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() if isinstance(found, datetime) else None
