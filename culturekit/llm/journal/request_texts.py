"""Requests kept once and briefly: what thousands of bodies share at both ends is written down a single time.

Many rows are written in one statement of SQLite. Each statement hands the interpreter's lock over twice, and a thread
that asks for it back beside a busy event loop can wait 5 ms for it; so a group of 64 is written in a handful of
statements, not in 64. Sizes are fixed, so that prepared statements are used again.
"""

import sqlite3
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["RequestTexts", "insert_rows", "pieces", "read_templates", "shared_ends", "shared_length"]

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


WORTH_SHARING = 64
"""Bytes that a new template has to save beyond twice what an old one saves."""

STRANGERS = 8
"""Bodies that fitted no template well, kept to find what the next one shares with them."""

MOST_TEMPLATES = 200


@dataclass(frozen=True, slots=True)
class Template:
    """The two ends of a body."""

    number: int
    head: bytes
    tail: bytes

    @property
    def saved(self) -> int:
        """Count the bytes that need not be written again."""
        return len(self.head) + len(self.tail)

    def fits(self, body: bytes) -> bool:
        """Tell whether a body begins and ends like this."""
        return len(body) >= self.saved and body.startswith(self.head) and body.endswith(self.tail)


class RequestTexts:
    """Writes bodies as the part in which they differ from others, inside whatever transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Know what is in the file."""
        self.connection = connection
        self.strangers: deque[bytes] = deque(maxlen=STRANGERS)
        self.learn()

    def learn(self) -> None:
        """Read what is in the file; to be done again after a transaction was undone."""
        self.templates = sorted(read_templates(self.connection).values(), key=lambda template: -template.number)
        (self.count,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()

    def numbers_of(self, requests: Sequence[tuple[bytes, bytes]]) -> dict[bytes, int]:
        """Give the number of each key's request; those that are new are written down."""
        bodies = dict(requests)
        numbers: dict[bytes, int] = {}
        for piece in pieces(list(bodies)):
            numbers.update(
                self.connection.execute(f"SELECT key, number FROM requests WHERE key IN {places(len(piece))}", piece)
            )
        rows = []
        for key, body in bodies.items():
            if key not in numbers:
                self.count += 1
                numbers[key] = self.count
                template = self.template_for(body)
                rows.append(
                    (self.count, key, template.number, body[len(template.head) : len(body) - len(template.tail)])
                )
        insert_rows(self.connection, "INSERT INTO requests (number, key, template, middle)", rows)
        return numbers

    def template_for(self, body: bytes) -> Template:
        """Choose the template that saves most; a new one where this body and an earlier one share far more."""
        fitting = [template for template in self.templates if template.fits(body)]
        best = max(fitting, key=lambda template: template.saved, default=None)
        if best is not None and best.saved * 2 > len(body):
            return best
        head, tail = max((shared_ends(one, body) for one in self.strangers), key=joint, default=(b"", b""))
        self.strangers.append(body)
        enough = 0 if best is None else best.saved * 2 + WORTH_SHARING
        if best is not None and (joint((head, tail)) < enough or len(self.templates) >= MOST_TEMPLATES):
            return best
        return self.add(head, tail)

    def add(self, head: bytes, tail: bytes) -> Template:
        """Write a template down."""
        added = self.connection.execute("INSERT INTO templates (head, tail) VALUES (?, ?)", (head, tail))
        template = Template(int(added.lastrowid or 0), head, tail)
        self.templates.insert(0, template)
        return template


def read_templates(connection: sqlite3.Connection) -> dict[int, Template]:
    """Read all templates by number."""
    rows = connection.execute("SELECT number, head, tail FROM templates")
    return {number: Template(number, head, tail) for number, head, tail in rows}


def joint(ends: tuple[bytes, bytes]) -> int:
    """Count the bytes of two ends."""
    return len(ends[0]) + len(ends[1])


def shared_ends(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Give the longest common beginning and, in what is left, the longest common end of two texts."""
    head = shared_length(one, other)
    rest = min(len(one), len(other)) - head
    tail = shared_length(one[len(one) - rest :][::-1], other[len(other) - rest :][::-1])
    return other[:head], other[len(other) - tail :]


def shared_length(one: bytes, other: bytes) -> int:
    """Count how many first bytes two texts share, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
