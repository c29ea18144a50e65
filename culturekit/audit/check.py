"""What a check is: its codes, and a function from a file to findings."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

from culturekit.audit.findings import Code, Finding
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["Check", "Find", "Turn"]

Find: TypeAlias = Callable[[Sheet, Knowledge], Iterator[Finding]]


class Turn(IntEnum):
    """When a mend has its turn: cells first, then rows as a whole, and repeated rows when all else is mended."""

    CELL = 0
    ROW = 1
    FILE = 2


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a file."""

    turn: Turn
    codes: tuple[Code, ...]
    find: Find
