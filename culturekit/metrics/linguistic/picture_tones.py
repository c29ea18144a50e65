"""The skin tone of a picture: the pixels that look like skin, their mean colour, the nearest tone of the Monk scale."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import argument_error, check_choice
from culturekit.metrics.linguistic.tone_histograms import MONK_TONES, nearest_tone

# Which pixels look like skin: by the rule published with DALL-Eval, or by a rule in CIELAB that sees all tones.

Detector: TypeAlias = Literal["ita", "dall-eval"]
Planes: TypeAlias = NDArray[np.uint8]  # uint8, (3, n): the red, the green and the blue of n pixels

Plane: TypeAlias = NDArray[np.float32]

SHIFT = 14
HALF = 1 << (SHIFT - 1)
LUMA = (4899, 9617, 1868)
RED_DIFFERENCE, BLUE_DIFFERENCE = 11682, 9241  # OpenCV's weights of 8-bit YCrCb, in units of 2^-14

# Degrees between which the hue of skin lies: red-brown to yellow. The swatches have 49 to 89; foliage begins at 95.
HUE = (30.0, 92.0)

# The typology angle of skin lies between minus and plus this; beyond, a pixel is grey. The swatches reach 84.
STEEPEST = 87.0

# The chroma of skin lies between these multiples of the chroma that the Monk scale has at the same angle
CHROMA = (0.5, 1.75)

LINEAR_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])  # sRGB with white point D65


def ycrcb(planes: Planes) -> NDArray[np.int32]:
    """Convert to 8-bit Y, Cr, Cb as OpenCV defines them, rounding included: int32, (3, n)."""
    red, green, blue = planes.astype(np.int32)
    converted = np.empty((3, len(red)), np.int32)
    luma, cr, cb = converted
    np.right_shift(red * LUMA[0] + green * LUMA[1] + blue * LUMA[2] + HALF, SHIFT, out=luma)
    middle = (128 << SHIFT) + HALF
    np.right_shift((red - luma) * RED_DIFFERENCE + middle, SHIFT, out=cr)
    np.right_shift((blue - luma) * BLUE_DIFFERENCE + middle, SHIFT, out=cb)
    np.clip(converted[1:], 0, 255, out=converted[1:])
    return converted


def dall_eval_pixels(planes: Planes) -> NDArray[np.bool_]:
    """Apply the published rule, bool (n,). Four of the ten Monk swatches pass it, 4 to 7; no darker one does."""
    red, green, blue = planes
    skin: NDArray[np.bool_] = (red > 95) & (green > 40) & (blue > 20) & (red > green) & (red > blue)
    # Where red is not above green the difference wraps around, and the pixel is out already.
    skin &= red - green > 15
    luma, cr, cb = ycrcb(planes)
    skin &= luma > 80
    skin &= chroma_region().take(cr * 256 + cb, mode="clip")
    return skin


def ita_pixels(planes: Planes) -> NDArray[np.bool_]:
    """Apply the rule in CIELAB, bool (n,): hue, typology angle and chroma like those of the Monk scale."""
    lightness, a, b = cielab(planes)
    low, high = (np.float32(np.tan(np.radians(angle - 90))) for angle in HUE)
    # a = -b tan(hue - 90°): both limits are lines through the origin, and no angle is computed.
    skin = (b > 0) & (a <= -low * b) & (a >= -high * b)
    skin &= np.abs(lightness - 50) <= b * np.float32(np.tan(np.radians(STEEPEST)))
    degrees = np.rint(typology_angle(lightness, b)).astype(np.intp)
    typical = square_chroma_by_angle().take(degrees + 90, mode="clip")
    square = a * a + b * b
    skin &= (square >= np.float32(CHROMA[0] ** 2) * typical) & (square <= np.float32(CHROMA[1] ** 2) * typical)
    return skin


# The rules by name
DETECTORS: Mapping[Detector, Callable[[Planes], NDArray[np.bool_]]] = MappingProxyType(
    {"ita": ita_pixels, "dall-eval": dall_eval_pixels}
)


def cielab(planes: Planes) -> tuple[Plane, Plane, Plane]:
    """Convert sRGB to L*, a* and b*, white point D65, float32 (n,) each."""
    red, green, blue = linear_values().take(planes, mode="clip")
    roots = []
    for weights in (LINEAR_TO_XYZ / WHITE[:, None]).astype(np.float32):
        ratio = red * weights[0]
        ratio += green * weights[1]
        ratio += blue * weights[2]
        straight = ratio * np.float32(24389 / 27 / 116) + np.float32(16 / 116)
        roots.append(np.where(ratio > np.float32(216 / 24389), np.cbrt(ratio), straight))
    x, y, z = roots
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def typology_angle(lightness: Plane, b: Plane) -> Plane:
    """Give the individual typology angle in degrees, arctan((L* - 50) / b*): 90 is white, -90 black."""
    return np.asarray(np.degrees(np.arctan2(lightness - 50, b)), dtype=np.float32)


@cache
def linear_values() -> Plane:
    """Tabulate the light that each value of an sRGB channel stands for, float32 (256,)."""
    values = np.arange(256) / 255
    linear = np.where(values > 0.04045, ((values + 0.055) / 1.055) ** 2.4, values / 12.92)
    return linear.astype(np.float32)


@cache
def square_chroma_by_angle() -> Plane:
    """Interpolate the chroma of the Monk scale at each whole degree of the typology angle; squared, float32 (181,)."""
    lightness, a, b = cielab(MONK_TONES.T)
    angles = typology_angle(lightness, b)
    # From tone 1 to tone 10 the angle falls strictly.
    chroma = np.interp(np.arange(-90, 91), angles[::-1], np.hypot(a, b)[::-1])
    return np.square(chroma).astype(np.float32)


@cache
def chroma_region() -> NDArray[np.bool_]:
    """Tabulate the published conditions on Cr and Cb, bool (65536,), at 256 Cr + Cb."""
    cr, cb = np.arange(256)[:, None], np.arange(256)
    inside = (cr > 135) & (cb > 85)
    inside &= (cr <= 1.5862 * cb + 20) & (cr >= 0.3448 * cb + 76.2069) & (cr >= -4.5652 * cb + 234.5652)
    inside &= (cr <= -1.15 * cb + 301.75) & (cr <= -2.2857 * cb + 432.85)
    return inside.ravel()


# What must be said beside every number that a detector is behind
TONE_WARNINGS: Mapping[Detector, str] = MappingProxyType(
    {
        "dall-eval": "this rule cannot see dark skin: of the ten Monk swatches only 4 to 7 pass it, so pictures of "
        "people with darker (or very light) skin are skipped or counted by their background"
    }
)

OPAQUE = 15  # A pixel counts when its alpha is above this, as in the published rule

BLOCK = 16_384  # Pixels looked at together; the answer does not depend on it


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
