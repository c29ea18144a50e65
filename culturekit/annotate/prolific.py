"""Links of a Prolific study: one per sheet, with what Prolific puts into them for each participant."""

from collections.abc import Sequence
from urllib.parse import quote, urlsplit

from culturekit.annotate.form import sheet_name
from culturekit.annotate.tasks import Part
from culturekit.errors import UsageError
from culturekit.storage.spreadsheet_cells import csv_text

__all__ = ["check_address", "prolific_links"]

FILLED_IN = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"
COLUMNS = ("sheet", "annotator_region", "items", "places", "url")


def check_address(address: str, *, name: str) -> None:
    """Refuse what is no address of a page on the web."""
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.netloc or any(c.isspace() or c in "<>\"'" for c in address):
        raise UsageError(f"{name} is no web address", expected="https://HOST/PATH", found=repr(address))


def prolific_links(parts: Sequence[Part], form_at: str) -> bytes:
    """Write a table of sheets: one place each, and the address to enter as the study's."""
    joint = "&" if "?" in form_at else "?"
    rows = [
        {
            "sheet": (sheet := sheet_name(part, slot)), "annotator_region": part.share.region,
            "items": len(part.tasks), "places": 1,
            "url": f"{form_at}{joint}sheet={quote(sheet, safe='')}&{FILLED_IN}",
        }
        for part in parts
        for slot in range(part.share.slots)
    ]  # fmt: skip
    return csv_text(COLUMNS, rows).encode()
