"""Sets of features: the distance between two, Fréchet (FID) and kernel (unbiased squared MMD, cubic kernel; KID).

And the inception score of one: how sure a classifier is of each image, and how different its answers are.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import argument_error
from culturekit.metrics.arguments import check_confidence
from culturekit.metrics.realism.features import Features, Floats, Numbers, blocks, feature_rows, feature_sets
from culturekit.metrics.statistics.intervals import Interval

BLOCK = 2048

TOLERANCE = 1e-3  # How far probabilities that a classifier wrote in float32 or float16 may be from summing to 1


def frechet_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Give |μa - μb|² + tr(Sa) + tr(Sb) - 2 tr((Sa Sb)^½), covariances with ddof = 1 (Heusel et al. 2017).

    The last trace is the sum of the square roots of the eigenvalues of Sa Sb. With Sa = Ra'Ra and Sb = Rb'Rb these
    roots are the singular values of Ra Rb'. They come from the factors, never from a covariance, whose rounding
    a square root would magnify: so few images (two are enough), or features that depend on each other, are no
    special case. The estimate is biased upwards by an amount that shrinks with n: compare equal n only.

    Args:
        a: float, (n, dim), n at least 2.
        b: float, (m, dim), m at least 2.

    Returns:
        The distance, a square, at least 0.

    Example:
        >>> ck.frechet_distance([[0, 0], [2, 0]], [[0, 3], [2, 3]])
        9.0
    """
    first, second = feature_sets("a", a, "b", b, fewest=2)
    (mean, factor), (other_mean, other_factor) = gaussian(first), gaussian(second)
    roots = np.linalg.svd(factor @ other_factor.T, compute_uv=False)
    spread = np.square(factor).sum() + np.square(other_factor).sum()
    return max(0.0, float(np.square(mean - other_mean).sum() + spread - 2 * roots.sum()))


def gaussian(rows: Features) -> tuple[Floats, Floats]:
    """Give the mean, (dim,), and R with R'R the covariance, (at most dim, dim), in bounded memory."""
    mean = np.asarray(sum(block.sum(axis=0, dtype=np.float64) for _, block in blocks(rows)) / len(rows))
    factor = np.empty((0, rows.shape[1]))
    for _, block in blocks(rows):
        factor = np.asarray(np.linalg.qr(np.concatenate([factor, block - mean]), mode="r"))
    return mean, factor / np.sqrt(len(rows) - 1)


@dataclass(frozen=True, slots=True)
class KernelSums:
    """Sums of the kernel over pairs of one set, and over pairs of both."""

    inside: Floats  # float64, (n,): of each item, the sum over the others of its set
    across: Floats  # float64, (n,): of each item, the sum over the other set


def kernel_distance(a: ArrayLike, b: ArrayLike) -> float:
    """Give the unbiased squared MMD of two whole sets with k(x, y) = (x·y / dim + 1)³ (Bińkowski et al. 2018).

    Unbiased at every n, it may be a little below 0 where the sets are alike. There are no subsets and no
    randomness. Memory does not grow with the number of pairs.

    Args:
        a: float, (n, dim), n at least 2.
        b: float, (m, dim), m at least 2.

    Example:
        >>> ck.kernel_distance([[0], [0]], [[2], [2]])
        124.0
    """
    first, second = feature_sets("a", a, "b", b, fewest=2)
    return squared_mmd(*kernel_sums(first, second))


