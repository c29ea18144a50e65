"""Two models on the same prompts: the difference, how certain it is, and whether chance would do as well."""

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE, PERMUTATIONS
from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice, check_confidence, check_count, finite_vector
from culturekit.metrics.statistics.clustering import Clustered, Keys, clustered
from culturekit.metrics.statistics.corrections import bonferroni
from culturekit.metrics.statistics.intervals import Interval, Mean, Target, half_width, mean_of_these, simple_mean

__all__ = ["Alternative", "Comparison", "compare", "difference_of", "mean_interval", "t_p_value"]

Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
Values: TypeAlias = NDArray[np.float64]

MANY_CLUSTERS = 1000
"""Above so many, sign flips give the p value of t to the third digit, and only take longer."""

BATCH = 1_000_000
"""How many numbers a permutation test holds at a time; its answer does not depend on it."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two sides differ.

    Attributes:
        difference: of the means, the first side minus the second.
        interval: of the difference; its `n` counts values, its `target` says what they speak about.
        p: how often chance alone would differ as much; NaN where a single cluster cannot say.
        p_corrected: the same for as many comparisons as were made.
        n: clusters that entered.
        common: clusters that both sides have.
        left_out: clusters that did not enter, because only one side has them.
    """

    difference: float
    interval: Interval
    p: float
    p_corrected: float
    n: int
    common: int
    left_out: int


def compare(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: Keys | tuple[Keys, Keys],
    paired: bool = True,
    target: Target = "population",
    alternative: Alternative = "two-sided",
    confidence: float = CONFIDENCE,
    comparisons: int = 1,
    resamples: int = PERMUTATIONS,
    rng: np.random.Generator | None = None,
) -> Comparison:
    """Compare two models whose values belong to clusters, such as prompts.

    Values are averaged within a cluster, then over clusters. Paired, only clusters that both sides have enter; the
    p value is that of a sign-flip permutation test of the differences (exact while there are at most `resamples`
    sign patterns, so up to 13 clusters; that of t above 1,000), the interval is t over differences. Unpaired, all
    enter; test and interval are Welch's, since permuted labels err where the smaller side scatters more.
    `these` holds the clusters fixed and asks about the values within them: t interval and t test, stratified, with
    Welch and Satterthwaite's degrees of freedom; each cluster then needs two values a side.

    Args:
        a: float, (n,): values of the first side.
        b: float, (m,): values of the second side.
        clusters: (n,) for both sides where their rows correspond, or a pair of (n,) and (m,).
        paired: whether clusters of the same name are compared with each other.
        target: whether the answer is about other clusters (`population`) or about `these` only.
        alternative: of the test: `two-sided`, or the first side `greater` or `less`; intervals stay two-sided.
        confidence: how often such intervals are to hold the true difference.
        comparisons: how many are made in all (Bonferroni); `compare_models` makes all and corrects by Holm's way.
        resamples: how many permutations are drawn where they are too many to try all.
        rng: where the permutations come from; without one, the same ones every time.

    Raises:
        UsageError: an argument breaks its rule, or no cluster is common.
    """
    check_confidence(confidence)
    check_question(target, alternative)
    check_count("comparisons", comparisons)
    check_count("resamples", resamples)
    first, second = read_sides(a, b, clusters)
    common = np.intersect1d(first.names, second.names)
    every = len(np.union1d(first.names, second.names))
    if paired:
        first, second = keep(first, common), keep(second, common)
    if paired and target == "population":
        differences = first.means() - second.means()
        gap, p = (
            simple_mean(differences),
            sign_flip_p(differences, alternative, resamples, rng or np.random.default_rng(0)),
        )
    else:
        gap = gap_of_sides(first, second, target)
        p = t_p_value(gap, alternative)
    answer = mean_interval(gap, n=len(first.rows) + len(second.rows), target=target, confidence=confidence)
    entered = len(common) if paired else every
    return Comparison(gap.value, answer, p, bonferroni(p, comparisons), entered, len(common), every - entered)


