"""Many rows in one statement of SQLite.

Each statement hands the interpreter's lock over twice, and a thread that asks for it back beside a busy event loop can
wait 5 ms for it; so a group of 64 is written in a handful of statements, not in 64. Sizes are fixed, so that prepared
statements are used again.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import TypeVar

__all__ = ["insert_rows", "pieces", "places"]

SIZES = (256, 64, 16, 4, 1)

Item = TypeVar("Item")


def pieces(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut a sequence into as few parts of the fixed sizes as will do."""
    start = 0
    for size in SIZES:
        while start + size <= len(items):
            yield items[start : start + size]
            start += size


def places(count: int) -> str:
    """Write the place holders of a list of values."""
    return f"({','.join('?' * count)})"


def insert_rows(connection: sqlite3.Connection, insert: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows of equal width; `insert` is the statement up to VALUES."""
    for piece in pieces(rows):
        values = ",".join([places(len(piece[0]))] * len(piece))
        connection.execute(f"{insert} VALUES {values}", [value for row in piece for value in row])
