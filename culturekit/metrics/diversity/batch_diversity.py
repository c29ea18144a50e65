"""Vendi scores of many small batches at once, as the CUBE protocol asks: 8 images, 50 times over."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.defaults import BATCH_SIZE
from culturekit.metrics.arguments import check_choice, check_order, check_size
from culturekit.metrics.diversity.batch_signatures import LARGEST, Signatures, signatures_of
from culturekit.metrics.diversity.kernels import Kernel, Weights, counting_levels, is_single, several_weights
from culturekit.metrics.diversity.label_classes import label_classes
from culturekit.metrics.diversity.label_spectra import effective_numbers
from culturekit.metrics.diversity.labels import Codes, Labels, Missing, code_levels
from culturekit.metrics.diversity.spectra import effective_number

__all__ = [
    "BatchScorer",
    "Batches",
    "Partial",
    "cut_batches",
    "scorer_of_batches",
    "vendi_batches",
]

Partial: TypeAlias = Literal["drop", "paper"]
"""What happens to an incomplete batch: it is dropped, or it is scored and divided by the full size."""

BatchScorer: TypeAlias = Callable[[Weights, float], NDArray[np.float64]]
"""From weights and order to VS/size of each batch."""


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
    size: int = BATCH_SIZE,
    weights: Kernel | Sequence[Kernel],
    q: float = 1.0,
    missing: Missing = "distinct",
    normalize_labels: bool = True,
    partial: Partial = "drop",
) -> NDArray[np.float64]:
    """Score consecutive batches: VS/size of each.

    Batches whose labels are equal in the same pattern have the same score, so each pattern is solved once.

    Args:
        labels: N triples in the order in which they make batches, as for `vendi`.
        size: how many items make a batch.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`; one or several.
        q: the order, above 0.
        missing: what None means, as for `vendi`.
        normalize_labels: whether spelling differences of labels are ignored.
        partial: `drop` leaves an incomplete last batch out. `paper` divides its VS by `size` all the same,
            as the notebook of CUBE's authors does, which scores it low for being small.

    Returns:
        float64, (n_batches,), each between 1/size and 1; empty when nothing fills a batch. Several triples of
        weights give (n_kernels, n_batches).

    Raises:
        UsageError: an argument breaks its rule.

    Example:
        >>> labels = [("Asia", "JP", "obi"), ("Asia", "JP", "obi"), ("Europe", "IT", "tarantella")] * 2
        >>> ck.vendi_batches(labels, size=3, weights=(0, 1, 0)).round(2).tolist()
        [0.63, 0.63]
    """
    check_order(q)
    check_size(size)
    check_choice("partial", partial, ("drop", "paper"))
    kernels = several_weights(weights)
    levels = sorted({level for kernel in kernels for level in counting_levels(kernel)})
    coded = code_levels(labels, levels=levels, missing=missing, normalize=normalize_labels)
    batches = cut_batches(np.zeros(len(coded[0]), np.int8), size, partial)
    score = scorer_of_batches(dict(zip(levels, coded, strict=True)), batches)
    scores = np.array([score(kernel, q) for kernel in kernels])
    return scores[0] if is_single(weights) else scores


def cut_batches(runs: NDArray[Any], size: int, partial: Partial) -> Batches:
    """Cut each run of equal numbers in `runs`, (n_rows,) and sorted, into batches from its start on."""
    begins = np.append(0, np.flatnonzero(np.diff(runs)) + 1)
    lengths = np.diff(begins, append=len(runs))
    parts = lengths // size if partial == "drop" else -(-lengths // size)
    number = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    starts = np.repeat(begins, parts) + number * size
    left = np.repeat(lengths, parts) - number * size
    place = np.arange(size)
    return Batches(np.minimum(starts[:, None] + place, len(runs) - 1), place < left[:, None])


def scorer_of_batches(codes: Mapping[int, Codes], batches: Batches) -> BatchScorer:
    """Find what the scores of batches have in common whatever the kernel and the order, and give what is left to do.

    Args:
        codes: by level, (n_rows,): coded labels of all levels that any kernel counts.
        batches: of at least one place.

    Returns:
        A function of weights and order that computes VS/size of each batch, float64 (n_batches,).
    """
    count, size = batches.rows.shape
    if count == 0:
        return lambda weights, q: np.empty(0)
    if size > LARGEST:
        return lambda weights, q: diversity_one_by_one(codes, batches, weights=weights, q=q)
    signatures = signatures_of(codes, batches.rows, batches.present)
    return lambda weights, q: diversity_of_signatures(signatures, weights=weights, q=q)


def diversity_one_by_one(
    codes: Mapping[int, Codes], batches: Batches, *, weights: Weights, q: float
) -> NDArray[np.float64]:
    """Compute VS/size of each of some large batches."""
    levels = counting_levels(weights)
    scores = []
    for rows, present in zip(batches.rows, batches.present, strict=True):
        classes = label_classes([codes[level][rows[present]] for level in levels])
        scores.append(effective_numbers(classes, [weights[level] for level in levels], [q])[0])
    return np.asarray(np.array(scores) / batches.rows.shape[1])


def diversity_of_signatures(signatures: Signatures, *, weights: Weights, q: float) -> NDArray[np.float64]:
    """Compute VS/size of each batch, float64 (n_batches,), from their signatures on all levels that count."""
    levels = counting_levels(weights)
    filled = signatures.filled
    if len(levels) == 1:
        eigenvalues: NDArray[np.float64] = label_counts(signatures.alike(levels[0])) / filled[:, None]
    else:
        kernels = sum((weights[level] * signatures.alike(level) for level in levels), np.zeros(1))
        eigenvalues = np.asarray(np.linalg.eigvalsh(kernels / filled[:, None, None]), np.float64)
    scores = np.minimum(effective_number(eigenvalues, q=q), filled) / signatures.size
    return np.asarray(scores[signatures.of_batch])


def label_counts(alike: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count each label of a batch at its first place, int64 (n_batches, size), with 0 at the other places."""
    repeated = np.tril(alike, -1).any(axis=2)
    return np.asarray(np.where(repeated, 0, alike.sum(axis=2)))
