"""Vendi scores of many small batches at once, as the CUBE protocol asks: 8 images, 50 times over."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import check_choice, check_order, check_size
from culturekit.metrics.diversity.kernels import Weights, check_weights, counting_levels
from culturekit.metrics.diversity.labels import Labels, Missing, code_labels
from culturekit.metrics.diversity.spectra import effective_number

__all__ = ["Batches", "Partial", "cut_batches", "diversity_of_batches", "vendi_batches"]

Partial: TypeAlias = Literal["drop", "paper"]
"""What happens to an incomplete batch: it is dropped, or it is scored and divided by the full size."""


@dataclass(frozen=True, slots=True)
class Batches:
    """Which rows make which batch.

    Attributes:
        rows: int64, (n_batches, size): row numbers; a place that is not filled repeats the last row.
        present: bool, (n_batches, size): which places are filled.
    """

    rows: NDArray[np.int64]
    present: NDArray[np.bool_]


def vendi_batches(
    labels: Labels,
    *,
    size: int = 8,
    weights: Sequence[float],
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
    partial: Partial = "drop",
) -> NDArray[np.float64]:
    """Score consecutive batches: VS/size of each.

    Args:
        labels: N triples in the order in which they make batches, as for `vendi`.
        size: how many items make a batch.
        weights: of the same continent, the same country, the same artifact.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.
        partial: `drop` leaves an incomplete last batch out. `paper` divides its VS by `size` all the same,
            as the notebook of CUBE's authors does, which scores it low for being small.

    Returns:
        float64, (n_batches,), each between 1/size and 1; empty when nothing fills a batch.

    Raises:
        UsageError: an argument breaks its rule.
    """
    check_order(q)
    check_size(size)
    check_choice("partial", partial, ("drop", "paper"))
    checked = check_weights(weights)
    codes = code_labels(labels, levels=counting_levels(checked), missing=missing, normalize=normalize_labels)
    batches = cut_batches(np.zeros(len(codes), np.int64), size, partial)
    return diversity_of_batches(codes, batches, weights=checked, q=q)


def cut_batches(runs: NDArray[np.int64], size: int, partial: Partial) -> Batches:
    """Cut each run of equal numbers in `runs`, int64 (n_rows,) and sorted, into batches from its start on."""
    row = np.arange(len(runs))
    begins = np.append(True, runs[1:] != runs[:-1])
    within = row - np.maximum.accumulate(np.where(begins, row, 0))
    starts = np.flatnonzero(within % size == 0)
    lengths = np.diff(starts, append=len(runs))
    if partial == "drop":
        starts, lengths = starts[lengths == size], lengths[lengths == size]
    place = np.arange(size)
    rows = np.minimum(starts[:, None] + place, len(runs) - 1)
    return Batches(rows, place < lengths[:, None])


def diversity_of_batches(
    codes: NDArray[np.int64], batches: Batches, *, weights: Weights, q: float
) -> NDArray[np.float64]:
    """Compute VS/size of each batch, float64 (n_batches,), from coded labels, int64 (n_rows, 3)."""
    count, size = batches.rows.shape
    if count == 0:
        return np.empty(0)
    levels = counting_levels(weights)
    alike = {level: same_label(codes[batches.rows, level], batches.present) for level in levels}
    filled = batches.present.sum(axis=1)
    if len(levels) == 1:
        eigenvalues = label_counts(alike[levels[0]]) / filled[:, None]
    else:
        kernels = sum((weights[level] * alike[level] for level in levels), np.zeros((count, size, size)))
        eigenvalues = np.linalg.eigvalsh(kernels / filled[:, None, None])
    return np.asarray(np.minimum(effective_number(eigenvalues, q=q), filled) / size)


def same_label(codes: NDArray[np.int64], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell which places of a batch hold equal labels, bool (n_batches, size, size); an empty place equals none."""
    both = present[:, :, None] & present[:, None, :]
    return np.asarray((codes[:, :, None] == codes[:, None, :]) & both)


def label_counts(alike: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count each label of a batch at its first place, int64 (n_batches, size), with 0 at the other places."""
    repeated = np.tril(alike, -1).any(axis=2)
    return np.where(repeated, 0, alike.sum(axis=2))
