"""Paths that other people wrote: plain, relative and within the folder, or refused."""

import re
from pathlib import Path, PurePosixPath

__all__ = ["PLAIN_PATH", "is_plain", "is_within"]

PLAIN_PATH = "a plain relative path within the folder"

ODD = re.compile(r"[\\\0\r\n]|://|^[A-Za-z]:|^~|%2e|%2f|%5c", re.IGNORECASE)


def is_plain(text: object) -> bool:
    """Tell whether a text can only mean something below the folder: no `..`, no root, no address, no drive."""
    if not isinstance(text, str) or not text or ODD.search(text):
        return False
    return not text.startswith("/") and not {"", ".", ".."} & set(text.split("/"))


def is_within(folder: Path, text: str) -> bool:
    """Tell whether a plain path stays in the folder also when links are followed."""
    place = folder / PurePosixPath(text)
    return place.resolve().is_relative_to(folder.resolve())
