"""A quality score without weights: how sharp a picture's edges are, and how far they rise above its noise."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.registry import Spec
from culturekit.index.raters.quality import QualityScorer

_Values: TypeAlias = NDArray[np.float64]
LARGEST, SMALLEST = 256, 16  # pictures are brought within these sizes first, in pixels along a side
_REACH = 4  # pixels between the two points whose difference is the full height of an edge
_EDGE_PART = 0.15  # the part of a picture that counts as near its edges: where it changes most within REACH pixels
_NOISE_COST = 10.0  # how many times as high as the noise an edge must be to keep half its clarity
_FAINT = 0.1  # the height of an edge, of the range from black to white, that halves the clarity for lack of contrast


class _EmbeddedQuality:
    """Measures clarity: sharp, high edges score high; blur, noise and lack of contrast score low."""

    name = "embedded"
    caveat = (
        "The embedded quality score measures clarity only: sharp edges, good contrast, little noise. It says "
        "nothing of beauty, of faithfulness to a prompt, or of what people prefer."
    )

    needs_prompts = False
    batch_size = 16
    parameters: Mapping[str, Any] = MappingProxyType({"name": "embedded", "weights": "none", "revision": "1"})

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        return _lightness(picture)

    def score_prepared(self, pictures: Sequence[NDArray[np.float32]], prompts: Sequence[str] = ()) -> _Values:
        """Score lightnesses, one after the other; prompts do not matter."""
        return np.array([_clarity(light) for light in pictures], np.float64)

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> _Values:
        return self.score_prepared([self.prepare(picture) for picture in pictures])


def _lightness(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Give the lightness of a picture, 0 to 1, within the sizes that are looked at."""
    height, width, _ = picture.shape
    scale = min(1.0, LARGEST / max(height, width))
    size = max(SMALLEST, round(width * scale)), max(SMALLEST, round(height * scale))
    if size != (width, height):
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.HAMMING))
    light: NDArray[np.float32] = picture.sum(axis=2, dtype=np.float32)
    light /= 765
    return light


def _clarity(light: NDArray[np.float32]) -> float:
    """Score lightness (height, width) between 0 and 1.

    Three shares are multiplied: of an edge's height, what lies between neighbouring pixels (1 when it is
    sharp, 0 for an even ramp); and how far that height rises above the noise, and above faintness.
    """
    height = _highest(_changes(light, _REACH), part=_EDGE_PART)
    step = _highest(_changes(light, 1), part=_EDGE_PART / _REACH)  # a sharp edge is as rarely crossed as that
    if height == 0:
        return 0.0
    ramp = 1 / _REACH
    sharpness = min(max((step / height - ramp) / (1 - ramp), 0.0), 1.0)
    return sharpness * height / (height + _NOISE_COST * noise(light)) * height / (height + _FAINT)


def _changes(light: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """Find how much lightness changes at each pixel over some pixels to the left or above, whichever is more."""
    change = np.zeros_like(light)
    change[:, reach:] = np.abs(light[:, reach:] - light[:, :-reach])
    np.maximum(change[reach:], np.abs(light[reach:] - light[:-reach]), out=change[reach:])
    return change


def _highest(values: NDArray[np.float32], *, part: float) -> float:
    place = int(values.size * (1 - part))
    return float(np.partition(values.ravel(), place)[place])


def noise(light: NDArray[np.float32]) -> float:
    """Estimate the standard deviation of the noise between pixels, from where a picture is smooth.

    The differences leave out what is flat, sloped or a straight level or upright edge; 6 is their norm.
    Their median is that of the smooth parts as long as these are more than half of a picture; 1.4826
    turns the median of a normal variable's size into its standard deviation.
    """
    down = light[:-2] - 2 * light[1:-1] + light[2:]
    both = down[:, :-2] - 2 * down[:, 1:-1] + down[:, 2:]
    return 1.4826 / 6 * float(np.median(np.abs(both)))


def make(spec: Spec) -> QualityScorer:
    """Make the scorer; it takes no options."""
    spec.refuse_options()
    return _EmbeddedQuality()
