"""How many decoded pictures are in memory at once: few large ones or many small ones."""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Protocol

from culturekit.storage.locks import hold
from culturekit.storage.picture_facts import BrokenPicture, CostlyPicture
from culturekit.storage.picture_formats import facts_of, format_of

__all__ = ["LARGE_FILE", "SMALL_FILE", "Gate", "OneOfMany", "Room", "SharedMemory", "memory_for"]

BUDGET = 224 * 2**20
"""Bytes that pictures may take together in one process; one that needs more is decoded alone."""

FILES = 32 * 2**20
"""Bytes of files that may be looked at together, before there is memory for their pictures."""

LARGE_FILE = 16 * 2**20
"""A file of more bytes is not even read beside others."""

SMALL_FILE = 2 * 2**20
"""A file of more bytes is read once more when there is memory for its picture, rather than kept until then."""

HEAVY = 96 * 2**20
"""A picture that needs more is decoded by one process at a time."""

DECODED, PIXELS, COPY = 4, 3, 4
"""Bytes a pixel: as the decoder fills them, as an array, and as the copy that is brought to an encoder's size."""


class Gate(Protocol):
    """Lets a picture be decoded when there is memory for it."""

    def reading(self, size: int) -> AbstractContextManager[None]:
        """Wait until a file of that many bytes may be looked at."""
        ...

    def holding(self, size: int) -> AbstractContextManager[None]:
        """Wait until there is room for that many bytes, and take it for a block."""
        ...


class Room:
    """Memory that the threads of a process share; who came first goes first."""

    def __init__(self, budget: int) -> None:
        """Start with all of it free."""
        self.budget = budget
        self.taken = 0
        self.turn = threading.Lock()
        self.freed = threading.Condition()

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Wait until there is room; what needs more than there is waits until it is alone."""
        size = min(size, self.budget)
        with self.turn, self.freed:
            self.freed.wait_for(lambda: self.taken + size <= self.budget)
            self.taken += size
        try:
            yield
        finally:
            with self.freed:
                self.taken -= size
                self.freed.notify_all()


class SharedMemory:
    """What the threads of a process may take for files that are looked at, and for pictures that are decoded."""

    def __init__(self) -> None:
        """Start with all of it free."""
        self.files, self.pictures = Room(FILES), Room(BUDGET)

    def reading(self, size: int) -> AbstractContextManager[None]:
        """Wait until there is room to look at a file."""
        return self.files.holding(size)

    def holding(self, size: int) -> AbstractContextManager[None]:
        """Wait until there is room for a picture."""
        return self.pictures.holding(size)


class OneOfMany:
    """A process that decodes one picture at a time, beside others that do the same: heavy ones take turns."""

    def __init__(self, lock: Path) -> None:
        """Take the file by which processes know whose turn it is."""
        self.lock = lock

    def reading(self, size: int) -> AbstractContextManager[None]:
        """Wait for nobody."""
        return nullcontext()

    @contextmanager
    def holding(self, size: int) -> Iterator[None]:
        """Wait for the turn, if the picture is heavy."""
        if size <= HEAVY:
            yield
            return
        with hold(self.lock, wait=True):
            yield


def memory_for(content: bytes) -> int:
    """Say how much memory it takes to decode a file and bring its picture to another size."""
    kind = format_of(content)
    if kind is None:
        return len(content)
    try:
        facts = facts_of(kind, content)
    except (BrokenPicture, CostlyPicture, ValueError, OverflowError):
        return len(content)
    a_pixel = max(DECODED + max(facts.working, PIXELS), PIXELS + COPY)
    return int(2 * len(content) + facts.extra + facts.width * facts.height * a_pixel)
