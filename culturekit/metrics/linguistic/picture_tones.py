"""The skin tone of a picture: the pixels that look like skin, their mean colour, the nearest tone of the Monk scale."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.linguistic.monk_scale import nearest_tone
from culturekit.metrics.linguistic.skin_pixels import DETECTORS, Detector

__all__ = ["TONE_WARNINGS", "SkinTone", "skin_tone"]

TONE_WARNINGS: Mapping[Detector, str] = MappingProxyType(
    {
        "dall-eval": "this rule cannot see dark skin: of the ten Monk swatches only 4 to 7 pass it, so pictures of "
        "people with darker (or very light) skin are skipped or counted by their background",
    }
)
"""What must be said beside every number that a detector is behind."""

OPAQUE = 15
"""A pixel counts when its alpha is above this, as in the published rule."""

BLOCK = 16_384
"""Pixels looked at together; the answer does not depend on it."""


@dataclass(frozen=True, slots=True)
class SkinTone:
    """The skin tone of a picture.

    Attributes:
        index: of the Monk scale, 1 (lightest) to 10 (darkest).
        rgb: the mean colour of the pixels that pass, 0 to 255.
        share: of all pixels that pass, above 0.
    """

    index: int
    rgb: tuple[float, float, float]
    share: float


def skin_tone(image: NDArray[np.uint8], *, detector: Detector = "ita") -> SkinTone | None:
    """Find the skin tone of a picture; None where no pixel looks like skin.

    A rule about colours sees sand, wood, bread and many walls as skin too. Without a finder of people the tone of a
    picture is at best the tone of whatever in it has the colour of skin.

    Args:
        image: uint8, (height, width, 3) or with alpha (height, width, 4): sRGB.
        detector: `ita`, a rule in CIELAB that all ten Monk swatches pass, or `dall-eval`, the published rule, which
            cannot see dark skin (TONE_WARNINGS).

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_choice("detector", detector, tuple(DETECTORS))
    picture = np.asarray(image)
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] not in (3, 4) or picture.size == 0:
        found = f"{picture.dtype} {picture.shape}"
        raise argument_error("image", "uint8, (height, width, 3 or 4), with at least one pixel", found)
    pixels = picture.reshape(-1, picture.shape[2])
    total, passing = np.zeros(3), 0
    for start in range(0, len(pixels), BLOCK):
        planes = np.ascontiguousarray(pixels[start : start + BLOCK].T)
        skin = DETECTORS[detector](planes[:3])
        if len(planes) == 4:
            skin &= planes[3] > OPAQUE
        # Sums of whole numbers are exact in float64: no order of the pixels changes them.
        total += planes[:3].astype(np.float64) @ skin.astype(np.float64)
        passing += int(np.count_nonzero(skin))
    if passing == 0:
        return None
    red, green, blue = (total / passing).tolist()
    return SkinTone(nearest_tone((red, green, blue)), (red, green, blue), passing / len(pixels))
