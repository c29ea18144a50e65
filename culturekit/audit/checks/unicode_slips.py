"""Characters that are not seen, accents in pieces, and letters that pose as others."""

import re
import unicodedata
from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.look_alikes import latin_twin, mixed_words
from culturekit.audit.sheet import Sheet
from culturekit.llm.untrusted.hidden_characters import reveal, without_hidden_characters

__all__ = ["CHECK"]

HIDDEN = Code(
    "hidden-character",
    "error",
    "a character that is not seen: zero-width, bidirectional, control, tag, or half a character",
    "it is taken out",
)
NOT_NFC = Code(
    "not-nfc", "warning", "a letter and its accent stand apart, so that equal names differ in bytes", "normal form NFC"
)
LOOK_ALIKE = Code(
    "look-alike",
    "error",
    "a letter of another script, or of a decorative kind, that poses as a Latin one",
    "the Latin letter that it looks like",
)
MIXED = Code("mixed-script", "note", "a word mixes scripts, and no Latin twin of its letters is known", "nothing")
HALF = re.compile("[\ud800-\udfff\ufffd]")


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at every text that is more than ASCII, or has control characters."""
    columns = sheet.columns_with_text()
    for row in sheet.rows:
        for column in columns:
            text = row.cells.get(column)
            if isinstance(text, str) and not (text.isascii() and text.isprintable()):
                yield from look(row.number, column, text)


def look(number: int, column: str, text: str) -> Iterator[Finding]:
    """Give the findings of one text, the gravest mend first."""

    def slip(code: Code, message: str, wanted: str | None) -> Finding:
        changes = () if wanted is None else (Change(number, {column: wanted}),)
        suggestion = "" if wanted is None else f"write {quoted(wanted)}"
        return code.finding(message, row=number, field=column, value=text, suggestion=suggestion, changes=changes)

    seen = without_hidden_characters(text)
    kinds = [*reveal(text), *(["replacement character"] if "\ufffd" in text else [])]
    if kinds:
        yield slip(HIDDEN, f"hidden in {quoted(text)}: {', '.join(kinds)}", HALF.sub("", seen))
    if unicodedata.normalize("NFC", text) != text:
        yield slip(NOT_NFC, f"accents stand apart in {quoted(text)}", unicodedata.normalize("NFC", text))
    twin = latin_twin(text)
    if twin != text:
        yield slip(LOOK_ALIKE, f"look-alike letters in {quoted(text)}: {foreign(text, twin)}", twin)
    if words := mixed_words(twin):
        yield slip(MIXED, f"scripts mixed in {', '.join(map(quoted, words))}", None)


def foreign(text: str, twin: str) -> str:
    """Name the letters that a twin replaces."""
    odd = [character for character in dict.fromkeys(text) if character not in twin]
    return ", ".join(f"U+{ord(character):04X} {unicodedata.name(character, '?').lower()}" for character in odd[:5])


CHECK = Check(Turn.CELL, (HIDDEN, NOT_NFC, LOOK_ALIKE, MIXED), find)
