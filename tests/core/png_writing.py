"""PNG files of every kind, written by hand: Pillow writes few of the kinds that it reads."""

import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOUR_TYPES = {1: 0, 3: 2, 2: 4, 4: 6}
PALETTE = 3
# Of an interlaced file: first row, first column, and the steps down and across
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png_file(
    samples: NDArray[np.integer], *, bits: int = 8, palette: bytes = b"", transparent: bytes = b"",
    interlaced: bool = False, before: Sequence[tuple[bytes, bytes]] = (), after: Sequence[tuple[bytes, bytes]] = (),
) -> bytes:  # fmt: skip
    """Write samples, (height, width, parts), of 1, 2, 4, 8 or 16 bits."""
    height, width, parts = samples.shape
    kind = PALETTE if palette else COLOUR_TYPES[parts]
    passes = PASSES if interlaced else ((0, 0, 1, 1),)
    rows = b"".join(
        packed(samples[top::down, left::across], bits)
        for top, left, down, across in passes
        if samples[top::down, left::across].size
    )
    return b"".join(
        [
            SIGNATURE, chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))),
            *(chunk(name, data) for name, data in before), chunk(b"PLTE", palette) if palette else b"",
            chunk(b"tRNS", transparent) if transparent else b"", chunk(b"IDAT", zlib.compress(rows, 1)),
            *(chunk(name, data) for name, data in after), chunk(b"IEND", b""),
        ]
    )  # fmt: skip


def packed(samples: NDArray[np.integer], bits: int) -> bytes:
    """Write rows of samples, each after a byte that says that it is not filtered."""
    height = samples.shape[0]
    flat = samples.reshape(height, -1)
    if bits == 16:
        rows = flat.astype(">u2").view(np.uint8).reshape(height, -1)
    elif bits == 8:
        rows = flat.astype(np.uint8)
    else:
        places = np.arange(bits - 1, -1, -1)
        rows = np.packbits((flat[:, :, np.newaxis] >> places & 1).astype(np.uint8).reshape(height, -1), axis=1)
    return np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes()
