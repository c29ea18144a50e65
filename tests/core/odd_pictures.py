"""Picture files of odd kinds, each with the pixels that a person would see, made with NumPy from a seed."""

import zlib

import numpy as np

from tests.core import odd_bmp_tiff, odd_jpeg_gif_webp, odd_png
from tests.core.odd_kinds import KINDS, OddPicture

MODULES = (odd_bmp_tiff, odd_jpeg_gif_webp, odd_png)  # Each gives its kinds when it is imported


def odd_picture(kind: str, seed: int) -> OddPicture:
    return KINDS[kind](np.random.default_rng([seed, zlib.crc32(kind.encode())]))
