"""What a check is, and what an audit can say: codes, findings with their place, and changes that mend them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet
from culturekit.storage.foreign_text import printable

__all__ = ["Change", "Check", "Code", "Find", "Finding", "Severity", "Turn", "quoted"]

Severity: TypeAlias = Literal["error", "warning", "note"]
"""An error makes a row wrong, a warning makes it untidy; a note is for a person to judge, and no finding by itself."""

LONGEST_QUOTE = 120


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a mend: new cells of a row; without any, the row is set aside."""

    row: int
    cells: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found; `row` counts from 0 and is None where the whole file is meant."""

    code: str
    severity: Severity
    row: int | None
    field: str
    value: str
    message: str
    suggestion: str
    changes: tuple[Change, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Give the finding for machines; what a mend would change is in the change log."""
        data = asdict(self)
        data["fixable"] = bool(data.pop("changes"))
        data["value"] = shortened(self.value)
        return data


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding: its name, how grave it is, what it means, and what `--fix` does about it."""

    name: str
    severity: Severity
    says: str
    mend: str

    def finding(
        self,
        message: str,
        *,
        row: int | None,
        field: str,
        value: str,
        suggestion: str = "",
        changes: tuple[Change, ...] = (),
    ) -> Finding:
        """Make a finding of this kind."""
        return Finding(self.name, self.severity, row, field, value, message, suggestion or self.mend, changes)

    def rewrite(self, message: str, *, row: int, field: str, value: str, wanted: str) -> Finding:
        """Make a finding whose mend writes into the cell what is wanted there."""
        changes = (Change(row, {field: wanted}),)
        suggestion = f"write {quoted(wanted)}"
        return self.finding(message, row=row, field=field, value=value, suggestion=suggestion, changes=changes)

    def set_aside(self, message: str, *, row: int, field: str, value: str, suggestion: str = "") -> Finding:
        """Make a finding whose mend sets its row aside."""
        changes = (Change(row),)
        return self.finding(message, row=row, field=field, value=value, suggestion=suggestion, changes=changes)


def shortened(text: str) -> str:
    """Cut what is too long to show."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}… ({len(text):,} characters)"


def quoted(text: str) -> str:
    """Quote a value so that white space, and what a terminal would obey, can be seen."""
    return f"“{printable(shortened(text))}”"


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
