"""Reading JSON that others wrote, of which nothing is certain."""

import json
from typing import Any

import msgspec


def _refuse_repeated(pairs: list[tuple[str, Any]]) -> None:
    """Reject an object in which a key stands twice, however the key is written."""
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError


_KEYS = json.JSONDecoder(object_pairs_hook=_refuse_repeated)


def decoded(raw: bytes, kind: Any = Any) -> Any:  # noqa: ANN401 - any JSON value, or one of a kind
    """Read JSON; None where it cannot be read, or a key stands twice in one object: nobody knows which one counts."""
    try:
        value = msgspec.json.decode(raw, type=kind)
        _KEYS.decode(raw.decode())
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return value


def why_no_object(raw: bytes) -> str:
    """Say why bytes that should be a JSON object were not taken for one."""
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    return "a key stands twice in it" if isinstance(value, dict) and value else "not a JSON object"


def record(value: object) -> dict[str, Any]:
    """Take a value that should be an object; empty where it is none."""
    return value if isinstance(value, dict) else {}


def records(value: object) -> list[dict[str, Any]]:
    """Take the objects of a value that should be a list of them."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: object) -> str:
    """Take a value that should be a text; empty where it is none."""
    return value if isinstance(value, str) else ""
