"""Deflation: classes that the kernel cannot tell apart become one, and leave eigenvalues that are known at once."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.label_classes import LabelClasses, combined

__all__ = ["Deflated", "deflate"]

NONE = -1
"""In the place of a label that no other class has."""


@dataclass(frozen=True, slots=True)
class Deflated:
    """K/N, of which only a small part needs work.

    That part is diag(diagonal) + sum over levels l and labels g of weights[l]·u u', with u the roots of the masses
    of the classes that have label g, and 0 elsewhere.

    Attributes:
        mass: float64, (n_classes,): the share of the items in a class.
        diagonal: float64, (n_classes,): what the labels that no other class has add to k(i, i) times a share.
        labels: int64, (n_classes, n_levels): codes, coarse levels first; -1 for a label that no other class has.
        weights: of the levels.
        known: float64, (n_known,): eigenvalues that need no work.
        times: int64, (n_known,): how often each of them occurs.
    """

    mass: NDArray[np.float64]
    diagonal: NDArray[np.float64]
    labels: NDArray[np.int64]
    weights: tuple[float, ...]
    known: NDArray[np.float64]
    times: NDArray[np.int64]

    def matrix(self) -> NDArray[np.float64]:
        """Write the part that needs work out, (n_classes, n_classes)."""
        root = np.sqrt(self.mass)
        kernel = np.zeros((len(root), len(root)))
        for weight, column in zip(self.weights, self.labels.T, strict=True):
            kernel += weight * (np.equal.outer(column, column) & (column != NONE)[:, None])
        kernel *= np.outer(root, root)
        kernel[np.diag_indices_from(kernel)] += self.diagonal
        return kernel

    def eigenvalues(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Compute all eigenvalues of K/N but zeros, and how often each occurs, from the matrix of few classes."""
        rest = np.linalg.eigvalsh(self.matrix()) if len(self.mass) else np.empty(0)
        return np.append(self.known, rest), np.append(self.times, np.ones(len(rest), np.int64))


def deflate(classes: LabelClasses, weights: tuple[float, ...]) -> Deflated:
    """Merge twins: classes of equal size whose labels are equal wherever other classes have them too.

    Of m twins with share p, and weights of w on the levels where each has a label of its own, m - 1 eigenvalues
    are w·p, and one class with mass m·p stands for them all. A class without a label in common is an eigenvalue.

    Args:
        classes: of the levels that count.
        weights: of these levels, above 0 and summing to 1.
    """
    labels = np.where(counts_of(classes.labels) == 1, NONE, classes.labels)
    key = combined([*labels.T, classes.counts])
    _, firsts, times = np.unique(key, return_index=True, return_counts=True)
    labels, share = labels[firsts], classes.counts[firsts] / classes.items
    own = (labels == NONE) @ np.array(weights)
    alone = (labels == NONE).all(axis=1)
    repeated = np.where(alone, times, times - 1)
    return Deflated(
        mass=(share * times)[~alone],
        diagonal=(own * share)[~alone],
        labels=labels[~alone],
        weights=weights,
        known=(own * share)[repeated > 0],
        times=repeated[repeated > 0],
    )


def counts_of(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Count for each class and level how many classes have the same label, int64 (n_classes, n_levels)."""
    return np.stack([np.bincount(column)[column] for column in labels.T], axis=1)
