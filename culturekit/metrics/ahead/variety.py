"""DDIV and SDIV of the images of one prompt: how evenly they cover the references, and what more images add."""

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.ahead.dimensions import Similarities, check_tau, compared, extracted_by, reference_counts
from culturekit.metrics.arguments import argument_error

__all__ = ["descriptor_diversity", "evenness", "gain", "semantic_diversity"]

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

    Raises:
        UsageError: an argument breaks its rule.
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
) -> float:
    """Say how much more the images of a prompt cover together than one alone, averaged over dimensions.

    In a dimension it is ALIGN of all predictions pooled, less the mean of ALIGN over the images. Arguments, answer
    and errors are those of `descriptor_diversity`.
    """
    covers = coverings(images, n_ref, tau=tau, extractor_dimensions=extractor_dimensions)
    scores = [gain(covered.sum(axis=0), images=len(images)) for covered in covers]
    return mean_of(scores, images=len(images))


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


def gain(counts: NDArray[np.int64], *, images: int) -> float:
    """Give the share of references that any image covers, less the mean share that one covers."""
    return (int((counts > 0).sum()) - int(counts.sum()) / images) / len(counts)


def mean_of(scores: Sequence[float], *, images: int) -> float:
    """Average over dimensions; one image says nothing of how images vary."""
    if images < FEWEST_IMAGES or not scores:
        return math.nan
    return math.fsum(scores) / len(scores)
