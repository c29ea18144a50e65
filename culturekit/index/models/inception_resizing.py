"""How a picture is brought to the size that InceptionV3 looks at; the choice is part of every FID."""

from collections.abc import Callable, Mapping
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

__all__ = ["RESIZINGS", "Resizing", "Scaled", "resized"]

Resizing: TypeAlias = Literal["tensorflow", "torch", "clean", "crop"]

Scaled: TypeAlias = NDArray[np.float32]
"""float32 (299, 299, 3), from 0 to 255."""

SIDE = 299
CROPPED_FROM = 342

RESIZINGS: Mapping[Resizing, str] = {
    "tensorflow": "whole picture bilinear as TensorFlow 1 has it, no antialiasing, corners aligned to the upper left",
    "torch": "whole picture bilinear between the middles of pixels, no antialiasing",
    "clean": "whole picture with Pillow's bicubic filter, antialiased, each channel in float32, clipped to 0 to 255",
    "crop": f"shorter side to {CROPPED_FROM} with Pillow's bilinear filter, antialiased, and the middle of that",
}
"""What each does, as it stands in an identity."""


def resized(picture: NDArray[np.uint8], resizing: Resizing) -> Scaled:
    """Bring a picture, uint8 (height, width, 3), to 299 x 299."""
    return METHODS[resizing](picture)


def like_tensorflow(picture: NDArray[np.uint8]) -> Scaled:
    """Sample at multiples of the step, which leaves the lower right behind: what the published FIDs were made with."""
    height, width, _ = picture.shape
    return sampled(picture, steps(height), steps(width))


def steps(length: int) -> NDArray[np.float32]:
    """Place the samples as TensorFlow 1 does."""
    return np.arange(SIDE, dtype=np.float32) * np.float32(length / SIDE)


def like_torch(picture: NDArray[np.uint8]) -> Scaled:
    """Sample at the middles of pixels, as `torch.nn.functional.interpolate` does."""
    height, width, _ = picture.shape
    return sampled(picture, middles(height), middles(width))


def middles(length: int) -> NDArray[np.float32]:
    """Place the samples as torch does."""
    scale = np.float32(length) / np.float32(SIDE)
    places: NDArray[np.float32] = scale * (np.arange(SIDE, dtype=np.float32) + np.float32(0.5)) - np.float32(0.5)
    return places.clip(min=0)


def sampled(picture: NDArray[np.uint8], rows: NDArray[np.float32], columns: NDArray[np.float32]) -> Scaled:
    """Mix the four pixels around each place, in float32."""
    top, bottom, down = neighbours(rows, picture.shape[0])
    left, right, along = neighbours(columns, picture.shape[1])
    upper, lower = picture[top].astype(np.float32), picture[bottom].astype(np.float32)
    across = along[np.newaxis, :, np.newaxis]
    above = upper[:, left] + (upper[:, right] - upper[:, left]) * across
    below = lower[:, left] + (lower[:, right] - lower[:, left]) * across
    mixed: Scaled = above + (below - above) * down[:, np.newaxis, np.newaxis]
    return mixed


def neighbours(
    places: NDArray[np.float32], length: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Give the pixel before and after each place, and how far it is from the one before."""
    before = np.minimum(places.astype(np.int64), length - 1)
    return before, np.minimum(before + 1, length - 1), places - before.astype(np.float32)


def cleanly(picture: NDArray[np.uint8]) -> Scaled:
    """Resize each channel as a picture of floats, so that nothing is rounded; overshoot is cut."""
    channels = [
        np.asarray(Image.fromarray(plane).resize((SIDE, SIDE), Image.Resampling.BICUBIC))
        for plane in np.moveaxis(picture, 2, 0).astype(np.float32)
    ]
    planes: Scaled = np.stack(channels, axis=2)
    return planes.clip(0, 255)


def cropped(picture: NDArray[np.uint8]) -> Scaled:
    """Take the middle of a picture whose shorter side is somewhat larger, as torchvision's transform does."""
    height, width, _ = picture.shape
    shorter = min(height, width)
    size = (int(CROPPED_FROM * width / shorter), int(CROPPED_FROM * height / shorter))
    scaled = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.BILINEAR))
    top, left = (round((side - SIDE) / 2) for side in scaled.shape[:2])
    return scaled[top : top + SIDE, left : left + SIDE].astype(np.float32)


METHODS: Mapping[Resizing, Callable[[NDArray[np.uint8]], Scaled]] = {
    "tensorflow": like_tensorflow,
    "torch": like_torch,
    "clean": cleanly,
    "crop": cropped,
}
