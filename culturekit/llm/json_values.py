"""Reading JSON that others wrote, of which nothing is certain."""

from typing import Any

import msgspec

__all__ = ["counted", "decoded", "record", "records", "text"]


def decoded(raw: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """Read JSON; None where it cannot be read."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def record(value: object) -> dict[str, Any]:
    """Take a value that should be an object; empty where it is none."""
    return value if isinstance(value, dict) else {}


def records(value: object) -> list[dict[str, Any]]:
    """Take the objects of a value that should be a list of them."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Take a value that should be a text; empty where it is none."""
    return value if isinstance(value, str) else ""


def counted(value: object) -> int:
    """Take a value that should be a count; zero where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
