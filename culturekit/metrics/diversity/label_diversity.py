"""The Vendi score of labelled images, and the score weighted by quality (CUBE, section 5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from culturekit.metrics.arguments import check_order, finite_vector
from culturekit.metrics.diversity.kernels import (
    Kernel,
    check_weights,
    counting_levels,
    kernel_name,
    several_weights,
)
from culturekit.metrics.diversity.label_classes import classes_of_labels
from culturekit.metrics.diversity.label_spectra import effective_numbers
from culturekit.metrics.diversity.labels import Labels, Missing

if TYPE_CHECKING:
    import polars as pl

__all__ = ["QVS", "qvs", "vendi", "vendi_table"]

TABLE = {
    "kernel": str,
    "w_continent": float,
    "w_country": float,
    "w_artifact": float,
    "q": float,
    "value": float,
    "n": int,
}
"""The columns of `vendi_table`."""


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
    labels: "Labels | pl.LazyFrame",
    *,
    weights: Kernel = (0.0, 0.0, 1.0),
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> float:
    """Count how many different items a collection is worth: its Vendi score.

    Two items are as similar as the sum of the weights of the levels on which their labels are equal.

    Args:
        labels: N triples (continent, country, artifact), or a frame of polars or pandas with those columns. Equal
            labels are equal wherever they are: they need not nest. Plain labels, one an item, stand for all three. The
            rows of a lazy frame are counted as they are read.
        weights: a kernel by its name, such as `country`, or of the same continent, the same country, the same
            artifact: at least 0, summing to 1.
        q: the order, above 0. Low orders count rare labels more; `float("inf")` is an order.
        missing: `distinct` takes each None as unlike every other label, `equal` takes None as equal to None.
        normalize_labels: whether labels are stripped, Unicode-normalised (NFC) and case-folded first.

    Returns:
        The score, between 1 (all items alike) and N (all items different).

    Raises:
        UsageError: an argument breaks its rule.

    Example:
        >>> labels = [("Asia", "JP", "obi"), ("Asia", "JP", "obi"), ("Europe", "IT", "tarantella")]
        >>> round(ck.vendi(labels, weights=(0, 1, 0)), 2), ck.vendi(["a", "b"])
        (1.89, 2.0)
    """
    check_order(q)
    checked = check_weights(weights)
    levels = counting_levels(checked)
    classes = classes_of_labels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    return effective_numbers(classes, [checked[level] for level in levels], [q])[0]


def qvs(
    labels: Labels,
    quality: ArrayLike,
    *,
    weights: Kernel,
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> QVS:
    """Weight the diversity of a collection by its quality: mean(quality) · VS/N.

    Args:
        labels: N triples, as for `vendi`.
        quality: float, (N,), finite: how good each item is.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.

    Returns:
        The quality, the diversity and their product.

    Raises:
        UsageError: an argument breaks its rule.

    Example:
        >>> labels = [("Asia", "JP", "obi"), ("Asia", "JP", "obi"), ("Europe", "IT", "tarantella")]
        >>> score = ck.qvs(labels, [0.5, 0.7, 0.9], weights=(0, 1, 0))
        >>> round(score.quality, 2), round(score.diversity, 2)
        (0.7, 0.63)
    """
    score = vendi(labels, weights=weights, q=q, missing=missing, normalize_labels=normalize_labels)
    items = len(labels)
    goodness = finite_vector("quality", quality, length=items)
    return QVS(quality=float(goodness.mean()), diversity=score / items)


def vendi_table(
    labels: "Labels | pl.LazyFrame",
    *,
    weights: Kernel | Sequence[Kernel],
    q: float | Sequence[float],
    missing: Missing = "distinct",
    normalize_labels: bool = True,
) -> "pl.DataFrame":
    """Compute the Vendi score for many kernels and orders in one pass over the labels.

    Labels that are whole numbers of a narrow range are counted as they stand: ten million take about a second. Those
    of a lazy frame are counted as they are read: a hundred million in a Parquet file take five, and half a GB.

    Args:
        labels: N triples (continent, country, artifact), an integer array of them, (N, 3), or a frame of polars or
            pandas with those columns, also a lazy one, as `pl.scan_parquet` makes.
        weights: one triple, or several.
        q: one order, or several.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.

    Returns:
        One row per kernel and order, in the order given: `kernel` (the name, where it is a standard one),
        `w_continent`, `w_country`, `w_artifact`, `q`, `value` (the score, between 1 and N) and `n`.

    Raises:
        UsageError: an argument breaks its rule.
    """
    import polars as pl

    orders = [float(order) for order in np.atleast_1d(np.asarray(q, np.float64))]
    for order in orders:
        check_order(order)
    kernels = several_weights(weights)
    levels = sorted({level for kernel in kernels for level in counting_levels(kernel)})
    classes = classes_of_labels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    rows = []
    for kernel in kernels:
        counting = counting_levels(kernel)
        part = classes.on([levels.index(level) for level in counting])
        values = effective_numbers(part, [kernel[level] for level in counting], orders)
        name = kernel_name(kernel)
        rows += [(name, *kernel, order, value, classes.items) for order, value in zip(orders, values, strict=True)]
    return pl.DataFrame(rows, schema=TABLE, orient="row")
