"""Handing out the review sheet of a stage, and never over what somebody filled in."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from culturekit.core.errors import UsageError


@contextmanager
def review_file(out: Path, sheet: Path | None) -> Iterator[None]:
    """Copy the sheet that a stage in `out` wrote, also when quotas were not met; None asks for no copy."""
    if sheet is not None and sheet.is_dir():
        raise UsageError("a folder, not a sheet", where=str(sheet), expected="the name of a CSV file")
    try:
        yield
    except typer.Exit:
        hand_out(out, sheet)
        raise
    hand_out(out, sheet)


def hand_out(out: Path, sheet: Path | None) -> None:
    """Write the copy; a file that says something else may hold decisions and stays."""
    from culturekit.builders.prompting.prompts import REVIEW
    from culturekit.core.atomic import write_atomically

    if sheet is None:
        return
    content = (out / REVIEW).read_bytes()
    if sheet.exists() and sheet.read_bytes() != content:
        raise UsageError(
            "this sheet is there already and may hold decisions: it is not written over",
            where=str(sheet),
            hint=f"Name another file; the new sheet is also {out / REVIEW}.",
        )
    sheet.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(sheet, content)
