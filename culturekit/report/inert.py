"""Text of strangers on the page: what it says is shown, what it could do to the page is taken out."""

import hashlib
import re

from markupsafe import Markup

__all__ = ["LONGEST", "inert", "inert_value", "plain"]

LONGEST = 400
"""Characters of one text that are shown; labels of Wikidata have at most 250."""

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
"""Marks and overrides of direction: the page isolates each text and finds its direction itself."""

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def inert(text: str) -> str:
    """Replace what no font draws, drop what turns the text around it, and shorten what is too long to read."""
    shown = CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text[: LONGEST * 4])
    shown = DIRECTIONS.sub("", shown)
    if len(text) <= LONGEST:
        return shown
    return f"{shown[:LONGEST]}… ({len(text):,} characters)"


def inert_value(value: object) -> object:
    """Make a value of a template inert; markup of the page's own is left alone."""
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def plain(text: str) -> str:
    """Give a text as part of an id or a file name: plain words as they are, all else by hash."""
    return text if PLAIN.fullmatch(text) else f"x{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"
