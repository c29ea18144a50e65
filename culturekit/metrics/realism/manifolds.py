"""Precision, recall, density and coverage of two sets of features, exactly; and how certain coverage is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import check_confidence, finite_vector
from culturekit.metrics.realism.features import (
    BLOCK,
    PAIRS,
    Cloud,
    Floats,
    Numbers,
    RadiiCache,
    block_bound,
    check_neighbours,
    clouds,
    exact_squares,
    feature_sets,
    just_above,
    rough_squares,
    squared_radii,
)
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Clustered, Interval, Keys, Target, clustered

# Means and shares over images that come in prompts, every image weighing the same, with their intervals.


@dataclass(frozen=True, slots=True)
class Scatter:
    """How uncertain a number is."""

    variance: float  # NaN where the images do not say
    freedom: float  # degrees of freedom behind it
    units: int  # how many clusters, or images, vary independently


def mean_interval(
    values: ArrayLike, *, clusters: Keys | None = None, target: Target = "population", confidence: float = CONFIDENCE
) -> Interval:
    """Give the mean over images, each weighing the same, with a t interval.

    `population` takes the clusters, such as prompts, as a sample: their totals vary, and with few of them there are no
    limits. `these` holds them fixed: images vary within each; a cluster of one image does not say how much. Without
    clusters each image is its own, and the target is `population`.
    """
    data, target = in_clusters(values, clusters, target, confidence)
    return t_interval(middle(data.rows), scatter(data, target), len(data.rows), target, confidence)


def share_interval(
    yes: ArrayLike, *, clusters: Keys | None = None, target: Target = "population", confidence: float = CONFIDENCE
) -> Interval:
    """Give a share of images with Wilson's interval at their effective number (as `clustered_share`, prompts or not).

    That is the number of independent images whose share would scatter as this one does. Where all images agree,
    nothing scatters, and every cluster (with `these`: every image) counts as one image. The quantile is t's.
    """
    data, chosen = in_clusters(yes, clusters, target, confidence)
    if not np.isin(data.rows, (0, 1)).all():
        raise argument_error("yes", "True and False, or 1 and 0", data.rows[~np.isin(data.rows, (0, 1))][0])
    share, found = middle(data.rows), scatter(data, chosen)
    low, high = wilson(share, found, len(data.rows), confidence)
    return Interval(share, low, high, len(data.rows), chosen)


def in_clusters(
    values: ArrayLike, clusters: Keys | None, target: Target, confidence: float
) -> tuple[Clustered, Target]:
    """Read the arguments; images without clusters are a sample of images."""
    check_confidence(confidence)
    check_choice("target", target, ("these", "population"))
    data = clustered(finite_vector("values", values), clusters)
    return data, "population" if clusters is None else target


def middle(values: Floats) -> float:
    """Average, exactly when all are equal."""
    return float(values[0] + (values - values[0]).mean())


def scatter(data: Clustered, target: Target) -> Scatter:
    """Give the variance of the mean over images."""
    n, k = len(data.rows), len(data.names)
    residuals = data.rows - middle(data.rows)
    if target == "population":
        if k < FEWEST_PROMPTS:
            return Scatter(math.nan, 0, k)
        totals = np.add.reduceat(residuals, data.starts)
        return Scatter(float(k / (k - 1) * np.square(totals).sum()) / n**2, k - 1, k)
    if data.sizes.min() < 2:
        return Scatter(math.nan, 0, n)
    within = data.rows - np.repeat(data.means(), data.sizes)
    parts = np.add.reduceat(np.square(within), data.starts) * data.sizes / (data.sizes - 1) / n**2
    variance = float(parts.sum())
    # Welch and Satterthwaite.
    freedom = variance**2 / float((parts**2 / (data.sizes - 1)).sum()) if variance > 0 else float(n - k)
    return Scatter(variance, freedom, n)


def t_interval(value: float, found: Scatter, n: int, target: str, confidence: float) -> Interval:
    """Put t limits around a number."""
    margin = quantile(found, confidence) * math.sqrt(found.variance) if found.variance > 0 else found.variance
    return Interval(value, value - margin, value + margin, n, target)


def quantile(found: Scatter, confidence: float) -> float:
    """Give t's quantile."""
    from scipy.special import stdtrit

    return float(stdtrit(found.freedom, (1 + confidence) / 2))


