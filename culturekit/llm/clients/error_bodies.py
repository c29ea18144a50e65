"""What the body of an error says, whichever provider wrote it."""

from dataclasses import dataclass
from typing import Any

from culturekit.llm.reading.json_values import decoded

__all__ = ["ErrorBody", "error_of", "read_error"]

LONGEST_MESSAGE = 300


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The parts of an error: OpenAI's code, type and param, Google's status and details."""

    message: str = ""
    codes: frozenset[str] = frozenset()
    param: str = ""
    number: int = 0
    details: tuple[Any, ...] = ()


def read_error(body: bytes) -> ErrorBody:
    """Read the body of an error; what is not JSON is kept as the beginning of a message."""
    return error_of(decoded(body)) or ErrorBody(shortened(body[: 4 * LONGEST_MESSAGE].decode("utf-8", "replace")))


def error_of(value: Any) -> ErrorBody | None:  # noqa: ANN401 - any JSON value
    """Find the error in a JSON value; None where it holds none."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    found = value.get("error") if isinstance(value, dict) else None
    if isinstance(found, str) and found:
        return ErrorBody(shortened(found))
    if not isinstance(found, dict):
        return None
    details = found.get("details")
    listed = tuple(details) if isinstance(details, list) else ()
    inner = found.get("innererror")
    named = [found.get("code"), found.get("type"), found.get("status")]
    named += [inner.get("code")] if isinstance(inner, dict) else []
    named += [detail.get("reason") for detail in listed if isinstance(detail, dict)]
    code = found.get("code")
    return ErrorBody(
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
