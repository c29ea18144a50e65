"""CLIPScore, how near an image is to a text, and what it says at a level: objects present, consistency, agreement."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.arguments import check_confidence, finite_vector, unit_rows
from culturekit.metrics.realism.features import Floats, blocks, feature_sets
from culturekit.metrics.statistics.intervals import Interval, clustered_share

# Cosine from which people nearly always saw the object: in real images of GeoDE, those of DM with CLIP, of LDM 2.1
PRESENCE_THRESHOLDS: Mapping[str, float] = MappingProxyType({"geode": 0.21, "dm": 0.21, "ldm": 0.25})

ROUNDING = 1e-9  # Of a bucket's width: 0.29 / 0.01 is 28.999999999999996 in floating point, and belongs to bucket 29

FEWEST = 5  # Images of an object that must be expected on either side of the percentile


def clip_score(image_vectors: ArrayLike, text_vectors: ArrayLike, *, scale: float = 100.0) -> Floats:
    """Give max(scale · cos, 0) of each image with its text (Hessel et al. 2021, whose scale is 2.5).

    Args:
        image_vectors: float, (n, dim), of any length; normalised here.
        text_vectors: float, (n, dim): the text of each image.
        scale: 100 as most code has it, 1 for plain cosines.

    Returns:
        float64, (n,), each pair clamped by itself.

    Raises:
        UsageError: an argument breaks its rule, or a vector is zero and has no direction.
    """
    images, texts = feature_sets("image_vectors", image_vectors, "text_vectors", text_vectors)
    if len(images) != len(texts):
        raise UsageError("each image has one text", expected=f"{len(images)} text_vectors", found=f"{len(texts)}")
    if not scale > 0 or not np.isfinite(scale):
        raise argument_error("scale", "a number above 0", scale)
    cosines = []
    for start, block in blocks(images):
        vectors = unit_rows("image_vectors", block, start)
        other = unit_rows("text_vectors", texts[start : start + len(block)], start)
        cosines.append(np.einsum("nd,nd->n", vectors, other))
    return np.asarray(np.clip(np.concatenate(cosines), 0, 1) * scale)


@dataclass(frozen=True, slots=True)
class YesBucket:
    """How often people said yes to images whose scores lie in a bucket.

    Attributes:
        low: where the bucket begins; it does not include its end.
        score: the mean score of its images.
        rate: the share of yes among the answers.
        ci_low: NaN where a single image was asked about.
        ci_high: as ci_low.
        images: how many there are.
        answers: how many there are.
    """

    low: float
    score: float
    rate: float
    ci_low: float
    ci_high: float
    images: int
    answers: int


def nearest_own(image_vectors: ArrayLike, text_vectors: ArrayLike, index: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Tell of each image whether its own text, by its row, is nearer than all others; where two are as near, it is not.

    Args:
        image_vectors: float, (n, dim).
        text_vectors: float, (texts, dim), of any length.
        index: int, (n,): the row of each image's own text.
    """
    images, texts = feature_sets("image_vectors", image_vectors, "text_vectors", text_vectors)
    every = np.asarray(texts, np.float64)
    cosines = np.asarray(images, np.float64) @ (every / np.linalg.norm(every, axis=1, keepdims=True)).T
    rows = np.arange(len(index))
    mine = cosines[rows, index]
    cosines[rows, index] = -np.inf
    return np.asarray(mine > cosines.max(axis=1))


def objects_present(scores: ArrayLike, *, threshold: float = PRESENCE_THRESHOLDS["geode"]) -> NDArray[np.bool_]:
    """Say of each image whether its object counts as shown: whether the cosine reaches the threshold, bool (n,)."""
    return finite_vector("scores", scores) >= threshold


def object_consistency(scores: ArrayLike, *, objects: Sequence[str], percentile: float = 10.0) -> float:
    """Give the mean over objects of a low percentile of each object's scores (DIG In: the 10th).

    It asks how the worst images of an object do. Percentiles interpolate linearly between neighbours.

    Args:
        scores: float, (n,): plain cosines (`scale=1`).
        objects: (n,): the object that each image should show; every object weighs the same.
        percentile: from 0 to 100.
    """
    values = finite_vector("scores", scores)
    names = keys("objects", objects, length=len(values))
    if not 0 <= percentile <= 100:
        raise argument_error("percentile", "from 0 to 100", percentile)
    return float(np.mean([np.percentile(values[names == name], percentile) for name in np.unique(names)]))


