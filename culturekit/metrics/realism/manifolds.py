"""Precision, recall, density and coverage of two sets of features, exactly; and how certain coverage is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import check_confidence
from culturekit.metrics.realism.distances import (
    BLOCK,
    Cloud,
    Floats,
    Numbers,
    block_bound,
    clouds,
    exact_squares,
    rough_squares,
)
from culturekit.metrics.realism.features import Features, check_same_width, feature_rows
from culturekit.metrics.realism.image_means import Scatter, t_interval
from culturekit.metrics.realism.neighbours import PAIRS, RadiiCache, check_neighbours, just_above, squared_radii
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS, Interval

__all__ = ["PRDC", "Neighbourhoods", "balanced_sample", "coverage_interval", "in_manifold", "neighbourhoods", "prdc"]

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
        k: which neighbour.
        cache: where radii are kept by the hash of the features and k, so that a set of reals is searched once.

    Raises:
        UsageError: an argument breaks its rule.

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
        k: which neighbour.
        groups: int, (m,): which group, such as its prompt, each fake belongs to; without, each is its own.
        cache: as for `prdc`.
        block: points on each side of a block of pairs; memory grows with its square.
    """
    reals, fakes = both_sets(real, fake)
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
        k: which neighbour.
        cache: as for `prdc`.
    """
    reals, others = both_sets(real, points, name="points")
    check_neighbours("real", len(reals), k)
    inside = np.zeros(len(others), np.bool_)
    radii = squared_radii(reals, k=k, cache=cache)
    left, right = clouds(reals, others)
    for _, _, point in pairs_inside(left, right, radii, None):
        inside[point] = True
    return inside


def both_sets(real: ArrayLike, fake: ArrayLike, *, name: str = "fake") -> tuple[Features, Features]:
    """Read two sets of features of one space."""
    reals, fakes = feature_rows("real", real), feature_rows(name, fake)
    check_same_width(("real", reals), (name, fakes))
    return reals, fakes


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
    rough: NDArray[np.float32],
    balls: Cloud,
    own: slice,
    points: Cloud,
    seen: slice,
    squared: Floats,
    *,
    turned: bool,
) -> Iterator[tuple[Numbers, Numbers]]:
    """Give the pairs (ball, point) of a block in which the point lies in the ball; `turned`, balls are columns."""
    dim = balls.points.shape[1]
    limits = squared[own] * balls.scale**2
    reach = limits + block_bound(dim, balls.norms[own], points.norms[seen].max())
    highest = just_above(np.where(limits > 0, reach, -np.inf))
    hits = np.flatnonzero(rough <= (highest if turned else highest[:, None]))
    for start in range(0, len(hits), PAIRS):
        some = hits[start : start + PAIRS]
        rows, columns = (side.astype(np.int64) for side in np.divmod(some, rough.shape[1]))
        ball, point = (columns, rows) if turned else (rows, columns)
        room = limits[ball] - rough.ravel()[some]
        ball, point = ball + own.start, point + seen.start
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