def kernel_distance_interval(
    a: ArrayLike,
    b: ArrayLike,
    *,
    a_clusters: ArrayLike | None = None,
    b_clusters: ArrayLike | None = None,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Give `kernel_distance` with an interval from the jackknife of a U-statistic, whole clusters left out.

    Both sets are taken as samples. The variance is the sum of the two jackknife variances, which is not below the
    true one on average, and the limits are those of t. Near 0, where the two sets are alike, the distance
    scatters less than its jackknife says: such an interval is too wide rather than too narrow.

    Args:
        a: as for `kernel_distance`.
        b: as for `kernel_distance`.
        a_clusters: int, (n,): what each item belongs to, such as the prompt of an image; without, each is its own.
        b_clusters: int, (m,).
        confidence: how often such intervals are to hold the true distance.

    Returns:
        Limits are NaN where a set has a single cluster; n counts the items of a.
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    first, second = feature_sets("a", a, "b", b, fewest=2)
    sums = kernel_sums(first, second)
    parts = [
        left_out_values(rows, clusters, same, other)
        for rows, clusters, same, other in (
            (first, codes("a_clusters", a_clusters, len(first)), *sums),
            (second, codes("b_clusters", b_clusters, len(second)), *sums[::-1]),
        )
    ]
    value = squared_mmd(*sums)
    variances = np.array([(len(part) - 1) * part.var() if len(part) > 1 else np.nan for part in parts])
    freedom = min(map(len, parts)) - 1
    margin = float(stdtrit(freedom, (1 + confidence) / 2) * np.sqrt(variances.sum())) if freedom > 0 else np.nan
    return Interval(value, value - margin, value + margin, len(first), "population")


def codes(name: str, clusters: ArrayLike | None, n: int) -> Numbers:
    """Number clusters from 0."""
    if clusters is None:
        return np.arange(n)
    keys = np.asarray(clusters)
    if keys.shape != (n,):
        raise argument_error(name, f"one per row, of length {n}", f"shape {keys.shape}")
    return np.unique(keys, return_inverse=True)[1].astype(np.int64)


def kernel(x: Features, y: Features) -> Floats:
    """Evaluate the kernel for all pairs, float64 (n, m)."""
    product = np.matmul(x.astype(np.float64, copy=False), y.astype(np.float64, copy=False).T)
    product /= x.shape[1]
    product += 1
    return np.asarray(product * product * product)


def kernel_sums(a: Features, b: Features) -> tuple[KernelSums, KernelSums]:
    """Sum the kernel over all pairs, item by item, in blocks."""
    sums = [np.zeros(len(a)), np.zeros(len(b))]
    across = [np.zeros(len(a)), np.zeros(len(b))]
    for rows, totals in zip((a, b), sums, strict=True):
        for start in range(0, len(rows), BLOCK):
            part = slice(start, start + BLOCK)
            values = kernel(rows[part], rows[part])
            np.fill_diagonal(values, 0)
            totals[part] += values.sum(axis=1)
            for later in range(start + BLOCK, len(rows), BLOCK):
                other = slice(later, later + BLOCK)
                values = kernel(rows[part], rows[other])
                totals[part] += values.sum(axis=1)
                totals[other] += values.sum(axis=0)
    for start in range(0, len(a), BLOCK):
        for later in range(0, len(b), BLOCK):
            part, other = slice(start, start + BLOCK), slice(later, later + BLOCK)
            values = kernel(a[part], b[other])
            across[0][part] += values.sum(axis=1)
            across[1][other] += values.sum(axis=0)
    return KernelSums(sums[0], across[0]), KernelSums(sums[1], across[1])


def squared_mmd(a: KernelSums, b: KernelSums) -> float:
    """Put the sums together."""
    n, m = len(a.inside), len(b.inside)
    return float(a.inside.sum() / (n * (n - 1)) + b.inside.sum() / (m * (m - 1)) - 2 * a.across.sum() / (n * m))


def left_out_values(rows: Features, clusters: Numbers, sums: KernelSums, other: KernelSums) -> Floats:
    """Give the distance without each cluster of one set in turn, float64 (clusters,); few items left give none."""
    n, m = len(sums.inside), len(other.inside)
    sizes = np.bincount(clusters)
    left = n - sizes
    if left.min() < 2:
        return np.empty(0)
    without = sums.inside.sum() - 2 * np.bincount(clusters, sums.inside) + within(rows, clusters, sizes)
    across = sums.across.sum() - np.bincount(clusters, sums.across)
    return np.asarray(without / (left * (left - 1)) + other.inside.sum() / (m * (m - 1)) - 2 * across / (left * m))


def within(rows: Features, clusters: Numbers, sizes: Numbers) -> Floats:
    """Sum the kernel over the pairs of each cluster, float64 (clusters,)."""
    totals = np.zeros(len(sizes))
    order = np.argsort(clusters, kind="stable")
    for cluster, members in enumerate(np.split(order, np.cumsum(sizes)[:-1])):
        if len(members) > 1:
            values = kernel(rows[members], rows[members])
            totals[cluster] = values.sum() - np.trace(values)
    return totals


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