def yes_by_score(
    scores: ArrayLike,
    yes: ArrayLike,
    *,
    images: Sequence[str],
    annotators: Sequence[str] | None = None,
    width: float = 0.01,
    confidence: float = CONFIDENCE,
) -> list[YesBucket]:
    """Give how often people said yes, by bucket of the score, with intervals.

    Answers about one image, or of one annotator, are not independent: `clustered_share` makes the intervals.

    Args:
        scores: float, (n,): the score of the image that each answer is about.
        yes: bool, (n,): the answers.
        images: (n,): the image that each answer is about.
        annotators: (n,): who gave it.
        width: of a bucket.
        confidence: how often such intervals are to hold the true share.

    Returns:
        The buckets that have answers, lowest first.

    Raises:
        UsageError: an argument breaks its rule, or an image has two scores.
    """
    values = finite_vector("scores", scores)
    answers = finite_vector("yes", np.asarray(yes, dtype=np.float64), length=len(values))
    names = keys("images", images, length=len(values))
    people = None if annotators is None else keys("annotators", annotators, length=len(values))
    if not width > 0:
        raise argument_error("width", "a number above 0", width)
    if not np.isin(answers, (0, 1)).all():
        raise argument_error("yes", "True and False, or 1 and 0", min(set(answers.tolist()) - {0.0, 1.0}))
    if len(np.unique(names)) != len({*zip(names.tolist(), values.tolist(), strict=True)}):
        raise UsageError("an image has one score", found="an image with two")
    buckets = np.floor(values / width + ROUNDING).astype(np.int64)
    found = []
    for number in np.unique(buckets).tolist():
        inside = buckets == number
        clusters = {"image": names[inside]} | ({} if people is None else {"annotator": people[inside]})
        share = clustered_share(answers[inside], clusters, confidence=confidence)
        _, first = np.unique(names[inside], return_index=True)
        mean = float(np.sort(values[inside][first]).mean())
        low = round(number * width, 12)
        found.append(YesBucket(low, mean, share.value, share.low, share.high, len(first), share.n))
    return found


def keys(name: str, values: Sequence[str], *, length: int) -> NDArray[np.str_]:
    """Read one text per value."""
    column = np.asarray(values, dtype=np.str_)
    if column.shape != (length,):
        raise argument_error(name, f"one per score, of length {length}", f"shape {column.shape}")
    return column


def consistency_interval(
    scores: ArrayLike, *, objects: Sequence[str], percentile: float = 10.0, confidence: float = CONFIDENCE
) -> Interval:
    """Give `object_consistency` with an interval that speaks about other images of these objects.

    Images are taken as independent. Each object's percentile is as uncertain as Woodruff (1952) has it: the
    percentiles one standard error of its rank away, to either side, are two standard errors apart. Limits are NaN
    where an object has too few images for that (fewer than 50 for the 10th percentile).

    Args:
        scores: as for `object_consistency`.
        objects: as for `object_consistency`.
        percentile: as for `object_consistency`.
        confidence: how often such intervals are to hold the true value.
    """
    from scipy.special import ndtri

    check_confidence(confidence)
    value = object_consistency(scores, objects=objects, percentile=percentile)
    numbers, names = np.asarray(scores, dtype=np.float64), np.asarray(objects, dtype=np.str_)
    parts = [numbers[names == name] for name in np.unique(names)]
    quantile = float(ndtri((1 + confidence) / 2))
    variance = sum(percentile_variance(part, percentile / 100, quantile) for part in parts) / len(parts) ** 2
    margin = quantile * math.sqrt(variance)
    return Interval(value, value - margin, value + margin, len(numbers), "images")


def percentile_variance(values: NDArray[np.float64], share: float, quantile: float) -> float:
    """Give the variance of a percentile from those a few ranks away."""
    n = len(values)
    if n * min(share, 1 - share) < FEWEST:
        return math.nan
    step = quantile * math.sqrt(share * (1 - share) / n)
    low, high = np.quantile(values, [max(0.0, share - step), min(1.0, share + step)])
    return float(((high - low) / (2 * quantile)) ** 2)
