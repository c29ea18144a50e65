"""White space that a reader does not see: around a text, twice between words, or of a kind that looks like a space."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import tidy
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["CHECK"]

WHITE_SPACE = Code(
    "white-space",
    "warning",
    "white space around a text, twice between words, or none of the ordinary kind (such as a no-break space)",
    "one ordinary space between words, none around them",
)


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at every text that is not blank altogether; a blank one is missing, which other checks say."""
    columns = sheet.columns_with_text()
    for row in sheet.rows:
        for column in columns:
            text = row.cells.get(column)
            if isinstance(text, str) and text.strip() and (wanted := tidy(text)) != text:
                yield WHITE_SPACE.finding(
                    f"{kind_of(text)} in {quoted(text)}",
                    row=row.number,
                    field=column,
                    value=text,
                    suggestion=f"write {quoted(wanted)}",
                    changes=(Change(row.number, {column: wanted}),),
                )


def kind_of(text: str) -> str:
    """Name the slip."""
    odd = sorted({f"U+{ord(character):04X}" for character in text if character.isspace() and character != " "})
    if odd:
        return f"white space other than a plain space ({', '.join(odd)})"
    if text != text.strip():
        return "a space at the beginning or the end"
    return "several spaces in a row"


CHECK = Check(Turn.CELL, (WHITE_SPACE,), find)
