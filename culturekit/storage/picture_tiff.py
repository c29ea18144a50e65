"""What a TIFF file says of its first picture: size, depth, way up; and that its tags ask for nothing excessive."""

import struct
from collections.abc import Mapping

from culturekit.storage.picture_facts import MOST_FRAMES, BrokenPicture, CostlyPicture, PictureFacts

__all__ = ["tiff_facts"]

WIDTH, HEIGHT, BITS, COMPRESSION, PHOTOMETRIC = 256, 257, 258, 259, 262
ORIENTATION, SAMPLES, STRIP_ROWS, TILE_WIDTH, TILE_HEIGHT = 274, 277, 278, 322, 323
WHITE_IS_ZERO = 0
SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8}
READ = {1: "B", 3: "H", 4: "I", 16: "Q"}
MOST_TAG_BYTES = 32 * 2**20
MOST_TAGS = 4096


def tiff_facts(content: bytes) -> PictureFacts:
    """Read the first directory of a TIFF file, and count the others."""
    layout = Layout(content)
    tags, asked, after = layout.directory(layout.first)
    width, height = tags.get(WIDTH, 0), tags.get(HEIGHT, 0)
    samples, bits = tags.get(SAMPLES, 1), tags.get(BITS, 1)
    tile = tags.get(TILE_WIDTH, width) * tags.get(TILE_HEIGHT, min(tags.get(STRIP_ROWS, height), height))
    if samples > 8 or bits > 64:
        raise BrokenPicture("samples of an unknown kind")
    if tile > 4 * max(width * height, 2**20):
        raise CostlyPicture("tiles far larger than the picture")
    raw = samples * max(bits, 8) / 8
    orientation = tags.get(ORIENTATION, 1)
    return PictureFacts(
        width,
        height,
        frames=layout.count(after),
        orientation=orientation if 1 <= orientation <= 8 else 1,
        bits=bits,
        inverted=tags.get(PHOTOMETRIC) == WHITE_IS_ZERO,
        working=raw if tags.get(COMPRESSION, 1) != 1 else 0.0,
        extra=asked + (int(tile * max(raw, 4)) if tile > width * height else 0),
    )


class Layout:
    """The byte order and the widths of a TIFF file, old or big."""

    def __init__(self, content: bytes) -> None:
        """Read the header."""
        self.content = content
        self.order = "<" if content[:2] == b"II" else ">"
        self.big = content[2:4] in (b"+\0", b"\0+")
        (self.first,) = self.read("Q" if self.big else "I", 8 if self.big else 4)

    def read(self, kinds: str, at: int) -> tuple[int, ...]:
        """Read some whole numbers."""
        try:
            return struct.unpack_from(self.order + kinds, self.content, at)
        except struct.error as error:
            raise BrokenPicture("cut") from error

    def directory(self, at: int) -> tuple[Mapping[int, int], int, int]:
        """Read the first value of each whole-number tag, count the bytes of all, and find the next directory."""
        (entries,) = self.read("Q" if self.big else "H", at)
        if entries > MOST_TAGS:
            raise CostlyPicture(f"{entries:,} tags")
        start, size = at + (8 if self.big else 2), 20 if self.big else 12
        tags: dict[int, int] = {}
        asked = 0
        for entry in range(start, start + size * entries, size):
            tag, kind, count = self.read("HHQ" if self.big else "HHI", entry)
            total = SIZES.get(kind, 1) * count
            held = entry + (12 if self.big else 8)
            if total > (8 if self.big else 4):
                asked += total
                (held,) = self.read("Q" if self.big else "I", held)
            if kind in READ and count and held < len(self.content):
                tags[tag] = self.read(READ[kind], held)[0]
        if asked > max(MOST_TAG_BYTES, len(self.content)):
            raise CostlyPicture(f"tags of {asked:,} bytes")
        return tags, asked, self.read("Q" if self.big else "I", start + size * entries)[0]

    def count(self, after: int) -> int:
        """Count the directories from the second on, up to a bound, and as long as they lead to new ones."""
        seen = {0, self.first}
        while after not in seen and len(seen) <= MOST_FRAMES:
            seen.add(after)
            try:
                (entries,) = self.read("Q" if self.big else "H", after)
                after = self.read(
                    "Q" if self.big else "I", after + (8 if self.big else 2) + (20 if self.big else 12) * entries
                )[0]
            except BrokenPicture:
                return len(seen) - 2
        return len(seen) - 1