def wilson(share: float, found: Scatter, n: int, confidence: float) -> tuple[float, float]:
    """Give Wilson's limits at the effective number of images."""
    if math.isnan(found.variance):
        return math.nan, math.nan
    effective = share * (1 - share) / found.variance if found.variance > 0 and 0 < share < 1 else float(found.units)
    squared = quantile(found, confidence) ** 2
    effective = min(effective, float(n))
    centre = (share + squared / (2 * effective)) / (1 + squared / effective)
    half = math.sqrt(squared * (share * (1 - share) / effective + squared / (4 * effective**2)))
    half /= 1 + squared / effective
    return max(0.0, centre - half), min(1.0, centre + half)


Side: TypeAlias = Literal["real", "fake"]


@dataclass(frozen=True, slots=True)
class PRDC:
    """How two sets of features lie in each other's neighbourhoods.

    Attributes:
        precision: share of fakes within the neighbourhood of some real.
        recall: share of reals within the neighbourhood of some fake.
        density: how many neighbourhoods of reals a fake lies in on average, over k; it may exceed 1.
        coverage: share of reals with a fake in their neighbourhood.
    """

    precision: float
    recall: float
    density: float
    coverage: float


@dataclass(frozen=True, slots=True)
class Neighbourhoods:
    """What PRDC is the mean of, image by image.

    Attributes:
        k: a neighbourhood reaches to the k-th nearest neighbour, and does not include it.
        around_fake: int64, (n_fake,): how many neighbourhoods of reals each fake lies in.
        recalled: bool, (n_real,): whether each real lies in the neighbourhood of a fake.
        covered: bool, (n_real,): whether a fake lies in the neighbourhood of each real.
        only_group: int64, (n_real,): the group of fakes, if only one, in the neighbourhood of each real; else -1.
    """

    k: int
    around_fake: Numbers
    recalled: NDArray[np.bool_]
    covered: NDArray[np.bool_]
    only_group: Numbers

    @property
    def prdc(self) -> PRDC:
        """The four shares."""
        return PRDC(
            precision=float(np.mean(self.around_fake > 0)),
            recall=float(self.recalled.mean()),
            density=float(self.around_fake.sum() / (self.k * len(self.around_fake))),
            coverage=float(self.covered.mean()),
        )


def prdc(real: ArrayLike, fake: ArrayLike, *, k: int = 5, cache: RadiiCache | None = None) -> PRDC:
    """Give precision, recall, density and coverage (Kynkäänniemi et al. 2019; Naeem et al. 2020).

    The neighbourhood of a point is all that is nearer, by Euclidean distance, than its k-th nearest neighbour in its
    own set. The answer is exact with ties, copies and neighbourhoods of radius zero (nothing lies in these), and does
    not depend on order, blocks or threads. Memory grows with n + m.

    Args:
        real: float, (n, dim), n above k.
        fake: float, (m, dim), m above k.
        k: the k-th nearest neighbour is the reach of a point.
        cache: where radii are kept by the hash of the features and k, so that a set of reals is searched once.

    Example:
        >>> real = [[0, 0], [1, 0], [0, 1], [1, 1]]
        >>> score = ck.prdc(real, [[0, 0.5], [1, 0.5], [9, 9]], k=1)
        >>> round(score.precision, 2), score.coverage
        (0.67, 1.0)
    """
    return neighbourhoods(real, fake, k=k, cache=cache).prdc


