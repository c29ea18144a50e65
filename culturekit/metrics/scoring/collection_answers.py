"""One score of a collection, over its repeats or of the whole, and its rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.metrics.diversity.kernels import Weights, check_weights, counting_levels
from culturekit.metrics.diversity.label_classes import LabelClasses, combined
from culturekit.metrics.diversity.label_spectra import effective_numbers
from culturekit.metrics.diversity.rarefaction import GROUPS, jackknife, jackknife_groups
from culturekit.metrics.scoring.image_collections import ImageCollection
from culturekit.metrics.scoring.score_rows import Row, mean_over_repeats, no_interval, statistic_row, value_rows
from culturekit.metrics.statistics.intervals import Interval, Target, half_width, simple_mean

__all__ = ["Answer", "answer_rows", "over_repeats", "whole_diversity", "whole_quality"]

Values = NDArray[np.float64]

NO_REPEATS = np.empty(0)


@dataclass(frozen=True, slots=True)
class Answer:
    """A score before it is written down.

    Attributes:
        images: what was scored.
        metric: its name in the catalogue.
        params: how it was scored.
        interval: the value and its limits.
        entered: how many images went in.
        repeats: float64, (n_repeats,): the mean of each repeat, NaN where it has none; empty without repeats.
    """

    images: ImageCollection
    metric: str
    params: Mapping[str, object]
    interval: Interval
    entered: int
    repeats: NDArray[np.float64]

    def place(self, benchmark: str) -> dict[str, str | None]:
        """Say where it stands."""
        images = self.images
        about = {"model": images.model, "concept": images.concept, "country": images.country}
        return {"metric": self.metric, "benchmark": benchmark, **about}


def over_repeats(
    images: ImageCollection,
    values: Values,
    firsts: NDArray[np.int64],
    what: tuple[str, Mapping[str, object]],
    entered: int,
    *,
    target: Target,
    confidence: float,
) -> Answer:
    """Average values, (n,), over each repeat, then over repeats, then over prompts.

    Args:
        images: with repeats.
        values: NaN is a value that is not known.
        firsts: int64, (n,): the number of an image that a value comes from, whose repeat it belongs to.
        what: the metric and its parameters.
        entered: how many images went in.
        target: what the interval speaks about.
        confidence: of the interval.
    """
    if images.repeats is None:
        raise ValueError("a whole collection has no repeats")
    of_value = images.repeats.of_row[firsts]
    answer, means = mean_over_repeats(values, of_value, images.repeats, target=target, confidence=confidence)
    return Answer(images, *what, answer, entered, means)


def answer_rows(answers: Sequence[Answer], benchmark: str) -> tuple[list[Row], list[pl.DataFrame]]:
    """Write scores, and the means of the repeats that they were averaged from."""
    rows, values = [], []
    for each in answers:
        place = each.place(benchmark)
        answer = replace(each.interval, n=each.entered)
        rows.append(statistic_row(**place, answer=answer, params=each.params))  # type: ignore[arg-type]
        if each.images.repeats is not None:
            values.append(value_rows(place, each.params, each.images.repeats.values(each.repeats)))
    return rows, values


def whole_quality(
    images: ImageCollection, values: Values, params: Mapping[str, object], *, confidence: float
) -> Answer:
    """Average the quality over the images, with a t interval over them."""
    known = values[np.isfinite(values)]
    params = {**params, "target": "population"}
    if not len(known):
        return Answer(images, "quality", params, no_interval("population"), 0, NO_REPEATS)
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
    corrected = no_interval("population")
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
