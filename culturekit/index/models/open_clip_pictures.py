"""Pictures as open_clip's models take them: size, crop and range by the model's own settings, with Pillow alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.errors import IntegrityError

__all__ = ["PictureSettings", "picture_settings"]

CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
CLIP_STD = (0.26862954, 0.26130258, 0.27577711)

FAR_TOO_LONG = 16
"""A picture whose resized form has this many times the pixels that are kept is not resized beyond them."""


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """What is done to a picture: open_clip's `preprocess_cfg`.

    Attributes:
        size: height and width of what the model looks at.
        mean: of each channel between 0 and 1, which is taken off.
        std: what each channel is divided by then.
        interpolation: Pillow's filter.
        resize_mode: `shortest` side to the size and the middle of that, `longest` and the rest filled, or `squash`.
        fill_color: of what is filled.
    """

    size: tuple[int, int]
    mean: tuple[float, float, float] = CLIP_MEAN
    std: tuple[float, float, float] = CLIP_STD
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"
    resize_mode: Literal["shortest", "longest", "squash"] = "shortest"
    fill_color: int = 0

    def __str__(self) -> str:
        """Write them as they stand in an identity."""
        height, width = self.size
        fill = f", filled with {self.fill_color}" if self.resize_mode == "longest" else ""
        mean, std = (" ".join(f"{number:.8g}" for number in numbers) for numbers in (self.mean, self.std))
        return f"{self.resize_mode} to {height}x{width}, Pillow {self.interpolation}{fill}; mean {mean}; std {std}"

    def fitted(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a picture, uint8 (height, width, 3), to the model's size; its range stays."""
        image = Image.fromarray(picture)
        height, width = self.size
        if self.resize_mode == "squash":
            return np.asarray(image.resize((width, height), self.filter))
        if self.resize_mode == "longest":
            return middle(np.asarray(image.resize(self.scaled_size(image, longest=True), self.filter)), self.size,
                          fill=self.fill_color)  # fmt: skip
        size = self.scaled_size(image, longest=False)
        if size[0] * size[1] > FAR_TOO_LONG * width * height:
            return self.middle_alone(image, size)
        return middle(np.asarray(image.resize(size, self.filter)), self.size, fill=0)

    @property
    def filter(self) -> Image.Resampling:
        """Pillow's filter; for a size that is not square open_clip's shortest side is always bicubic."""
        oblong = self.resize_mode == "shortest" and self.size[0] != self.size[1]
        bilinear = self.interpolation == "bilinear" and not oblong
        return Image.Resampling.BILINEAR if bilinear else Image.Resampling.BICUBIC

    def scaled_size(self, image: Image.Image, *, longest: bool) -> tuple[int, int]:
        """Find the width and height that keep a picture's proportions, rounded as open_clip does."""
        height, width = self.size
        if not longest and height == width:
            shorter = min(image.size)
            across, down = (height if side == shorter else int(height * side / shorter) for side in image.size)
            return across, down
        ratios = (image.height / height, image.width / width)
        ratio = max(ratios) if longest else min(ratios)
        return max(1, round(image.width / ratio)), max(1, round(image.height / ratio))

    def middle_alone(self, image: Image.Image, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Resize the middle only, of a picture so long that the rest would fill the memory.

        Pillow resizes along rows first and rounds; done in two steps here, for in one step with a box it rounds
        elsewhere.
        """
        (height, width), (across, down) = self.size, size
        left, top = round((across - width) / 2), round((down - height) / 2)
        step_x, step_y = image.width / across, image.height / down
        margin = math.ceil(2 * max(step_y, 1)) + 2
        first = max(0, math.floor(top * step_y) - margin)
        last = min(image.height, math.ceil((top + height) * step_y) + margin)
        strip = image.crop((0, first, image.width, last))
        columns = (left * step_x, 0, min((left + width) * step_x, image.width), strip.height)
        strip = strip.resize((width, strip.height), self.filter, box=columns)
        rows = (0, top * step_y - first, width, min((top + height) * step_y, image.height) - first)
        return np.asarray(strip.resize((width, height), self.filter, box=rows))


def middle(picture: NDArray[np.uint8], size: tuple[int, int], *, fill: int) -> NDArray[np.uint8]:
    """Take the middle of a picture; where it is too small, fill around it first."""
    short = [max(0, wanted - side) for wanted, side in zip(size, picture.shape, strict=False)]
    if any(short):
        around = [*((less // 2, (less + 1) // 2) for less in short), (0, 0)]
        picture = np.pad(picture, around, constant_values=fill)
    top, left = (round((side - wanted) / 2) for wanted, side in zip(size, picture.shape, strict=False))
    return picture[top : top + size[0], left : left + size[1]]


def picture_settings(given: Mapping[str, object], *, size: object, where: str) -> PictureSettings:
    """Read open_clip's `preprocess_cfg`; `size` is what the model itself says."""
    interpolation, mode = given.get("interpolation") or "bicubic", given.get("resize_mode") or "shortest"
    if interpolation == "random":
        interpolation = "bicubic"
    if interpolation not in ("bicubic", "bilinear") or mode not in ("shortest", "longest", "squash"):
        raise IntegrityError("the model's preprocessing is not known", where=where, found=f"{interpolation}, {mode}")
    try:
        height, width = (int(side) for side in (size if isinstance(size, (list, tuple)) else (size, size)))
        return PictureSettings(
            (height, width),
            channels(given.get("mean") or CLIP_MEAN),
            channels(given.get("std") or CLIP_STD),
            interpolation,
            mode,
            int(cast("int", given.get("fill_color") or 0)),
        )
    except (TypeError, ValueError) as error:
        raise IntegrityError("the model's preprocessing cannot be read", where=where, found=str(error)) from error


def channels(value: object) -> tuple[float, float, float]:
    """Read a number per channel, or one for all three."""
    numbers = value if isinstance(value, (list, tuple)) else (value,) * 3
    red, green, blue = (float(number) for number in numbers)
    return red, green, blue