def neighbourhoods(
    real: ArrayLike,
    fake: ArrayLike,
    *,
    k: int = 5,
    groups: ArrayLike | None = None,
    cache: RadiiCache | None = None,
    block: int = BLOCK,
) -> Neighbourhoods:
    """Say of each image in whose neighbourhood it lies; `prdc` averages it.

    Args:
        real: as for `prdc`.
        fake: as for `prdc`.
        k: the k-th nearest neighbour is the reach of a point.
        groups: int, (m,): which group, such as its prompt, each fake belongs to; without, each is its own.
        cache: as for `prdc`.
        block: points on each side of a block of pairs; memory grows with its square.
    """
    reals, fakes = feature_sets("real", real, "fake", fake)
    check_neighbours("real", len(reals), k)
    check_neighbours("fake", len(fakes), k)
    group = np.arange(len(fakes)) if groups is None else np.asarray(groups, np.int64)
    first, last = np.full(len(reals), np.iinfo(np.int64).max), np.full(len(reals), -1)
    around, recalled = np.zeros(len(fakes), np.int64), np.zeros(len(reals), np.bool_)
    radii = squared_radii(reals, k=k, cache=cache), squared_radii(fakes, k=k, cache=cache)
    left, right = clouds(reals, fakes)
    for side, of_real, of_fake in pairs_inside(left, right, *radii, block=block):
        if side == "fake":
            recalled[of_real] = True
            continue
        around += np.bincount(of_fake, minlength=len(fakes))
        np.minimum.at(first, of_real, group[of_fake])
        np.maximum.at(last, of_real, group[of_fake])
    return Neighbourhoods(int(k), around, recalled, last >= 0, np.where(first == last, first, -1))


def in_manifold(
    real: ArrayLike, points: ArrayLike, *, k: int = 5, cache: RadiiCache | None = None
) -> NDArray[np.bool_]:
    """Say of each point whether it lies in the neighbourhood of some real, bool (m,): precision is the mean of it.

    Args:
        real: float, (n, dim), n above k.
        points: float, (m, dim); here one is enough.
        k: the k-th nearest neighbour is the reach of a point.
        cache: as for `prdc`.
    """
    reals, others = feature_sets("real", real, "points", points)
    check_neighbours("real", len(reals), k)
    inside = np.zeros(len(others), np.bool_)
    radii = squared_radii(reals, k=k, cache=cache)
    left, right = clouds(reals, others)
    for _, _, point in pairs_inside(left, right, radii, None):
        inside[point] = True
    return inside


def pairs_inside(
    real: Cloud, fake: Cloud, of_real: Floats, of_fake: Floats | None, *, block: int = BLOCK
) -> Iterator[tuple[Side, Numbers, Numbers]]:
    """Give the pairs (real, fake) nearer than the real's squared radius, then those nearer than the fake's."""
    out = np.empty(min(block, len(real.points)) * min(block, len(fake.points)), np.float32)
    for row in range(0, len(real.points), block):
        rows = slice(row, min(row + block, len(real.points)))
        for column in range(0, len(fake.points), block):
            columns = slice(column, min(column + block, len(fake.points)))
            rough = rough_squares(real, rows, fake, columns, out)
            for i, j in inside_rows(rough, real, rows, fake, columns, of_real, turned=False):
                yield "real", i, j
            if of_fake is not None:
                for j, i in inside_rows(rough, fake, columns, real, rows, of_fake, turned=True):
                    yield "fake", i, j


def inside_rows(
    rough: NDArray[np.float32], balls: Cloud, part: slice, points: Cloud, seen: slice, squared: Floats, *, turned: bool
) -> Iterator[tuple[Numbers, Numbers]]:
    """Give the pairs (ball, point) of a block in which the point lies in the ball; `turned`, balls are columns."""
    dim = balls.points.shape[1]
    limits = squared[part] * balls.scale**2
    reach = limits + block_bound(dim, balls.norms[part], points.norms[seen].max())
    highest = just_above(np.where(limits > 0, reach, -np.inf))
    hits = np.flatnonzero(rough <= (highest if turned else highest[:, None]))
    for start in range(0, len(hits), PAIRS):
        some = hits[start : start + PAIRS]
        rows, columns = (side.astype(np.int64) for side in np.divmod(some, rough.shape[1]))
        ball, point = (columns, rows) if turned else (rows, columns)
        room = limits[ball] - rough.ravel()[some]
        ball, point = ball + part.start, point + seen.start
        bound = block_bound(dim, balls.norms[ball], points.norms[point])
        inside, unsure = room > bound, np.flatnonzero(np.abs(room) <= bound)
        exact = exact_squares(balls.points, ball[unsure], points.points, point[unsure])
        inside[unsure] = exact < squared[ball[unsure]]
        yield ball[inside], point[inside]


