"""Which item a row is about, and names brought to one form, to tell whether two of them are the same."""

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from culturekit.audit.sheet import Row, Sheet

__all__ = ["EMPTY", "QID", "fold", "item_of", "items_of", "parts_of", "same_artifact", "squeeze", "tidy", "written"]

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


def item_of(sheet: Sheet, row: Row) -> str | None:
    """Give the QID of a row; None where it has none."""
    stated = sheet.text(row, "id").strip()
    return stated if QID.fullmatch(stated) else None


def same_artifact(sheet: Sheet, one: Row, other: Row) -> bool:
    """Tell whether two rows of one name can be one artifact: two QIDs that differ are two."""
    items = item_of(sheet, one), item_of(sheet, other)
    return None in items or items[0] == items[1]


def tidy(text: str) -> str:
    """Put one space between words and none around them."""
    return " ".join(text.split())


def squeeze(text: str) -> str:
    """Leave out white space altogether."""
    return "".join(text.split())


def fold(text: str) -> str:
    """Fold case, width and white space; accents stay, for they can tell two dishes apart."""
    return tidy(unicodedata.normalize("NFKC", text).casefold())
