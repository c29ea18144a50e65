"""TIFF files with tags of any kind, written by hand: odd strips, tiles, planes, and tags that lie."""

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

SHORT, LONG = 3, 4


def tiff_file(
    samples: NDArray[np.generic], tags: Mapping[int, int | Sequence[int]], *, strip_rows: int | None = None,
    tile: tuple[int, int] | None = None, planes: bool = False, big_end: bool = False,
) -> bytes:  # fmt: skip
    """Write samples, (height, width, parts), without compression.

    Args:
        samples: of 8, 16 or 32 bits.
        tags: others, or other values, than those that follow from the samples.
        strip_rows: rows in a strip; all of them where it is not given.
        tile: width and height of a tile, where the picture is tiled.
        planes: whether each part lies for itself.
        big_end: whether the larger byte comes first.
    """
    height, width, parts = samples.shape
    ordered = samples.astype(samples.dtype.newbyteorder(">" if big_end else "<"))
    layers = [ordered[:, :, part : part + 1] for part in range(parts)] if planes else [ordered]
    blocks = [block for layer in layers for block in (tiles(layer, tile) if tile else strips(layer, strip_rows))]
    offsets = [8]
    for block in blocks:
        offsets.append(offsets[-1] + len(block))
    sizes = [len(block) for block in blocks]
    where = {324: offsets[:-1], 325: sizes, 322: tile[0], 323: tile[1]} if tile else {273: offsets[:-1], 279: sizes}
    own = {
        256: width, 257: height, 258: [8 * samples.dtype.itemsize] * parts, 259: 1, 262: 2 if parts >= 3 else 1,
        277: parts, 278: strip_rows or height, 284: 2 if planes else 1, **where,
    }  # fmt: skip
    order = ">" if big_end else "<"
    start = offsets[-1] + offsets[-1] % 2
    head = (b"MM\0*" if big_end else b"II*\0") + struct.pack(order + "I", start)
    pixels = b"".join(blocks)
    return head + pixels + bytes(start - offsets[-1]) + directory({**own, **tags}, start, order=order)


def strips(layer: NDArray[np.generic], rows: int | None) -> list[bytes]:
    step = rows or len(layer)
    return [layer[top : top + step].tobytes() for top in range(0, len(layer), step)]


def tiles(layer: NDArray[np.generic], tile: tuple[int, int]) -> list[bytes]:
    """Cut a layer into tiles, the last of each row and column filled up."""
    across, down = tile
    height, width, parts = layer.shape
    full = np.zeros((-(-height // down) * down, -(-width // across) * across, parts), layer.dtype)
    full[:height, :width] = layer
    return [
        full[top : top + down, left : left + across].tobytes()
        for top in range(0, len(full), down)
        for left in range(0, full.shape[1], across)
    ]


def directory(tags: Mapping[int, int | Sequence[int]], start: int, *, order: str = "<", after: int = 0) -> bytes:
    """Write a directory that begins at `start`, its longer values behind it."""
    entries, values = b"", b""
    behind = start + 2 + 12 * len(tags) + 4
    for tag in sorted(tags):
        value = tags[tag]
        numbers = [value] if isinstance(value, int) else list(value)
        kind, code = (SHORT, "H") if max(numbers) < 65536 and tag not in (273, 279, 324, 325) else (LONG, "I")
        data = struct.pack(f"{order}{len(numbers)}{code}", *numbers)
        if len(data) > 4:
            data, values = struct.pack(order + "I", behind + len(values)), values + data + bytes(len(data) % 2)
        entries += struct.pack(order + "HHI", tag, kind, len(numbers)) + data.ljust(4, b"\0")
    return struct.pack(order + "H", len(tags)) + entries + struct.pack(order + "I", after) + values
