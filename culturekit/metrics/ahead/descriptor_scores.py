"""ALIGN and HAL of one image: how much it shows of what it should, and how much else it shows."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.ahead.dimensions import Compared, Similarities, check_tau, compared
from culturekit.metrics.arguments import check_choice

__all__ = [
    "AGGREGATES",
    "Aggregate",
    "DimensionScore",
    "align",
    "align_detail",
    "hallucination",
    "hallucination_detail",
]

Aggregate: TypeAlias = Literal["dimension", "pooled"]
"""The mean over dimensions, or one fraction over all descriptors."""

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

    Raises:
        UsageError: an argument breaks its rule.
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
