"""The cells that a list of images may fill in their table: each read from whatever the list has it as."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from culturekit.storage.digests import canonical_json

__all__ = ["READERS"]

Reader = Callable[[Any], object]


def whole(low: int, high: int) -> Reader:
    """Read whole numbers within bounds."""

    def read(value: Any) -> int:  # noqa: ANN401 - a cell
        number = int(value) if isinstance(value, str) else value
        if isinstance(number, bool) or number != int(number) or not low <= number <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(number)

    return read


def one_of(*words: str) -> Reader:
    """Read one of some words."""

    def read(value: Any) -> str:  # noqa: ANN401 - a cell
        if str(value) not in words:
            raise ValueError(" or ".join(words))
        return str(value)

    return read


def truth(value: Any) -> bool:  # noqa: ANN401 - a cell
    """Read yes or no."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).casefold() not in known:
        raise ValueError("true or false")
    return known[str(value).casefold()]


def moment(value: Any) -> datetime:  # noqa: ANN401 - a cell
    """Read a time; without a zone it is UTC."""
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError("a time such as 2026-11-21T12:00:00Z") from error
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def settings(value: Any) -> str:  # noqa: ANN401 - a cell
    """Read a JSON object, written out or as it is."""
    try:
        held = orjson.loads(value) if isinstance(value, str) else value
        if not isinstance(held, dict):
            raise ValueError
        return canonical_json(held).decode()
    except (ValueError, TypeError) as error:
        raise ValueError('a JSON object such as {"steps": 30}') from error


READERS: Mapping[str, Reader] = {
    "model": str,
    "model_version": str,
    "seed": whole(-(2**63), 2**63 - 1),
    "seed_honoured": truth,
    "repeat": whole(0, 65_535),
    "slot": whole(0, 255),
    "prompt_sent": str,
    "prompt_revised": str,
    "rewriter": one_of("on", "off", "unknown"),
    "safety": str,
    "requested_at": moment,
    "provider_params": settings,
    "status": one_of("ok", "refused", "filtered", "failed", "missing"),
    "reason": str,
}
"""The cells that a list may fill in the images table."""
