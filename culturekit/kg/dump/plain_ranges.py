"""A range of a file that is not compressed."""

from collections.abc import Iterator
from pathlib import Path

from culturekit.kg.dump.members import Chunk

__all__ = ["PlainRange"]

CHUNK_BYTES = 1_000_000


class PlainRange:
    """The bytes of a file from `begin` to before `end`, of one member; offsets are counted from `begin`."""

    def __init__(self, path: Path, begin: int, end: int, *, exact: bool = True, first_member: int = 0) -> None:
        """Choose the range."""
        self.path = path
        self.begin = begin
        self.end = end
        self.start: int | None = begin
        self.stop = end
        self.members = 0
        self.checks: list[tuple[int, int]] = []

    def chunks(self) -> Iterator[Chunk]:
        """Read the bytes."""
        position = self.begin
        with self.path.open("rb") as file:
            file.seek(position)
            while content := file.read(min(CHUNK_BYTES, self.end - position)):
                yield Chunk(0, position - self.begin, content)
                position += len(content)
        self.stop = position
