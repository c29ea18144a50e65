"""Label kernels whose labels nest: every question about the spectrum is a few sums over the classes."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.deflation import NONE, Deflated

__all__ = ["NestedKernel", "nests"]

Numbers: TypeAlias = NDArray[Any]
"""float64 or complex128."""

BLOCK = 2_000_000
"""How many numbers are worked on at a time."""


def nests(kernel: Deflated) -> bool:
    """Tell whether no fine label is shared, and each label of the next level lies in one label of the coarsest."""
    *coarse, finest = kernel.labels.T
    if (finest != NONE).any():
        return False
    if len(coarse) < 2:
        return True
    outer, inner = coarse
    shared = inner != NONE
    place = np.empty(int(inner.max(initial=0)) + 1, np.int64)
    place[inner[shared]] = outer[shared]
    return bool((place[inner[shared]] == outer[shared]).all())


class NestedKernel:
    """D + sum of w2·u u' over countries + sum of w1·v v' over continents, D diagonal and positive.

    Each rank-one block is added by the matrix determinant lemma: with g the sum of mass/(t + d) over the classes of
    a country, and h the sum of g/(1 + w2·g) over the countries of a continent, log det(I + A/t) is the sum of
    log1p(d/t), log1p(w2·g) and log1p(w1·h).
    """

    def __init__(self, kernel: Deflated) -> None:
        """Order the classes by continent and country, and find where each begins."""
        columns = list(kernel.labels[:, :-1].T)
        outer, inner = columns if len(columns) == 2 else (np.full(len(kernel.mass), NONE), columns[0])
        wide, near = kernel.weights[:-1] if len(columns) == 2 else (0.0, kernel.weights[0])
        # Sums are taken in an order that the names of labels have no part in, as far as that is cheap.
        order = np.lexsort((kernel.mass, kernel.diagonal, inner, outer))
        outer, inner = outer[order], inner[order]
        self.mass, self.diagonal = kernel.mass[order], kernel.diagonal[order]
        self.inner = np.flatnonzero(np.append(True, (np.diff(inner) != 0) | (np.diff(outer) != 0)))
        self.outer = np.flatnonzero(np.append(True, np.diff(outer[self.inner]) != 0))
        self.near = np.where(inner[self.inner] == NONE, 0.0, near)
        self.wide = np.where(outer[self.inner][self.outer] == NONE, 0.0, wide)
        self.rank = len(self.mass)
        inside = np.add.reduceat(self.mass, self.inner)
        around = np.add.reduceat(inside, self.outer)
        self.trace = float(self.diagonal.sum() + self.near @ inside + self.wide @ around)
        self.least = float(self.diagonal.min())
        steps = np.diff(self.inner, append=self.rank)
        rows = self.near * inside + np.repeat(self.wide * around, np.diff(self.outer, append=len(self.inner)))
        self.most = float((self.diagonal + np.repeat(rows, steps)).max())

    def resolvent(self, t: Numbers) -> Numbers:
        """Compute the sum of λ/(λ + t) over the eigenvalues, for t (n,), real or complex, not minus an eigenvalue."""
        answer = np.empty(len(t), np.result_type(t, np.float64))
        step = max(1, BLOCK // self.rank)
        for start in range(0, len(t), step):
            answer[start : start + step] = self.resolvent_block(t[start : start + step, None])
        return answer

    def resolvent_block(self, t: Numbers) -> Numbers:
        """Compute the sum for t, (n, 1), from derivatives by log t of the three kinds of logarithms."""
        sums = self.diagonal + t
        shares = self.mass / sums
        answer = (self.diagonal / sums).sum(axis=1)
        g = np.add.reduceat(shares, self.inner, axis=1)
        slope = np.add.reduceat(shares / sums, self.inner, axis=1)
        factor = 1 + self.near * g
        answer = answer + t[:, 0] * (self.near * slope / factor).sum(axis=1)
        h = np.add.reduceat(g / factor, self.outer, axis=1)
        slope = np.add.reduceat(slope / factor**2, self.outer, axis=1)
        return np.asarray(answer + t[:, 0] * (self.wide * slope / (1 + self.wide * h)).sum(axis=1))

    def below(self, x: float) -> bool:
        """Tell whether all eigenvalues are below x: x·I - A is positive definite, pivot by pivot."""
        sums = x - self.diagonal
        if not sums.min() > 0:
            return False
        g = np.add.reduceat(self.mass / sums, self.inner)
        factor = 1 - self.near * g
        if not factor.min() > 0:
            return False
        return bool((self.wide * np.add.reduceat(g / factor, self.outer)).max() < 1)
