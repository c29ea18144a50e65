"""Confidence intervals for scores that come as one number per prompt and repeat."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import check_confidence, check_count, finite_vector, float_array

# Values that belong together, such as those of a prompt: in one order, whatever order they came in.

# What says which cluster a value belongs to: all texts, or all numbers
Keys: TypeAlias = Sequence[str] | Sequence[int] | NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Clustered:
    """Rows sorted by cluster, and within a cluster by value: the order in which they came is forgotten."""

    rows: NDArray[np.float64]  # float64, (n,) or (n, d)
    names: NDArray[np.generic]  # (k,): the clusters, sorted
    starts: NDArray[np.int64]  # int64, (k,): the first row of each cluster
    sizes: NDArray[np.int64]  # int64, (k,): the number of its rows

    def means(self) -> NDArray[np.float64]:
        """Average the rows of each cluster, float64 (k,) or (k, d); equal values give exactly that value."""
        first = self.rows[self.starts]
        shifts = self.rows - np.repeat(first, self.sizes, axis=0)
        sizes = self.sizes if self.rows.ndim == 1 else self.sizes[:, None]
        return np.asarray(first + np.add.reduceat(shifts, self.starts, axis=0) / sizes)

    def parts(self) -> list[NDArray[np.float64]]:
        """Part the rows by cluster."""
        return np.split(self.rows, self.starts[1:])

    def take(self, clusters: NDArray[np.integer]) -> NDArray[np.float64]:
        """Collect the rows of some clusters, (m,), each as often as it is named."""
        if len(self.names) == len(self.rows):
            return np.asarray(self.rows[clusters])
        sizes = self.sizes[clusters]
        before = np.cumsum(sizes) - sizes
        return np.asarray(self.rows[np.repeat(self.starts[clusters] - before, sizes) + np.arange(sizes.sum())])


def clustered(rows: NDArray[np.float64], clusters: Keys | None, *, name: str = "clusters") -> Clustered:
    """Put rows, (n,) or (n, d), into clusters; without clusters each row is one."""
    keys = np.arange(len(rows)) if clusters is None else cluster_keys(name, clusters, length=len(rows))
    names, codes = np.unique(keys, return_inverse=True)
    columns = rows[:, None] if rows.ndim == 1 else rows
    by_value = tuple(columns.T[::-1])
    # Without clusters the rows themselves are the clusters, and only their values order them.
    order = np.lexsort(by_value if clusters is None else (*by_value, codes))
    sizes = np.bincount(codes, minlength=len(names)).astype(np.int64)
    return Clustered(rows[order], names, np.cumsum(sizes) - sizes, sizes)


def cluster_keys(name: str, clusters: ArrayLike, *, length: int) -> NDArray[np.generic]:
    """Read which cluster each value belongs to, (n,)."""
    keys = np.asarray(clusters.to_list() if hasattr(clusters, "to_list") else clusters)
    if keys.ndim != 1 or len(keys) != length:
        raise argument_error(name, f"one per value, of length {length}", f"shape {keys.shape}")
    if keys.dtype.kind == "O":
        raise argument_error(name, "all texts or all numbers", clusters)
    return keys


def cluster_codes(name: str, clusters: ArrayLike, *, length: int) -> NDArray[np.int64]:
    """Number the clusters in their order, int64 (n,)."""
    _, codes = np.unique(cluster_keys(name, clusters, length=length), return_inverse=True)
    return np.asarray(codes, np.int64)


def finite_rows(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Read numbers as float64, (n,) or (n, d); all are finite, and there is at least one."""
    rows = float_array(name, "numbers, (n,) or (n, d)", values)
    if rows.ndim not in (1, 2) or rows.size == 0:
        raise argument_error(name, "at least one row of numbers, (n,) or (n, d)", f"shape {rows.shape}")
    if not np.isfinite(rows).all():
        first = np.argwhere(~np.isfinite(rows))[0]
        raise argument_error(f"{name}[{', '.join(map(str, first))}]", "finite", float(rows[tuple(first)]))
    return rows


