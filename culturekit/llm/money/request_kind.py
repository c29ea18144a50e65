"""What requests of one task have in common, so that earlier ones, and their repairs, can be told from all others."""

from culturekit.llm.journal.request_texts import shared_length
from culturekit.llm.repair import REPAIR_MARK

__all__ = ["RequestKind"]

LEAST_SHARED = 200
"""Bytes at both ends: the instructions and the schema. Requests that share less are known by their keys only."""

PROBE = 50
"""Bytes by which the place of an end is looked for."""


class RequestKind:
    """The ends that the bodies of some requests share: before and after the data."""

    def __init__(self) -> None:
        """Start with no request."""
        self.head = self.tail = b""
        self.seen = 0

    def add(self, body: bytes) -> None:
        """Take a request in."""
        if not self.seen:
            self.head = self.tail = body
        elif not self.frames(body):
            self.head = body[: shared_length(self.head, body)]
            self.tail = body[len(body) - shared_length(self.tail[::-1], body[::-1]) :]
        self.seen += 1

    @property
    def telling(self) -> bool:
        """Whether there is enough in common to know a kind by."""
        return self.seen > 1 and len(self.head) + len(self.tail) >= LEAST_SHARED

    def frames(self, body: bytes) -> bool:
        """Tell whether a body begins and ends as those of this kind."""
        return body.startswith(self.head) and body.endswith(self.tail)

    def asks(self, body: bytes) -> bool:
        """Tell whether a request is of this kind, and no repair."""
        return self.telling and self.frames(body) and REPAIR_MARK not in body

    def repairs(self, body: bytes) -> bool:
        """Tell whether a request asks once more what one of this kind asked: the same, up to the note at the end."""
        before, mark, _ = body.partition(REPAIR_MARK)
        if not mark or not self.telling:
            return False
        if len(before) <= len(self.head):
            return len(before) >= LEAST_SHARED and self.head.startswith(before)
        place = before.rfind(self.tail[:PROBE])
        return before.startswith(self.head) and place >= 0 and self.tail.startswith(before[place:])
