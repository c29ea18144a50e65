"""Scores of images that name neither prompt nor repeat: one collection, one value, an approximate interval."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.kernels import Weights, check_weights, counting_levels
from culturekit.metrics.diversity.label_classes import LabelClasses, combined
from culturekit.metrics.diversity.label_spectra import effective_numbers
from culturekit.metrics.diversity.rarefaction import GROUPS, jackknife, jackknife_groups
from culturekit.metrics.scoring.image_collections import ImageCollection
from culturekit.metrics.scoring.qvs_rows import Answer
from culturekit.metrics.statistics.intervals import Interval, half_width, simple_mean

__all__ = ["whole_diversity", "whole_quality"]

Values = NDArray[np.float64]

NO_REPEATS = np.empty(0)


def whole_quality(
    images: ImageCollection, values: Values, params: Mapping[str, object], *, confidence: float
) -> Answer:
    """Average the quality over the images, with a t interval over them."""
    known = values[np.isfinite(values)]
    params = {**params, "target": "population"}
    if not len(known):
        return Answer(images, "quality", params, Interval(math.nan, math.nan, math.nan, 0, "population"), 0, NO_REPEATS)
    mean = simple_mean(known)
    margin = half_width(mean, confidence=confidence)
    answer = Interval(mean.value, mean.value - margin, mean.value + margin, len(known), "population")
    return Answer(images, "quality", params, answer, len(known), NO_REPEATS)


def whole_diversity(
    images: ImageCollection,
    value: float,
    quality: Values | None,
    what: tuple[str, Mapping[str, object]],
    *,
    confidence: float,
) -> Answer:
    """Give VS/N of the whole collection, times the mean quality where that is given.

    The interval is around the value whose bias the jackknife corrected, which stands in the parameters.
    """
    metric, params = what
    entered = len(images.codes) if math.isfinite(value) else 0
    weights, q = check_weights(params["weights"]), float(params["q"])  # type: ignore[arg-type]
    corrected = Interval(math.nan, math.nan, math.nan, 0, "population")
    if entered > 1:
        # The draw parts the images at random, always in the same way: their order is that of their ids.
        groups = jackknife_groups(len(images.codes), GROUPS, np.random.default_rng(0))
        score = WholeScore(images.codes, weights, q, quality)
        corrected = jackknife(score, groups, confidence=confidence)
    said = {
        "interval": "jackknife, approximate",
        "bias_corrected": corrected.value if math.isfinite(corrected.value) else None,
        "target": "population",
    }
    answer = Interval(value, corrected.low, corrected.high, entered, "population")
    return Answer(images, metric, {**params, **said}, answer, entered, NO_REPEATS)


class WholeScore:
    """VS over the number of all images, times the mean quality of those that are kept."""

    def __init__(self, codes: NDArray[np.int64], weights: Weights, q: float, quality: Values | None) -> None:
        """Number the classes of the images once."""
        levels = counting_levels(weights)
        self.weights, self.q, self.quality = [weights[level] for level in levels], q, quality
        _, firsts, self.member = np.unique(
            combined([codes[:, level] for level in levels]), return_index=True, return_inverse=True
        )
        self.labels = codes[firsts][:, levels]

    def __call__(self, kept: NDArray[np.bool_]) -> float:
        """Score the images that are kept, bool (n_images,)."""
        counts = np.bincount(self.member[kept], minlength=len(self.labels))
        classes = LabelClasses(self.labels[counts > 0], counts[counts > 0])
        score = effective_numbers(classes, self.weights, [self.q])[0] / len(kept)
        return score if self.quality is None else score * float(self.quality[kept].mean())
