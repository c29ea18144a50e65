"""What an error says, whichever provider wrote it, whether it may pass and when, and what a person must do if not."""

import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from culturekit.llm.client import Failure, FailureKind
from culturekit.llm.json_values import decoded

LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class _ErrorBody:
    """The parts of an error: OpenAI's code, type and param, Google's status and details."""

    message: str = ""
    codes: frozenset[str] = frozenset()
    param: str = ""
    number: int = 0
    details: tuple[Any, ...] = ()


def read_error(body: bytes) -> _ErrorBody:
    """Read the body of an error; what is not JSON is kept as the beginning of a message."""
    return error_of(decoded(body)) or _ErrorBody(shortened(body[: 4 * LONGEST_MESSAGE].decode("utf-8", "replace")))


def error_of(value: Any) -> _ErrorBody | None:  # noqa: ANN401 - any JSON value
    """Find the error in a JSON value; None where it holds none."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    found = value.get("error") if isinstance(value, dict) else None
    if isinstance(found, str) and found:
        return _ErrorBody(shortened(found))
    if not isinstance(found, dict):
        return None
    details = found.get("details")
    listed = tuple(details) if isinstance(details, list) else ()
    inner = found.get("innererror")
    named = [found.get("code"), found.get("type"), found.get("status")]
    named += [inner.get("code")] if isinstance(inner, dict) else []
    named += [detail.get("reason") for detail in listed if isinstance(detail, dict)]
    code = found.get("code")
    return _ErrorBody(
        shortened(str(found.get("message") or "")),
        frozenset(name.casefold() for name in named if isinstance(name, str)),
        str(found.get("param") or ""),
        code if isinstance(code, int) else 0,
        listed,
    )


def shortened(text: str) -> str:
    """Write a message on one line, without signs that could play tricks on a terminal."""
    beginning = text[: 8 * LONGEST_MESSAGE]
    line = " ".join("".join(char if char.isprintable() else " " for char in beginning).split())
    return line if len(line) <= LONGEST_MESSAGE else line[: LONGEST_MESSAGE - 1] + "…"


# Failures after which a hint to wait says something; after the others nothing is asked again.
_PASSING: frozenset[FailureKind] = frozenset({"busy", "server", "timeout"})
_NO_MONEY = {
    "insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits",
    "credit_balance_exhausted",
}  # fmt: skip
_BAD_KEY = {"invalid_api_key", "api_key_invalid", "api_key_expired", "account_deactivated", "unauthenticated"}
_NO_MODEL = {"model_not_found", "deployment_not_found"}
_POLICY = {
    "content_policy_violation", "content_filter", "content_filter_error", "responsibleaipolicyviolation",
    "moderation_blocked", "invalid_prompt", "prohibited_content", "safety",
}  # fmt: skip
_BUSY = {"rate_limit_exceeded", "rate_limit_error", "resource_exhausted", "overloaded_error", "tokens", "requests"}
_SERVER = {"server_error", "internal_error", "internal", "unavailable", "api_error", "overloaded"}
_NOT_TAKEN = {"unsupported_parameter", "unsupported_value"}
_SAMPLING = {"temperature", "top_p", "seed", "max_tokens", "max_completion_tokens", "max_output_tokens"}

# What a status means where nothing that was said decides, and the name of the advice that belongs to it.
_BY_STATUS: Mapping[int, tuple[FailureKind, str]] = {
    401: ("fatal", "key"),
    402: ("fatal", "money"),
    403: ("fatal", "forbidden"),
    **dict.fromkeys((404, 405, 501), ("fatal", "absent")),
    **dict.fromkeys((408, 504, 524), ("timeout", "")),
    **dict.fromkeys((409, 423), ("server", "")),
    **dict.fromkeys((425, 429, 529), ("busy", "")),
}
_ADVICE = {
    "key": "The key was refused: set the right one, or name its variable with api_key=${NAME}.",
    "money": "The account has no credit left, or its limit is reached: see to it, then run the same command again.",
    "forbidden": "This key may not use this model from here: choose another model, or ask the provider for access.",
    "absent": "Check the model's name and base_url.",
    "moved": "The server points to another address: write that one as base_url.",
    "setting": "Leave this option out of the SPEC, or choose another model.",
}

_RETRY_INFO = "google.rpc.RetryInfo"
LONGEST_HINT = 10 * 365 * 86_400.0  # seconds; more is no hint but a mistake, and is as long as this
_DURATION = re.compile(r"(?P<seconds>\d+(?:\.\d+)?)s")


def failure_of(status: int, headers: Mapping[str, str], body: bytes, *, within: _ErrorBody | None = None) -> Failure:
    """Tell from status, headers (names in small letters) and body what became of a request.

    `within` is an error that came with status 200, as a body of its own.
    """
    error, head = within or read_error(body), "An error inside HTTP 200." if within else f"HTTP {status}."
    stated = error.number if 400 <= error.number < 600 else 200
    kind, advice = _judged(stated if within else status, error)
    wait = wait_of(headers, list(error.details), now=time.time()) if kind in _PASSING else None
    message = error.message
    if message and not message.endswith((".", "!", "?", "…")):
        message += "."
    return Failure(
        kind, " ".join(filter(None, (head, message, _ADVICE.get(advice)))), status=status, wait=wait, raw=body
    )


def _judged(status: int, error: _ErrorBody) -> tuple[FailureKind, str]:
    """Return the kind of a failure and the name of the advice to it; what was said outweighs the number."""
    if status < 500:
        for codes, verdict in _BY_CODE:
            if codes & error.codes:
                return verdict
    if "api key not valid" in error.message.casefold():
        return "fatal", "key"
    if _NOT_TAKEN & error.codes and (error.param in _SAMPLING or "reasoning" in error.param):
        return "fatal", "setting"
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    if status >= 500 or _SERVER & error.codes:
        return "server", ""
    if 300 <= status < 400:
        return "fatal", "moved"
    if status == 400 and "failed_precondition" in error.codes:
        return "fatal", "forbidden"
    return ("rejected", "") if status >= 400 else ("server", "")


_BY_CODE: tuple[tuple[set[str], tuple[FailureKind, str]], ...] = (
    (_NO_MONEY, ("fatal", "money")),
    (_BAD_KEY, ("fatal", "key")),
    (_POLICY, ("blocked", "")),
    (_NO_MODEL, ("fatal", "absent")),
    (_BUSY, ("busy", "")),
)


def wait_of(headers: Mapping[str, str], details: object = None, *, now: float) -> float | None:
    """Find the longest wait that a reply asks for; None where it asks for none.

    `headers` have names in small letters, `details` is the list of details of an error in Google's form, and `now` is
    in seconds since 1970.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    waits = [None if milliseconds is None else milliseconds * 0.001]
    waits.append(_retry_after(headers.get("retry-after"), headers.get("date"), now))
    for detail in details if isinstance(details, list) else ():  # in Google's form
        if isinstance(detail, dict) and str(detail.get("@type", "")).endswith(_RETRY_INFO):
            waits.append(_duration(detail.get("retryDelay")))
            break
    hints = [wait for wait in waits if wait is not None]
    return min(max(hints), LONGEST_HINT) if hints else None


def _retry_after(value: str | None, date: str | None, now: float) -> float | None:
    """Read Retry-After: seconds, or a date, which is compared with the clock of the server that wrote it."""
    if value is None:
        return None
    seconds = _number(value)
    if seconds is not None:
        return seconds
    until = _instant(value)
    if until is None:
        return None
    written = _instant(date) if date else None
    return max(0.0, until - (now if written is None else written))


def _duration(value: object) -> float | None:
    """Read a duration: `3.5s`, or seconds and nanoseconds apart."""
    if isinstance(value, str):
        found = _DURATION.fullmatch(value.strip())
        return float(found["seconds"]) if found else None
    if isinstance(value, dict):
        seconds, nanos = _number(value.get("seconds", 0)), _number(value.get("nanos", 0))
        return None if seconds is None or nanos is None else seconds + nanos / 1e9
    return None


def _number(value: object) -> float | None:
    try:
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found >= 0 else None


def _instant(value: str) -> float | None:
    try:
        found = parsedate_to_datetime(value)
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() if isinstance(found, datetime) else None
