"""Which item a row is about."""

from culturekit.audit.sheet import Row, Sheet
from culturekit.audit.statement_cells import QID

__all__ = ["item_of", "same_artifact"]


def item_of(sheet: Sheet, row: Row) -> str | None:
    """Give the QID of a row; None where it has none."""
    stated = sheet.text(row, "id").strip()
    return stated if QID.fullmatch(stated) else None


def same_artifact(sheet: Sheet, one: Row, other: Row) -> bool:
    """Tell whether two rows of one name can be one artifact: two QIDs that differ are two."""
    items = item_of(sheet, one), item_of(sheet, other)
    return None in items or items[0] == items[1]