def check_question(target: Target, alternative: Alternative) -> None:
    """Refuse a question that cannot be put."""
    check_choice("target", target, ("population", "these"))
    check_choice("alternative", alternative, ("two-sided", "greater", "less"))


def gap_of_sides(first: Clustered, second: Clustered, target: Target) -> Mean:
    """Subtract the mean of one side from that of another, over clusters drawn or held fixed."""
    if target == "these":
        return difference_of(mean_of_these(first.parts()), mean_of_these(second.parts()))
    return difference_of(simple_mean(first.means()), simple_mean(second.means()))


def read_sides(a: ArrayLike, b: ArrayLike, clusters: Keys | tuple[Keys, Keys]) -> tuple[Clustered, Clustered]:
    """Put both sides into their clusters."""
    of_first, of_second = clusters if is_pair(clusters) else (cast("Keys", clusters), cast("Keys", clusters))
    first = clustered(finite_vector("a", a), of_first, name="clusters of a")
    second = clustered(finite_vector("b", b), of_second, name="clusters of b")
    if first.names.dtype.kind != second.names.dtype.kind:
        raise argument_error("clusters", "texts on both sides, or numbers on both", second.names[:3].tolist())
    return first, second


def is_pair(clusters: Keys | tuple[Keys, Keys]) -> TypeGuard[tuple[Keys, Keys]]:
    """Tell the clusters of each side from two values' clusters: texts and numbers have no elements of their own."""
    return isinstance(clusters, tuple) and len(clusters) == 2 and all(np.ndim(side) == 1 for side in clusters)


def keep(side: Clustered, names: NDArray[np.generic]) -> Clustered:
    """Keep the clusters named; there must be one."""
    if len(names) == 0:
        raise UsageError(
            "the two sides have no cluster in common, so nothing can be paired",
            expected="values of the same prompts",
            hint="Compare them with paired=False.",
        )
    numbers = np.searchsorted(side.names, names)
    sizes = side.sizes[numbers]
    return Clustered(side.take(numbers), names, np.cumsum(sizes) - sizes, sizes)


def difference_of(first: Mean, second: Mean) -> Mean:
    """Subtract independent means: degrees of freedom after Welch and Satterthwaite."""
    total = first.variance + second.variance
    if not total > 0:
        return Mean(first.value - second.value, total, math.nan)
    parts = [(mean.variance / total, mean.freedom) for mean in (first, second) if mean.variance > 0]
    return Mean(first.value - second.value, total, 1 / sum(part**2 / freedom for part, freedom in parts))


def mean_interval(mean: Mean, *, n: int, target: str, confidence: float) -> Interval:
    """Put the t interval around a mean."""
    margin = half_width(mean, confidence=confidence)
    return Interval(mean.value, mean.value - margin, mean.value + margin, n, target)


def t_p_value(mean: Mean, alternative: Alternative = "two-sided") -> float:
    """Test a mean against zero by its t value; a mean without scatter is zero or is not."""
    from scipy.special import stdtr

    if math.isnan(mean.variance):
        return math.nan
    if mean.variance == 0:
        t = math.copysign(math.inf, mean.value) if mean.value else 0.0
        freedom = 1.0
    else:
        t, freedom = mean.value / math.sqrt(mean.variance), mean.freedom
    if alternative == "two-sided":
        return min(1.0, 2 * float(stdtr(freedom, -abs(t))))
    return float(stdtr(freedom, -t if alternative == "greater" else t))


def sign_flip_p(differences: Values, alternative: Alternative, resamples: int, rng: np.random.Generator) -> float:
    """Test differences, (k,), against sign flips of them: under no difference either sign is as likely."""
    from scipy.stats import permutation_test

    if len(differences) < 2:
        return math.nan
    if len(differences) > MANY_CLUSTERS:
        return t_p_value(simple_mean(differences), alternative)
    answer = permutation_test(
        (differences,),
        np.mean,
        permutation_type="samples",
        vectorized=True,
        n_resamples=resamples,
        batch=max(1, BATCH // len(differences)),
        alternative=alternative,
        rng=rng,
    )
    return float(answer.pvalue)
