"""The Vendi score of labelled images, and the score weighted by quality (CUBE, section 5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.metrics.arguments import check_order, finite_vector
from culturekit.metrics.diversity.kernels import Weights, check_weights, counting_levels
from culturekit.metrics.diversity.labels import Labels, Missing, code_labels
from culturekit.metrics.diversity.spectra import effective_number

__all__ = ["QVS", "qvs", "vendi", "vendi_of_codes"]


@dataclass(frozen=True, slots=True)
class QVS:
    """Quality and diversity of a collection, and their product.

    `quality` is the mean over the items, `diversity` is VS/N, between 1/N and 1.
    """

    quality: float
    diversity: float

    @property
    def value(self) -> float:
        """The quality-weighted Vendi score: mean quality times VS/N."""
        return self.quality * self.diversity


def vendi(
    labels: Labels,
    *,
    weights: Sequence[float] = (0.0, 0.0, 1.0),
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> float:
    """Count how many different items a collection is worth: its Vendi score.

    Two items are as similar as the sum of the weights of the levels on which their labels are equal.

    Args:
        labels: N triples (continent, country, artifact), or a polars frame with those columns. Equal labels
            are equal wherever they are: they need not nest.
        weights: of the same continent, the same country, the same artifact; at least 0, summing to 1.
        q: the order, above 0. Low orders count rare labels more; `float("inf")` is an order.
        missing: `distinct` takes each None as unlike every other label, `equal` takes None as equal to None.
        normalize_labels: whether labels are stripped, Unicode-normalised (NFC) and case-folded first.

    Returns:
        The score, between 1 (all items alike) and N (all items different).

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_order(q)
    checked = check_weights(weights)
    codes = code_labels(labels, levels=counting_levels(checked), missing=missing, normalize=normalize_labels)
    return vendi_of_codes(codes, weights=checked, q=q)


def qvs(
    labels: Labels,
    quality: ArrayLike,
    *,
    weights: Sequence[float],
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> QVS:
    """Weight the diversity of a collection by its quality: mean(quality) · VS/N.

    Args:
        labels: N triples, as for `vendi`.
        quality: float, (N,), finite: how good each item is.
        weights: of the same continent, the same country, the same artifact.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.

    Returns:
        The quality, the diversity and their product.

    Raises:
        UsageError: an argument breaks its rule.
    """
    score = vendi(labels, weights=weights, q=q, missing=missing, normalize_labels=normalize_labels)
    items = len(labels)
    goodness = finite_vector("quality", quality, length=items)
    return QVS(quality=float(goodness.mean()), diversity=score / items)


def vendi_of_codes(codes: NDArray[np.int64], *, weights: Weights, q: float) -> float:
    """Compute the Vendi score of coded labels, int64 (N, 3), from checked arguments."""
    return float(effective_number(spectrum(codes, weights=weights), q=q))


def spectrum(codes: NDArray[np.int64], *, weights: Weights) -> NDArray[np.float64]:
    """Give the eigenvalues of K/N that can differ from zero, one per class of items that are alike.

    Items alike on every level that counts are one class, so the N×N kernel has the eigenvalues of
    D^½ K_c D^½ / N, with D the counts of the classes and K_c the kernel between them. With one level
    only, K_c is the identity and the eigenvalues are the shares of the labels.
    """
    counting = counting_levels(weights)
    classes, counts = np.unique(codes[:, counting], axis=0, return_counts=True)
    shares = counts / len(codes)
    if len(counting) == 1:
        return np.asarray(shares, np.float64)
    kernel = np.zeros((len(classes), len(classes)))
    for column, level in enumerate(counting):
        kernel += weights[level] * np.equal.outer(classes[:, column], classes[:, column])
    root = np.sqrt(shares)
    return np.linalg.eigvalsh(kernel * np.outer(root, root))