def coverage_interval(
    found: Neighbourhoods, *, strata: NDArray[np.int64] | None, groups: int, confidence: float = CONFIDENCE
) -> Interval:
    """Give coverage with a jackknife interval over groups of fakes.

    A bootstrap would be wrong: a resample has copies, which cover nothing new, and leaves a third of the fakes out.
    The jackknife leaves out one group at a time: the reals that only it covers are lost. Its variance is not below
    the true one on average (Efron and Stein 1981).

    Args:
        found: with groups numbered 0 to `groups` - 1.
        strata: int64, (groups,): what each group is drawn from and stays in, such as the prompt where groups are
            images; None where groups are a sample.
        groups: how many there are.
        confidence: how often such intervals are to hold the coverage that as many fakes have on average.

    Returns:
        Coverage with limits in [0, 1]; n counts the reals. Limits are NaN with fewer than 20 groups that are a
        sample, or with a stratum of one.
    """
    check_confidence(confidence)
    alone = np.bincount(found.only_group[found.only_group >= 0], minlength=groups) / len(found.covered)
    spread = sampled(alone) if strata is None else stratified(alone, strata)
    target = "population" if strata is None else "these"
    answer = t_interval(float(found.covered.mean()), spread, len(found.covered), target, confidence)
    low, high = np.clip([answer.low, answer.high], 0, 1)
    return Interval(answer.value, float(low), float(high), answer.n, target)


def sampled(alone: NDArray[np.float64]) -> Scatter:
    """Give the jackknife's variance over groups."""
    groups = len(alone)
    if groups < FEWEST_PROMPTS:
        return Scatter(np.nan, 0, groups)
    return Scatter(float((groups - 1) * alone.var()), groups - 1, groups)


def stratified(alone: NDArray[np.float64], strata: NDArray[np.int64]) -> Scatter:
    """Give the jackknife's variance with the number of groups of each stratum fixed."""
    sizes = np.bincount(strata)
    if sizes.min() < 2:
        return Scatter(np.nan, 0, len(alone))
    means = np.bincount(strata, alone) / sizes
    squares = np.bincount(strata, np.square(alone - means[strata]))
    return Scatter(float((squares * (sizes - 1) / sizes).sum()), len(alone) - len(sizes), len(alone))


def balanced_sample(cells: Sequence[str], *, size: int | None = None, rng: np.random.Generator) -> Numbers:
    """Draw equally many rows of each cell, without replacement.

    Neighbourhoods shrink where references are many: shares of two regions compare only if both have equally many
    references, and of each object equally many.

    Args:
        cells: (n,): the cell of each row.
        size: how many of each cell; without, as many as the smallest has.
        rng: where the draws come from; cells are drawn from in alphabetical order, and rows in the order given.

    Returns:
        int64, (cells x size,): the numbers of the drawn rows, ascending.

    Raises:
        UsageError: a cell has fewer rows than `size`.
    """
    names, code = np.unique(np.asarray(cells, dtype=np.str_), return_inverse=True)
    counts = np.bincount(code, minlength=len(names))
    if len(names) == 0:
        return np.empty(0, np.int64)
    wanted = int(counts.min()) if size is None else size
    if wanted < 1 or wanted > counts.min():
        raise UsageError(
            "every cell must have the references that are drawn from it",
            expected=f"{size} of each",
            found=f"{counts.min()} of {str(names[int(counts.argmin())])!r}",
        )
    drawn = [rng.choice(np.flatnonzero(code == cell), wanted, replace=False) for cell in range(len(names))]
    return np.sort(np.concatenate(drawn)).astype(np.int64)
