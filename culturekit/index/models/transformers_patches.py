"""Pictures of any proportions as a row of patches, as SigLIP 2 with flexible resolution (NaFlex) reads them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.index.models.transformers_pictures import (
    Normalisation,
    Size,
    filter_of,
    normalisation_of,
    positive,
    usual,
)

__all__ = ["PatchPlan", "patch_plan", "shape_of"]

STEP = 1e-5
LARGEST_SCALE = 100.0


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """Resizing, proportions kept as far as whole patches allow, to at most so many patches."""

    patch: int
    most: int
    resample: Image.Resampling
    normalisation: Normalisation

    def __str__(self) -> str:
        """Say it as it stands in an identity."""
        return (
            f"RGB, proportions kept, at most {self.most} patches of {self.patch}x{self.patch} with Pillow's "
            f"{self.resample.name.lower()} filter, {self.normalisation}"
        )

    def resized(self, height: int, width: int) -> Size:
        """Give the largest size of whole patches that keeps the proportions and the number of patches.

        The scale is found by halving, in the very steps of the model's authors: another search would end at another
        scale for some pictures.
        """
        low, high = STEP / 10, LARGEST_SCALE
        while high - low >= STEP:
            scale = (low + high) / 2
            rows, columns = self.in_patches(scale, height) // self.patch, self.in_patches(scale, width) // self.patch
            low, high = (scale, high) if rows * columns <= self.most else (low, scale)
        return self.in_patches(low, height), self.in_patches(low, width)

    def in_patches(self, scale: float, length: int) -> int:
        """Scale a length up to whole patches."""
        return max(self.patch, math.ceil(length * scale / self.patch) * self.patch)

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Cut a picture into patches: (1 + most, patch * patch * 3), the first row holding how many each way."""
        height, width = self.resized(*picture.shape[:2])
        resized = np.asarray(Image.fromarray(picture).resize((width, height), self.resample))
        rows, columns = height // self.patch, width // self.patch
        tiles = resized.reshape(rows, self.patch, columns, self.patch, 3).swapaxes(1, 2)
        prepared = np.zeros((1 + self.most, self.patch * self.patch * 3), np.uint8)
        prepared[1 : 1 + rows * columns] = tiles.reshape(rows * columns, -1)
        prepared[0, :8] = np.array([rows, columns], "<u4").view(np.uint8)
        return prepared


def shape_of(prepared: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Read how many patches each way a prepared picture has: rows, columns."""
    return prepared[0, :8].view("<u4").astype(np.int64)


def patch_plan(told: Mapping[str, Any], *, processor: str, where: str) -> PatchPlan:
    """Read the settings of an image processor that cuts pictures into patches."""
    settings = usual(told, processor) | {name: value for name, value in told.items() if value is not None}
    return PatchPlan(
        patch=positive(settings["patch_size"], where, least=2),
        most=positive(settings["max_num_patches"], where),
        resample=filter_of(settings, where),
        normalisation=normalisation_of(settings, where),
    )
