"""Words of the data as Markdown that shows them, and obeys none of them."""

import re
from collections.abc import Iterable, Sequence

from culturekit.storage.foreign_text import printable

__all__ = ["BLOCK", "block", "code", "escaped", "table"]

OBEYED = re.compile(r"([\\`*_{}\[\]()#+\-!|~$=@]|:(?=//)|(?<=www)\.)")
"""What Markdown, or a host's extension of it, would take for more than a character."""

NOT_CODE = re.compile(r"[`|<>&\\]")

ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
LONGEST = 160

BLOCK = re.compile(r"<!-- generated: (?P<name>[a-z-]+) -->\n(?P<text>.*?)\n<!-- end of (?P=name) -->", re.DOTALL)
"""A generated block in a page."""


def visible(text: str) -> str:
    """Write what is not seen, or would break a line or turn the reading direction, by its code point; cut the rest."""
    shown = printable(text[:LONGEST])
    return shown if len(text) <= LONGEST else f"{shown}… ({len(text):,} characters)"


def escaped(text: str) -> str:
    """Write a text so that Markdown and HTML show it as it is."""
    marked = OBEYED.sub(r"\\\1", visible(text))
    return "".join(ENTITIES.get(character, character) for character in marked)


def code(text: str) -> str:
    """Write a hash or a name as code; one that could end the code, or the cell around it, is escaped instead."""
    if not text:
        return ""
    return escaped(text) if NOT_CODE.search(text) else f"`{visible(text)}`"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of cells that are Markdown already."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) if len(lines) > 2 else "Nothing."


def block(name: str, text: str) -> str:
    """Mark a text as generated."""
    return f"<!-- generated: {name} -->\n{text}\n<!-- end of {name} -->"
