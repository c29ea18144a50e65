"""The label that a simulated portrait bears: which things it shows, in black and white along its upper edge."""

import hashlib
from collections.abc import Iterable

import numpy as np

from culturekit.generation.backend import Pixels

__all__ = ["MOST", "read_label", "thing_code", "write_label"]

CELL, BITS, MOST = 4, 16, 6
"""Pixels along each side of a bit, bits of a thing, things that a label has room for."""

PER_ROW = 24
ROWS = MOST * BITS // PER_ROW + 1
"""The first row says that there is a label."""

MARK = np.tile([1, 1, 0], PER_ROW // 3)


def thing_code(thing: str) -> int:
    """Give the number that stands for a thing, above 0."""
    return int.from_bytes(hashlib.sha256(thing.encode()).digest()[:2], "big") | 1


def write_label(pixels: Pixels, things: Iterable[str]) -> None:
    """Paint the label over a picture's upper edge."""
    codes = [*map(thing_code, things)][:MOST]
    bits = [(code >> place) & 1 for code in [*codes, *([0] * (MOST - len(codes)))] for place in range(BITS)]
    cells = np.vstack([MARK, np.reshape(bits, (ROWS - 1, PER_ROW))])
    painted = np.kron(cells, np.ones((CELL, CELL)))
    pixels[: ROWS * CELL, : PER_ROW * CELL] = (painted * 255).astype(np.uint8)[:, :, None]


def read_label(pixels: Pixels) -> tuple[int, ...] | None:
    """Read the numbers of the things on a label; None where there is no label."""
    if pixels.shape[0] < ROWS * CELL or pixels.shape[1] < PER_ROW * CELL:
        return None
    shown = pixels[: ROWS * CELL, : PER_ROW * CELL].mean(axis=2).reshape(ROWS, CELL, PER_ROW, CELL).mean(axis=(1, 3))
    bits = shown > 127
    if not (bits[0] == MARK).all():
        return None
    numbers = bits[1:].reshape(MOST, BITS) @ (1 << np.arange(BITS))
    return tuple(int(number) for number in numbers if number)
