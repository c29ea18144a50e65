"""Requests kept once and briefly: what thousands of bodies share at both ends is written down a single time."""

import sqlite3
from dataclasses import dataclass

__all__ = ["RequestTexts", "shared_ends"]

WORTH_SHARING = 64
"""Bytes that a template has to save; below that a new one is written."""

KNOWN_TEMPLATES = 32


@dataclass(frozen=True, slots=True)
class Template:
    """The two ends of a body."""

    number: int
    head: bytes
    tail: bytes


class RequestTexts:
    """Writes bodies as the part in which they differ from others, inside whatever transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Know the templates that are in the file."""
        self.connection = connection
        self.templates: list[Template] = []
        self.last = b""
        self.learn()

    def learn(self) -> None:
        """Read what templates there are; also what to do after a transaction was undone."""
        rows = self.connection.execute(
            "SELECT number, head, tail FROM templates ORDER BY number DESC LIMIT ?", (KNOWN_TEMPLATES,)
        )
        self.templates = [Template(*row) for row in rows]

    def number_of(self, key: bytes, body: bytes) -> int:
        """Give the number of a request, which is written down when it is new."""
        known = self.connection.execute("SELECT number FROM requests WHERE key = ?", (key,)).fetchone()
        if known is not None:
            return int(known[0])
        template = self.template_for(body)
        middle = body[len(template.head) : len(body) - len(template.tail)]
        added = self.connection.execute(
            "INSERT INTO requests (key, template, middle) VALUES (?, ?, ?)", (key, template.number, middle)
        )
        return int(added.lastrowid or 0)

    def template_for(self, body: bytes) -> Template:
        """Choose the template that saves most; a new one where two bodies in a row share more than any holds."""
        best = max(self.fitting(body), key=saved, default=None)
        head, tail = shared_ends(self.last, body)
        self.last = body
        if best is not None and saved(best) + WORTH_SHARING >= len(head) + len(tail):
            return best
        return self.add(head, tail)

    def fitting(self, body: bytes) -> list[Template]:
        """List the templates that a body begins and ends with."""
        return [
            template
            for template in self.templates
            if body.startswith(template.head) and body.endswith(template.tail) and saved(template) <= len(body)
        ]

    def add(self, head: bytes, tail: bytes) -> Template:
        """Write a template down."""
        added = self.connection.execute("INSERT INTO templates (head, tail) VALUES (?, ?)", (head, tail))
        template = Template(int(added.lastrowid or 0), head, tail)
        self.templates = [template, *self.templates[: KNOWN_TEMPLATES - 1]]
        return template


def saved(template: Template) -> int:
    """Count the bytes that a template saves."""
    return len(template.head) + len(template.tail)


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
