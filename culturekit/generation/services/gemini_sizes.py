"""The sizes that Gemini draws, in pixels: one table of shapes, and how much larger each size is."""

from collections.abc import Mapping

from culturekit.errors import UsageError

__all__ = ["DEFAULT_SIZE", "shape_of_size", "size_of"]

DEFAULT_SIZE = "1K"

SHAPES: Mapping[str, tuple[int, int]] = {
    "1:1": (1024, 1024),
    "2:3": (832, 1248),
    "3:2": (1248, 832),
    "3:4": (864, 1184),
    "4:3": (1184, 864),
    "4:5": (896, 1152),
    "5:4": (1152, 896),
    "9:16": (768, 1344),
    "16:9": (1344, 768),
    "21:9": (1536, 672),
}
"""Width and height at 1K."""

SCALES: Mapping[str, int] = {"1K": 1, "2K": 2, "4K": 4}


def size_of(image_size: str) -> str:
    """Name the size that is drawn where none is said."""
    return image_size or DEFAULT_SIZE


def shape_of_size(size: str) -> tuple[str, str]:
    """Say a width and a height in Google's words: a shape and a size."""
    width, height = (int(side) for side in size.split("x"))
    for name, scale in SCALES.items():
        for ratio, (wide, high) in SHAPES.items():
            if (width, height) == (wide * scale, high * scale):
                return ratio, name
    raise UsageError(
        "Gemini does not draw images of this size",
        found=size,
        expected=", ".join(f"{wide}x{high}" for wide, high in SHAPES.values()) + ", or twice or four times as much",
    )