# What an interval speaks about: the prompts that were asked, or all the prompts they stand for
Target: TypeAlias = Literal["these", "population"]

FEWEST_PROMPTS = 20  # With fewer, an interval over prompts covers 72-91 % where it promises 95 %


@dataclass(frozen=True, slots=True)
class Interval:
    """A score with its confidence interval; `n` is how many numbers went in, `target` what they speak about.

    `low` and `high` are NaN where the numbers do not say how much they scatter.
    """

    value: float
    low: float
    high: float
    n: int
    target: str


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, how uncertain it is, and the degrees of freedom behind that."""

    value: float
    variance: float
    freedom: float


def interval(
    values: ArrayLike,
    *,
    prompts: Sequence[str] | Sequence[int] | NDArray[np.generic],
    repeats: Sequence[int] | NDArray[np.generic],
    target: Target = "these",
    confidence: float = CONFIDENCE,
    rng: np.random.Generator | None = None,
) -> Interval:
    """Average over repeats, then over prompts, and say how certain the mean is.

    `these` holds the prompts fixed: a t interval over repeats, stratified by prompt, with Welch and
    Satterthwaite's degrees of freedom. A prompt with a single repeat does not say how much it scatters, so
    the limits are NaN. `population` takes the prompts as a sample: a t interval over prompt means.
    Values that are all equal give an interval of width zero: it says that none of them differed, not that others
    would not. Of n such values, up to 3/n of all others may differ (the rule of three).

    Args:
        values: float, (n,): one number per prompt and repeat.
        prompts: (n,): which prompt each number belongs to.
        repeats: (n,): which repeat of that prompt.
        target: `these` or `population`; the latter needs at least 20 prompts.
        confidence: how often such intervals are to hold the true mean.
        rng: part of the contract of all intervals; a t interval draws nothing, so it is not used.

    Returns:
        The mean of the prompt means, and the interval.

    Example:
        >>> found = ck.interval([0.5, 0.6, 0.7, 0.8], prompts=["a", "a", "b", "b"], repeats=[0, 1, 0, 1])
        >>> round(found.value, 2), round(found.low, 2), round(found.high, 2)
        (0.65, 0.5, 0.8)
    """
    check_choice("target", target, ("these", "population"))
    check_confidence(confidence)
    numbers = finite_vector("values", values)
    strata = by_prompt(numbers, prompts, repeats)
    mean = mean_of_population(strata) if target == "population" else mean_of_these(strata)
    return mean_interval(mean, n=len(numbers), target=target, confidence=confidence)


def by_prompt(numbers: NDArray[np.float64], prompts: ArrayLike, repeats: ArrayLike) -> list[NDArray[np.float64]]:
    """Sort numbers by prompt and repeat, and part them by prompt."""
    prompt = cluster_codes("prompts", prompts, length=len(numbers))
    repeat = cluster_codes("repeats", repeats, length=len(numbers))
    order = np.lexsort((repeat, prompt))
    prompt, repeat = prompt[order], repeat[order]
    same = np.flatnonzero((np.diff(prompt) == 0) & (np.diff(repeat) == 0))
    if len(same):
        first = int(order[same[0]])
        raise UsageError(
            "values must be one number per prompt and repeat",
            found=f"several for prompt {np.asarray(prompts)[first]}, repeat {np.asarray(repeats)[first]}",
            hint="Average them first.",
        )
    return np.split(numbers[order], np.flatnonzero(np.diff(prompt)) + 1)


def mean_of_these(strata: Sequence[NDArray[np.float64]]) -> Mean:
    """Average prompts held fixed: the variance is (sum over prompts of s²/R) / P²."""
    return mean_of_means([simple_mean(stratum) for stratum in strata])


def mean_of_means(means: Sequence[Mean]) -> Mean:
    """Average independent means, each with the same weight: degrees of freedom after Welch and Satterthwaite."""
    value = simple_mean(np.array([mean.value for mean in means])).value
    variances = np.array([mean.variance for mean in means])
    total = float(variances.sum())
    if not total > 0:
        return Mean(value, total, math.nan)
    parts = variances / total
    freedom = 1 / sum(part**2 / mean.freedom for part, mean in zip(parts, means, strict=True) if part > 0)
    return Mean(value, total / len(means) ** 2, float(freedom))


def mean_of_population(strata: Sequence[NDArray[np.float64]]) -> Mean:
    """Average prompts taken as a sample of prompts."""
    if len(strata) < FEWEST_PROMPTS:
        raise UsageError(
            'target="population" speaks about other prompts than those asked, and few prompts cannot:'
            " with fewer than 20, such intervals covered 72-91 % at a nominal 95 %",
            expected=f"at least {FEWEST_PROMPTS} prompts",
            found=f"{len(strata)}",
            hint='Use target="these", which speaks about these prompts only.',
        )
    return simple_mean(np.array([simple_mean(stratum).value for stratum in strata]))


def simple_mean(numbers: NDArray[np.float64]) -> Mean:
    """Average numbers, (n,), exactly when they are equal; one number says nothing of its variance."""
    shifts = numbers - numbers[0]
    value = float(numbers[0] + shifts.mean())
    if len(numbers) == 1:
        return Mean(value, math.nan, 0.0)
    return Mean(value, float(shifts.var(ddof=1)) / len(numbers), len(numbers) - 1.0)


def half_width(mean: Mean, *, confidence: float) -> float:
    """Give the half width of the t interval around a mean."""
    from scipy.special import stdtrit

    if math.isnan(mean.variance) or mean.variance == 0:
        return mean.variance
    return float(stdtrit(mean.freedom, (1 + confidence) / 2)) * math.sqrt(mean.variance)


def mean_interval(mean: Mean, *, n: int, target: str, confidence: float) -> Interval:
    """Put the t interval around a mean of so many numbers."""
    margin = half_width(mean, confidence=confidence)
    return Interval(mean.value, mean.value - margin, mean.value + margin, n, target)


ProportionMethod: TypeAlias = Literal["wilson", "clopper-pearson"]


def proportion_interval(
    successes: int, trials: int, *, confidence: float = CONFIDENCE, method: ProportionMethod = "wilson"
) -> Interval:
    """Give a share of independent trials and its interval.

    Wilson's interval covers its level on average; that of Clopper and Pearson never covers less, and is wider. Both
    take trials as independent: several answers about one image are not, so average them first and use `bootstrap`.

    Args:
        successes: how many trials succeeded.
        trials: how many there were, at least one.
        confidence: how often such intervals are to hold the true share.
        method: `wilson` or `clopper-pearson`.
    """
    from scipy.stats import binomtest

    check_confidence(confidence)
    check_choice("method", method, ("wilson", "clopper-pearson"))
    check_count("trials", trials)
    if successes != int(successes) or not 0 <= successes <= trials:
        raise argument_error("successes", f"a whole number from 0 to {trials}", successes)
    result = binomtest(int(successes), int(trials))
    found = result.proportion_ci(confidence, method="wilson" if method == "wilson" else "exact")
    return Interval(successes / trials, float(found.low), float(found.high), int(trials), "population")


# Shares of answers that are not independent: several about one image, many by one annotator.


def clustered_share(values: ArrayLike, clusters: Mapping[str, Keys], *, confidence: float = CONFIDENCE) -> Interval:
    """Average numbers from 0 to 1, with a Wilson interval at their effective sample size.

    The variance is robust to answers that go together within a cluster of any kind named (Cameron, Gelbach and Miller
    2011: the sum over kinds, less that of their crossing), the answers are counted as p(1 - p) over that variance,
    and at most as many as there are, and Wilson's limits take the t quantile of the kind with the fewest clusters. A
    kind with one cluster is held fixed: nothing says how another would answer. Where all answers are equal they are
    counted as the kind with the most clusters has of them, and that is likely too many when annotators are few.

    Args:
        values: float, (n,): 1 and 0, or shares.
        clusters: kind -> (n,): such as the image and the annotator of each answer; one or two kinds.
        confidence: how often such intervals are to hold the share of all images and annotators like these.
    """
    from scipy.special import stdtrit

    check_confidence(confidence)
    numbers = finite_vector("values", values)
    if numbers.min() < 0 or numbers.max() > 1:
        raise argument_error("values", "from 0 to 1", [float(numbers.min()), float(numbers.max())])
    if not 1 <= len(clusters) <= 2:
        raise argument_error("clusters", "of one kind or two", sorted(clusters))
    codes = [cluster_codes(f"clusters[{kind!r}]", keys, length=len(numbers)) for kind, keys in clusters.items()]
    usable = [code for code in codes if code.max() > 0]
    share = float(np.sort(numbers).mean())
    if not usable:
        return Interval(share, np.nan, np.nan, len(numbers), "population")
    sizes = [int(code.max()) + 1 for code in usable]
    worth = effective_number(numbers - share, usable, share)
    quantile = float(stdtrit(min(sizes) - 1, (1 + confidence) / 2))
    low, high = wilson(share, worth, quantile)
    return Interval(share, low, high, len(numbers), "population")


def effective_number(deviations: NDArray[np.float64], codes: Sequence[NDArray[np.int64]], share: float) -> float:
    """Count how many independent answers would scatter as much as these."""
    variances = [variance_of_mean(deviations, code) for code in codes]
    if len(codes) == 2:
        crossed = np.unique(codes[0] * (codes[1].max() + 1) + codes[1], return_inverse=True)[1]
        # The crossing is taken away once; where that leaves less than either kind alone, the larger kind stands.
        variances.append(max(*variances, sum(variances) - variance_of_mean(deviations, crossed)))
    most = max(int(code.max()) + 1 for code in codes)
    if variances[-1] <= 0:
        return float(most)
    return min(float(len(deviations)), share * (1 - share) / variances[-1])


def variance_of_mean(deviations: NDArray[np.float64], code: NDArray[np.int64]) -> float:
    """Estimate the variance of a mean from the sums of clusters."""
    sums = np.bincount(code, weights=deviations)
    number = len(sums)
    return float((sums**2).sum()) / len(deviations) ** 2 * number / (number - 1)


def wilson(share: float, number: float, quantile: float) -> tuple[float, float]:
    """Give Wilson's limits of a share of so many answers."""
    square = quantile**2 / number
    middle = (share + square / 2) / (1 + square)
    half = quantile / (1 + square) * np.sqrt(share * (1 - share) / number + square / (4 * number))
    return min(share, max(0.0, float(middle - half))), max(share, min(1.0, float(middle + half)))


