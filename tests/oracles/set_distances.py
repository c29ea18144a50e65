"""Distances of two sets of vectors from all pairs, written out."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

ROWS = 128


def squared_mmd(a: Floats, b: Floats) -> float:
    """Give the unbiased squared MMD with the cubic kernel."""
    own = 0.0
    for side in (a, b):
        diagonal = float(((np.square(side).sum(axis=1) / side.shape[1] + 1) ** 3).sum())
        own += (kernel_sum(side, side) - diagonal) / (len(side) * (len(side) - 1))
    return own - 2 * kernel_sum(a, b) / (len(a) * len(b))


def kernel_sum(a: Floats, b: Floats) -> float:
    """Sum the kernel over all pairs of two sets."""
    rows = (a[start : start + ROWS] for start in range(0, len(a), ROWS))
    return sum(float(((part @ b.T / a.shape[1] + 1) ** 3).sum()) for part in rows)


def shares(real: Floats, fake: Floats, k: int) -> tuple[float, float, float, float]:
    """Give precision, recall, density and coverage from all distances, written out."""
    around_real, around_fake = radii(real, k), radii(fake, k)
    apart = np.concatenate([squares(real[i : i + 1], fake) for i in range(len(real))])
    within_real, within_fake = apart < around_real[:, np.newaxis], apart < around_fake[np.newaxis, :]
    precision, recall = within_real.any(axis=0).mean(), within_fake.any(axis=1).mean()
    density, coverage = within_real.sum() / (k * len(fake)), within_real.any(axis=1).mean()
    return float(precision), float(recall), float(density), float(coverage)


def radii(points: Floats, k: int) -> Floats:
    """Give the squared distance of each point to its k-th nearest other point."""
    found = []
    for place in range(len(points)):
        apart = np.delete(squares(points[place : place + 1], points)[0], place)
        found.append(np.sort(apart)[k - 1])
    return np.array(found)


def squares(one: Floats, others: Floats) -> Floats:
    """Give the squared distances from one point to others, (1, n)."""
    return np.asarray(np.square(others - one).sum(axis=1)[np.newaxis])
