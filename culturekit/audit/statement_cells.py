"""Statement cells of the public layout: lists of QIDs written as text."""

import re
from collections.abc import Sequence
from functools import lru_cache

__all__ = ["EMPTY", "QID", "items_of", "parts_of", "written"]

EMPTY = "nan"
LIST = re.compile(r"\[(.*)\]", re.DOTALL)
QID = re.compile(r"Q[1-9][0-9]{0,9}")
"""An item; its number has no more digits than a graph can hold."""


@lru_cache(maxsize=65_536)
def parts_of(cell: str) -> tuple[str, ...] | None:
    """Take a cell apart; None where it says nothing."""
    text = cell.strip()
    if text in {"", EMPTY}:
        return None
    match = LIST.fullmatch(text)
    inner = match[1] if match else text
    return tuple(part.strip().strip("'\"").strip() for part in inner.split(",") if part.strip())


@lru_cache(maxsize=65_536)
def items_of(cell: str) -> tuple[str, ...]:
    """List the QIDs of a cell, each once."""
    return tuple(dict.fromkeys(part for part in parts_of(cell) or () if QID.fullmatch(part)))


def written(items: Sequence[str]) -> str:
    """Write items as the layout has them."""
    quoted = ", ".join(f"'{item}'" for item in items)
    return f"[{quoted}]"
