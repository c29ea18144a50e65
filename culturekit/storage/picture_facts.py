"""What a picture file says of itself before anything of it is decoded."""

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = ["MOST_FRAMES", "BrokenPicture", "CostlyPicture", "PictureFacts"]

MOST_FRAMES = 1000
"""The frames of a file are counted so far and no further."""


class BrokenPicture(ValueError):
    """The file does not keep to its format; never leaves this package."""


class CostlyPicture(ValueError):
    """The file asks for far more work than its pixels need; never leaves this package."""


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """The stored size and what decides how the pixels are read.

    Attributes:
        width: of the stored picture, before it is turned upright.
        height: of the stored picture.
        frames: how many pictures the file holds, as far as they were counted.
        orientation: the EXIF orientation, 1 to 8; 1 is upright.
        bits: of a sample of the stored picture, where the decoder does not tell.
        transparent: the one colour that is transparent, in stored samples.
        inverted: whether 0 means white where the decoder does not tell.
        box: of the first frame, left, top, right and bottom; the rest of the picture is transparent.
        working: bytes a pixel that the decoder takes, beside the picture that it fills.
        extra: bytes that it takes beside, whatever the number of pixels.
        pieces: the runs of the file, from and to, that decide its pixels; none for the whole of it.
    """

    width: int
    height: int
    frames: int = 1
    orientation: int = 1
    bits: int = 8
    transparent: tuple[int, ...] = ()
    inverted: bool = False
    box: tuple[int, int, int, int] | None = None
    working: float = 0.0
    extra: int = 0
    pieces: Sequence[tuple[int, int]] = field(default=())

    @property
    def first_of(self) -> str:
        """Say of how many pictures the first was read."""
        return (
            f"first of {self.frames:,} frames"
            if self.frames <= MOST_FRAMES
            else f"first of more than {MOST_FRAMES:,} frames"
        )
