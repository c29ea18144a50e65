"""The ten tones of the Monk scale, from the lightest to the darkest."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import argument_error
from culturekit.records.monk_scale import MONK_SWATCHES

__all__ = ["MONK_TONES", "nearest_tone"]

MONK_TONES: NDArray[np.uint8] = np.array([list(bytes.fromhex(swatch)) for swatch in MONK_SWATCHES], dtype=np.uint8)
"""uint8, (10, 3): sRGB of the published swatches; tone 1 is the first."""
MONK_TONES.flags.writeable = False


def nearest_tone(rgb: ArrayLike) -> int:
    """Give the number of the nearest tone, 1 to 10, by the sum of absolute differences; the first of equals.

    Args:
        rgb: float, (3,): red, green and blue from 0 to 255.
    """
    colour = np.asarray(rgb, dtype=np.float64)
    if colour.shape != (3,) or not ((colour >= 0) & (colour <= 255)).all():
        raise argument_error("rgb", "three numbers from 0 to 255", rgb)
    return int(np.abs(MONK_TONES - colour).sum(axis=1).argmin()) + 1
