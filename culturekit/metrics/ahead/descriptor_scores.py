"""ALIGN and HAL of one image, DDIV and SDIV of the images of a prompt, from similarities of descriptors."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import argument_error, check_choice
from culturekit.metrics.ahead.matching import (
    Compared,
    Similarities,
    check_tau,
    compared,
    extracted_by,
    reference_counts,
)
from culturekit.metrics.arguments import float_array

# EXAG, how much more stereotypical an image is than real ones, and FAITH, the composite of three scores.

Reduce: TypeAlias = Literal["mean", "max"]  # Over the stereotype candidates: their mean, or the worst of them


def exaggeration(scores: ArrayLike, real_mean: ArrayLike, *, reduce: Reduce = "mean") -> NDArray[np.float64]:
    """Say by how much images score above real images on what their country is stereotyped with.

    An image that scores below the real ones on a candidate makes up for nothing: the excess is cut at 0.

    Args:
        scores: f(I, k), (n_images, n_candidates): image-text scores of the stereotype candidates of a country.
        real_mean: (n_candidates,): the mean score of real images of that country on each candidate.
        reduce: `mean` over the candidates, or `max` as the variant.

    Returns:
        float64, (n_images,), at least 0; NaN where there is no candidate.
    """
    check_choice("reduce", reduce, ("mean", "max"))
    values = finite_array("scores", scores, dimensions=2, shape="(n_images, n_candidates)")
    usual = finite_array("real_mean", real_mean, dimensions=1, shape="(n_candidates,)")
    if values.shape[1] != len(usual):
        raise argument_error("real_mean", f"of length {values.shape[1]}, like a row of scores", f"length {len(usual)}")
    if len(usual) == 0:
        return np.full(len(values), np.nan)
    excess = np.maximum(values - usual, 0.0)
    return np.asarray(excess.max(axis=1) if reduce == "max" else excess.mean(axis=1))


def finite_array(name: str, values: ArrayLike, *, dimensions: int, shape: str) -> NDArray[np.float64]:
    """Read an array of finite numbers, float64."""
    array = float_array(name, f"an array of numbers, {shape}", values)
    if array.ndim != dimensions:
        raise argument_error(name, f"of shape {shape}", f"shape {array.shape}")
    if not np.isfinite(array).all():
        raise argument_error(name, "finite", float(array[~np.isfinite(array)][0]))
    return array


@overload
def faithfulness(align: float, hal: float, exag: float) -> float: ...


@overload
def faithfulness(align: ArrayLike, hal: ArrayLike, exag: ArrayLike) -> "float | NDArray[np.float64]": ...


def faithfulness(align: ArrayLike, hal: ArrayLike, exag: ArrayLike) -> "float | NDArray[np.float64]":
    """Average alignment, freedom from hallucination and freedom from exaggeration: (A + (1 - H) + (1 - E)) / 3.

    Args:
        align: ALIGN, a number or an array; NaN is a score that is missing.
        hal: HAL, of the same shape.
        exag: EXAG, of the same shape.

    Returns:
        A number for numbers, else float64 of their shape; NaN where one of the three is missing.

    Raises:
        UsageError: an argument holds no numbers, or the shapes differ.
    """
    parts = []
    for name, values in (("align", align), ("hal", hal), ("exag", exag)):
        try:
            parts.append(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise argument_error(name, "a number or an array of numbers", values) from error
        if parts[-1].shape != parts[0].shape:
            raise argument_error(name, f"of shape {parts[0].shape}, like align", f"shape {parts[-1].shape}")
    answer = (parts[0] + (1 - parts[1]) + (1 - parts[2])) / 3
    return float(answer) if answer.ndim == 0 else answer


Aggregate: TypeAlias = Literal["dimension", "pooled"]  # The mean over dimensions, or one fraction over all descriptors

AGGREGATES: tuple[Aggregate, ...] = ("dimension", "pooled")


@dataclass(frozen=True, slots=True)
class DimensionScore:
    """A score of one image, and what it is made of.

    Attributes:
        value: the score; NaN where there is nothing to score.
        per_dimension: the share in each dimension that was scored, in alphabetical order.
        empty: the dimensions in which nothing was said of the image; they count as 0 in ALIGN and in HAL alike.
        ignored: the dimensions left out: references that the extractor cannot see, and predictions in a
            dimension without references.
    """

    value: float
    per_dimension: Mapping[str, float]
    empty: tuple[str, ...]
    ignored: tuple[str, ...]


def align(
    similarities: Similarities,
    n_ref: Mapping[str, int],
    *,
    tau: float,
    aggregate: Aggregate = "dimension",
    extractor_dimensions: Collection[str] | None = None,
) -> float:
    """Give the share of reference descriptors that an image shows; see `align_detail`."""
    return align_detail(
        similarities, n_ref, tau=tau, aggregate=aggregate, extractor_dimensions=extractor_dimensions
    ).value


def align_detail(
    similarities: Similarities,
    n_ref: Mapping[str, int],
    *,
    tau: float,
    aggregate: Aggregate = "dimension",
    extractor_dimensions: Collection[str] | None = None,
) -> DimensionScore:
    """Share of reference descriptors whose most similar prediction reaches the threshold: recall.

    Args:
        similarities: dimension -> cosines, (n_pred, n_ref), of de-duplicated descriptors; an array without rows, or no
            array at all, where nothing was said; None for a dimension that the extractor does not have.
        n_ref: dimension -> how many references it has.
        tau: a reference counts as shown from this similarity on.
        aggregate: `dimension` for the mean over dimensions with references, `pooled` for one share of all.
        extractor_dimensions: those the extractor has; references in others are left out and listed in
            `ignored`. Without it every dimension but `people`, which the published extractor lacks.

    Returns:
        The score in [0, 1], NaN where no dimension can be scored, and what it is made of.
    """
    level = check_tau(tau)
    found = compared(similarities, n_ref, extractor_dimensions=extractor_dimensions)
    shown = {name: array.max(axis=0, initial=-np.inf) >= level for name, array in found.arrays.items()}
    return detail(found, shown, aggregate)


def hallucination(
    similarities: Similarities,
    n_ref: Mapping[str, int],
    *,
    tau: float,
    aggregate: Aggregate = "dimension",
    extractor_dimensions: Collection[str] | None = None,
) -> float:
    """Give the share of predicted descriptors that no reference asks for; see `hallucination_detail`."""
    return hallucination_detail(
        similarities, n_ref, tau=tau, aggregate=aggregate, extractor_dimensions=extractor_dimensions
    ).value


def hallucination_detail(
    similarities: Similarities,
    n_ref: Mapping[str, int],
    *,
    tau: float,
    aggregate: Aggregate = "dimension",
    extractor_dimensions: Collection[str] | None = None,
) -> DimensionScore:
    """Share of predicted descriptors whose most similar reference stays below the threshold.

    Arguments, answer and errors are those of `align_detail`. A dimension in which nothing was said has no
    hallucination: it counts as 0 and is listed in `empty`, because saying nothing must not look faithful unnoticed.
    """
    level = check_tau(tau)
    found = compared(similarities, n_ref, extractor_dimensions=extractor_dimensions)
    wrong = {name: array.max(axis=1) < level for name, array in found.arrays.items()}
    return detail(found, wrong, aggregate)


def detail(found: Compared, marks: Mapping[str, NDArray[np.bool_]], aggregate: Aggregate) -> DimensionScore:
    """Average marks, one per descriptor, into a score; a dimension without marks has the share 0."""
    check_choice("aggregate", aggregate, AGGREGATES)
    shares = {name: float(mark.mean()) if len(mark) else 0.0 for name, mark in marks.items()}
    if not shares:
        value = math.nan
    elif aggregate == "dimension":
        value = math.fsum(shares.values()) / len(shares)
    else:
        value = sum(int(mark.sum()) for mark in marks.values()) / max(1, sum(map(len, marks.values())))
    return DimensionScore(value, shares, found.empty, found.ignored)


FEWEST_IMAGES = 2


def descriptor_diversity(
    images: Sequence[Similarities],
    n_ref: Mapping[str, int],
    *,
    tau: float,
    extractor_dimensions: Collection[str] | None = None,
) -> float:
    """Say how evenly the images of a prompt cover its references, averaged over dimensions.

    In a dimension, c_j images cover reference j, p = c/sum(c), and the score is -sum(p ln p) / ln(n_ref). It is 0
    where no image covers any reference, or where there is a single one.

    Args:
        images: per image, dimension -> cosines, (n_pred, n_ref), as for `align`.
        n_ref: dimension -> how many references it has.
        tau: a reference counts as covered from this similarity on.
        extractor_dimensions: those the extractor has, as for `align_detail`.

    Returns:
        The score in [0, 1]; NaN for fewer than two images, or where no dimension has references.
    """
    covers = coverings(images, n_ref, tau=tau, extractor_dimensions=extractor_dimensions)
    scores = [evenness(covered.sum(axis=0)) for covered in covers]
    return mean_of(scores, images=len(images))


def semantic_diversity(
    images: Sequence[Similarities],
    n_ref: Mapping[str, int],
    *,
    tau: float,
    extractor_dimensions: Collection[str] | None = None,
    aggregate: Aggregate = "dimension",
) -> float:
    """Say how much more the images of a prompt cover together than one alone.

    It is ALIGN of all predictions together, less the mean of ALIGN over the images, with ALIGN aggregated as in
    `align`. Other arguments, answer and errors are those of `descriptor_diversity`.
    """
    check_choice("aggregate", aggregate, AGGREGATES)
    covers = coverings(images, n_ref, tau=tau, extractor_dimensions=extractor_dimensions)
    return gain_of([covered.sum(axis=0) for covered in covers], images=len(images), aggregate=aggregate)


def coverings(
    images: Sequence[Similarities],
    n_ref: Mapping[str, int],
    *,
    tau: float,
    extractor_dimensions: Collection[str] | None,
) -> list[NDArray[np.bool_]]:
    """Tell in each dimension which image covers which reference, bool (n_images, n_ref)."""
    level = check_tau(tau)
    if not isinstance(images, Sequence) or not all(isinstance(image, Mapping) for image in images):
        raise argument_error("images", "a sequence of mappings of dimension to similarities, one per image", images)
    seen = extracted_by(reference_counts(n_ref), images, extractor_dimensions)
    found = [compared(image, n_ref, extractor_dimensions=seen).arrays for image in images]
    return [
        np.array([arrays[name].max(axis=0, initial=-np.inf) >= level for arrays in found], np.bool_)
        for name in (sorted(seen) if found else ())
    ]


def evenness(counts: NDArray[np.int64]) -> float:
    """Give the entropy of counts, (n_ref,), over the largest it could be; 0 for no count and for a single one."""
    total = int(counts.sum())
    if total == 0 or len(counts) < FEWEST_IMAGES:
        return 0.0
    shares = np.sort(counts[counts > 0]) / total
    return max(0.0, -math.fsum(shares * np.log(shares))) / math.log(len(counts))


def gain_of(counts: Sequence[NDArray[np.int64]], *, images: int | Sequence[int], aggregate: Aggregate) -> float:
    """Give how much more the images of a prompt cover than one does, over all dimensions: their mean, or all as one.

    `counts` has one array a dimension: how many of its `images` cover each reference; they may differ by dimension.
    """
    numbers = [images] * len(counts) if isinstance(images, int) else list(images)
    gains = [int((each > 0).sum()) - int(each.sum()) / n for each, n in zip(counts, numbers, strict=True)]
    sizes = [len(each) for each in counts]
    if aggregate == "pooled" and counts:
        gains, sizes = [math.fsum(gains)], [sum(sizes)]
    return mean_of([gain / size for gain, size in zip(gains, sizes, strict=True)], images=min(numbers, default=0))


def mean_of(scores: Sequence[float], *, images: int) -> float:
    """Average over dimensions; one image says nothing of how images vary."""
    if images < FEWEST_IMAGES or not scores:
        return math.nan
    return math.fsum(scores) / len(scores)
