"""The draws that an imputation is made of: labels, shares, tables, and how mappings err."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["drawn_accuracy", "drawn_counts", "drawn_place", "drawn_rows", "drawn_shares", "drawn_strength", "tables"]

ACCURACIES = np.linspace(0.02, 0.99, 40)
STRENGTHS = np.geomspace(1.0, 300.0, 12)
"""What is tried for how often labels are mapped rightly, and how alike labels are in that and in how they err."""

ONE_BY_ONE = 6
"""Images a row on average up to which labels are drawn image by image."""

Array = NDArray[np.float64]
Counts = NDArray[np.int64]


def drawn_rows(shares: Array, rng: np.random.Generator, *, times: Counts | int = 1) -> Counts:
    """Draw a label for each row of shares, or as many as are asked for."""
    sums = shares.cumsum(axis=1).repeat(times, axis=0)
    return np.asarray((sums <= rng.random(len(sums))[:, None] * sums[:, -1:]).sum(axis=1).clip(max=shares.shape[1] - 1))


def drawn_counts(images: Counts, chances: Array, rng: np.random.Generator) -> Counts:
    """Draw how many of a row's images have each label; few of them are drawn one after the other, which is faster."""
    rows, labels = chances.shape
    if images.sum() > ONE_BY_ONE * rows:
        return rng.multinomial(images, chances)
    drawn = drawn_rows(chances, rng, times=images)
    return np.bincount(np.arange(rows).repeat(images) * labels + drawn, minlength=chances.size).reshape(chances.shape)


def drawn_shares(parameters: Array, rng: np.random.Generator) -> Array:
    """Draw from a Dirichlet distribution for each row."""
    gammas = rng.standard_gamma(np.maximum(parameters, 1e-12)) + 1e-290
    return np.asarray(gammas / gammas.sum(axis=1, keepdims=True))


def tables(counts: Counts, prior: Array, rng: np.random.Generator) -> Array:
    """Draw of how many draws from the model's shares the labels of a prompt come, float64 like the counts.

    The number is one and a sum of coins with unequal chances; a binomial number with its mean and variance stands for
    it, exact for one and two images.
    """
    from scipy.special import digamma

    drawn = (counts > 0).astype(np.float64)
    several = counts > 1
    if not several.any():
        return drawn
    start = np.asarray(np.broadcast_to(np.maximum(prior, 1e-12), counts.shape)[several], np.float64)
    end = np.asarray(start + counts[several], np.float64)
    mean = np.maximum(start * (digamma(end) - digamma(start)) - 1, 1e-12)
    squares = start**2 * (trigamma(start) - trigamma(end)) - 1
    times = np.clip(np.rint(mean**2 / np.maximum(squares, 1e-12)), 1, counts[several] - 1)
    times = np.maximum(times, np.ceil(mean))
    drawn[several] += rng.binomial(times.astype(np.int64), np.minimum(mean / times, 1.0))
    return drawn


def trigamma(at: Array) -> Array:
    """Give the slope of the digamma function, to about 1e-6."""
    far = at + 4
    near = sum(1 / (at + step) ** 2 for step in range(4))
    return np.asarray(near + 1 / far + 1 / (2 * far**2) + 1 / (6 * far**3) - 1 / (30 * far**5))


def drawn_accuracy(
    right: Array, wrong: Array, now: tuple[float, float], rng: np.random.Generator
) -> tuple[float, float]:
    """Draw how often labels are mapped rightly, then how alike they are in that."""
    there = right + wrong > 0
    right, wrong = right[there], wrong[there]
    accuracy = float(ACCURACIES[drawn_place(betas(ACCURACIES, np.full_like(ACCURACIES, now[1]), right, wrong), rng)])
    strength = float(STRENGTHS[drawn_place(betas(np.full_like(STRENGTHS, accuracy), STRENGTHS, right, wrong), rng)])
    return accuracy, strength


def betas(accuracy: Array, strength: Array, right: Array, wrong: Array) -> Array:
    """Give the log chance of what is right and wrong for each accuracy and strength."""
    from scipy.special import betaln

    above, below = (strength * accuracy)[:, None], (strength * (1 - accuracy))[:, None]
    return np.asarray((betaln(above + right, below + wrong) - betaln(above, below)).sum(axis=1))


def drawn_strength(wrong: Array, towards: Array, rng: np.random.Generator) -> float:
    """Draw how closely the errors of labels fall where they are expected to."""
    from scipy.special import gammaln

    row, column = np.nonzero(wrong)
    part = STRENGTHS[:, None] * towards[row, column]
    logs = (gammaln(part + wrong[row, column]) - gammaln(part)).sum(axis=1)
    errors = wrong.sum(axis=1)
    logs += (gammaln(STRENGTHS)[:, None] - gammaln(STRENGTHS[:, None] + errors)).sum(axis=1)
    return float(STRENGTHS[drawn_place(logs, rng)])


def drawn_place(logs: Array, rng: np.random.Generator) -> int:
    """Draw a place by the logarithms of its odds."""
    return int(np.argmax(logs + rng.gumbel(size=len(logs))))
