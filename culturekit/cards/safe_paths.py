"""Paths that other people wrote: plain, relative and within the folder, or refused."""

import re

__all__ = ["PLAIN_PATH", "is_plain"]

PLAIN_PATH = "a plain relative path within the folder"

ODD = re.compile(r"[\\\0\r\n\ud800-\udfff]|://|^[A-Za-z]:|^~|%2e|%2f|%5c", re.IGNORECASE)
"""Half a character (a lone surrogate) stands in no UTF-8 text, and no file is named by it."""


def is_plain(text: object) -> bool:
    """Tell whether a text can only mean something below the folder: no `..`, no root, no address, no drive."""
    if not isinstance(text, str) or not text or ODD.search(text):
        return False
    return not text.startswith("/") and not {"", ".", ".."} & set(text.split("/"))
