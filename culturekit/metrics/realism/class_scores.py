"""The inception score: how sure a classifier is of each image, and how different its answers are."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from culturekit.metrics.arguments import argument_error
from culturekit.metrics.realism.distances import Floats
from culturekit.metrics.realism.features import Features, feature_rows

__all__ = ["InceptionScore", "inception_score", "split_scores"]

TOLERANCE = 1e-3
"""How far probabilities that a classifier wrote in float32 or float16 may be from summing to 1."""


@dataclass(frozen=True, slots=True)
class InceptionScore:
    """The mean over splits, and their scatter.

    Attributes:
        value: the mean over splits, in [1, classes].
        std: the standard deviation over splits, of the population (ddof = 0), as in the original code.
    """

    value: float
    std: float


def inception_score(probs: ArrayLike, *, splits: int = 10) -> InceptionScore:
    """Give exp(mean over images of KL(p(y|x) || p(y))), averaged over splits (Salimans et al. 2016).

    Splits are runs of images in the order given, of sizes that differ by at most one; p(y) is the mean of a split's
    own images. Shuffle beforehand where the order means something, as when images are sorted by prompt.

    Args:
        probs: float, (n, classes): probabilities of each image, rows summing to 1.
        splits: how many parts, at most n.

    Raises:
        UsageError: an argument breaks its rule.
    """
    values = split_scores(probs, splits=splits)
    return InceptionScore(float(values.mean()), float(values.std()))


def split_scores(probs: ArrayLike, *, splits: int = 10) -> Floats:
    """Give the score of each split, float64 (splits,); `inception_score` averages them."""
    rows = feature_rows("probs", probs)
    check_probabilities(rows)
    if splits != int(splits) or not 1 <= splits <= len(rows):
        raise argument_error("splits", f"a whole number from 1 to {len(rows)}, the number of images", splits)
    # The borders of the original code.
    borders = np.arange(1, int(splits)) * len(rows) // int(splits)
    return np.array([split_score(part) for part in np.split(rows, borders)])


def check_probabilities(rows: Features) -> None:
    """Refuse rows that are no probabilities."""
    sums = rows.sum(axis=1, dtype=np.float64)
    wrong = np.flatnonzero((rows.min(axis=1) < 0) | (np.abs(sums - 1) > TOLERANCE))
    if len(wrong):
        first = int(wrong[0])
        found = f"smallest {float(rows[first].min()):g}, sum {sums[first]:g}"
        raise argument_error(f"probs[{first}]", "probabilities: none below 0, summing to 1", found)


def split_score(part: Features) -> float:
    """Score one split: the entropy of the mean minus the mean of the entropies, as an exponential."""
    shares = part / part.sum(axis=1, dtype=np.float64, keepdims=True)
    return float(np.exp(max(0.0, float(entropy(shares.mean(axis=0)) - entropy(shares).mean()))))


def entropy(shares: Floats) -> Floats:
    """Give the entropy of shares along the last axis, in nats; 0 ln 0 is 0."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return np.asarray(-(shares * logs).sum(axis=-1))