# Statistics of many draws at once: how often each cluster was drawn stands for the draw.

Counts: TypeAlias = NDArray[np.float64]  # (draws, clusters): how often each cluster was drawn

OfCounts: TypeAlias = Callable[[Counts], NDArray[np.float64]]  # A statistic of each row of such counts, (draws,)

# A statistic of each row of cluster numbers, (draws, drawn clusters) to (draws,)
Drawn: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.float64]]

AT_A_TIME = 1_000_000  # How many counts are held at a time; the answers do not depend on it


def times_drawn(drawn: NDArray[np.int64], clusters: int) -> Counts:
    """Count how often each cluster was drawn, from cluster numbers (draws, drawn clusters)."""
    rows = np.arange(len(drawn))[:, None] * clusters
    counts = np.bincount((drawn + rows).ravel(), minlength=len(drawn) * clusters)
    return counts.reshape(len(drawn), clusters).astype(np.float64)


def of_draws(statistic: OfCounts, *, clusters: int, width: int = 1) -> Drawn:
    """Make a statistic of counts one of drawn clusters; `width` numbers are held for each count."""
    step = max(1, AT_A_TIME // (clusters * width))

    def of(drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        blocks = [drawn[start : start + step] for start in range(0, len(drawn), step)]
        return np.concatenate([statistic(times_drawn(block, clusters)) for block in blocks])

    return of
