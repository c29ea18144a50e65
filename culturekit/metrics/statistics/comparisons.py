"""Two models on the same prompts: the difference, how certain it is, and whether chance would do as well."""

import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE, PERMUTATIONS
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import check_confidence, check_count, finite_vector
from culturekit.metrics.statistics.intervals import (
    Clustered,
    Interval,
    Keys,
    Mean,
    Target,
    cluster_keys,
    clustered,
    mean_interval,
    mean_of_these,
    simple_mean,
)

if TYPE_CHECKING:
    import polars as pl


# P values of several comparisons, corrected for their number.

CORRECTIONS = ("holm", "benjamini-hochberg")


def holm(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p values so that all of them together err as often as one would (Holm 1979).

    Args:
        p: float, (n,): NaN is a comparison that could not be made; it stays NaN and does not count.

    Returns:
        float64, (n,), in the order given.
    """
    values = p_values(p)
    answer = np.full(values.shape, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    order = known[np.argsort(values[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    answer[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1.0)
    return answer


def benjamini_hochberg(p: ArrayLike) -> NDArray[np.float64]:
    """Correct p values so that the expected share of false ones among those called different stays small.

    Args:
        p: float, (n,): NaN is a comparison that could not be made; it stays NaN and does not count.

    Returns:
        float64, (n,), in the order given.
    """
    from scipy.stats import false_discovery_control

    values = p_values(p)
    known = np.isfinite(values)
    answer = np.full(values.shape, np.nan)
    if known.any():
        answer[known] = false_discovery_control(values[known], method="bh")
    return answer


def bonferroni(p: float, comparisons: int) -> float:
    """Correct one p value for comparisons whose p values are not known; NaN stays NaN."""
    return p if math.isnan(p) else min(1.0, p * comparisons)


def corrected(p: ArrayLike, *, correction: str) -> NDArray[np.float64]:
    """Correct p values by the name of the method."""
    check_choice("correction", correction, CORRECTIONS)
    return holm(p) if correction == "holm" else benjamini_hochberg(p)


def p_values(p: ArrayLike) -> NDArray[np.float64]:
    """Read p values, (n,), each in [0, 1] or NaN."""
    values = np.asarray(p, dtype=np.float64)
    if values.ndim != 1 or bool(((values < 0) | (values > 1)).any()):
        raise argument_error("p", "a sequence of numbers in [0, 1], or NaN where there is none", p)
    return values


Alternative: TypeAlias = Literal["two-sided", "greater", "less"]
Values: TypeAlias = NDArray[np.float64]

MANY_CLUSTERS = 1000  # Above so many, sign flips give the p value of t to the third digit, and only take longer

BATCH = 1_000_000  # How many numbers a permutation test holds at a time; its answer does not depend on it


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
    check_choice("target", target, ("population", "these"))
    check_choice("alternative", alternative, ("two-sided", "greater", "less"))
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


# How far two groups of countries, or of people, lie apart.

Strata = list[list[NDArray[np.float64]]]


def group_gap(
    values: ArrayLike,
    *,
    groups: Keys,
    first: str,
    second: str,
    countries: Keys,
    prompts: Keys,
    target: Target = "population",
    confidence: float = CONFIDENCE,
    comparisons: int = 1,
) -> Comparison:
    """Subtract the mean of one group from that of another: unweighted over images, prompts, countries.

    The countries are held fixed: the gap speaks about these countries and no others of their group. `population`
    takes the prompts of a country as a sample: t over prompt means, stratified by country. `these` holds the
    prompts fixed as well: t over the images of each prompt, stratified by country and prompt. Either has Welch
    and Satterthwaite's degrees of freedom, and a t test.

    Args:
        values: float, (n,), one per image.
        groups: (n,): the group of each value; values of other groups are left alone.
        first: the group that is subtracted from.
        second: the group that is subtracted.
        countries: (n,): the country of each value.
        prompts: (n,): its prompt; prompts of two countries are two prompts even where they share a name.
        target: whether the gap is about other prompts (`population`), or about `these` only.
        confidence: how often such intervals are to hold the true gap.
        comparisons: how many gaps are looked at in all; the p value is multiplied by it.

    Returns:
        The gap. `n` counts prompts, `common` the countries that are in both groups (none, where groups are of
        countries), `left_out` the values of other groups. The limits are NaN where a country has one prompt
        (`population`) or a prompt one image (`these`).

    Raises:
        UsageError: an argument breaks its rule, or a group has no value.
    """
    check_confidence(confidence)
    check_count("comparisons", comparisons)
    check_choice("target", target, ("population", "these"))
    numbers = finite_vector("values", values)
    keys = [
        cluster_keys(name, column, length=len(numbers))
        for name, column in (("groups", groups), ("countries", countries), ("prompts", prompts))
    ]
    chosen = {group: keys[0] == group for group in (first, second)}
    if first == second or not all(mask.any() for mask in chosen.values()):
        raise argument_error("first and second", "two of the groups", (first, second))
    sides = [strata_of(numbers[mask], keys[1][mask], keys[2][mask]) for mask in chosen.values()]
    gap = difference_of(*(mean_over(side, target) for side in sides))
    used = chosen[first] | chosen[second]
    interval = mean_interval(gap, n=int(used.sum()), target=target, confidence=confidence)
    p = t_p_value(gap)
    shared = np.intersect1d(keys[1][chosen[first]], keys[1][chosen[second]])
    count = sum(len(prompt) for side in sides for prompt in side)
    return Comparison(gap.value, tidy(interval), p, bonferroni(p, comparisons), count, len(shared), int((~used).sum()))


def tidy(interval: Interval) -> Interval:
    """Keep the limits in order where rounding would not."""
    return replace(interval, low=min(interval.low, interval.value), high=max(interval.high, interval.value))


def strata_of(values: NDArray[np.float64], countries: NDArray[np.generic], prompts: NDArray[np.generic]) -> Strata:
    """Part values by country, then by prompt, each part in order of its values."""
    country = np.unique(countries, return_inverse=True)[1]
    prompt = np.unique(prompts, return_inverse=True)[1]
    order = np.lexsort((values, prompt, country))
    country, prompt, values = country[order], prompt[order], values[order]
    new_country = np.diff(country, prepend=country[0]) != 0
    ends = np.flatnonzero(new_country | (np.diff(prompt, prepend=prompt[0]) != 0))
    strata: Strata = [[]]
    for part, starts_country in zip(np.split(values, ends), [False, *new_country[ends]], strict=True):
        if starts_country:
            strata.append([])
        strata[-1].append(part)
    return strata


def mean_over(strata: Strata, target: Target) -> Mean:
    """Average over prompts, then over countries."""
    if target == "population":
        return mean_of_these([np.array([simple_mean(prompt).value for prompt in prompts]) for prompts in strata])
    return average_of([mean_of_these(prompts) for prompts in strata])


def average_of(means: list[Mean]) -> Mean:
    """Average independent means, each with the same weight; equal means give exactly that mean."""
    total = Mean(0.0, 0.0, math.nan)
    for mean in means:
        total = difference_of(total, mean)
    value = simple_mean(np.array([mean.value for mean in means])).value
    return Mean(value, total.variance / len(means) ** 2, total.freedom)


# All pairs of models on the same prompts, with p values corrected for their number; and two models over countries.

NEEDED = ("model", "prompt_id", "value")


def compare_models(
    values: "pl.DataFrame",
    *,
    paired: bool = True,
    target: Target = "population",
    correction: str = "holm",
    confidence: float = CONFIDENCE,
    resamples: int = PERMUTATIONS,
    rng: np.random.Generator,
) -> "pl.DataFrame":
    """Compare every model with every other, as `compare` does, and correct the p values for all pairs together.

    Args:
        values: with the columns model, prompt_id and value; further columns are left alone, and so is a value
            that is null or NaN.
        paired: as in `compare`, like the other arguments.
        target: `population` or `these`.
        correction: `holm` or `benjamini-hochberg`.
        confidence: of each interval; intervals are not widened for the number of pairs.
        resamples: of each permutation test.
        rng: where the permutations come from; each pair draws from a generator of its own.

    Returns:
        One row per pair of models, a before b in the alphabet: a, b, difference, low, high, p, p_corrected, n,
        common, left_out.

    Raises:
        UsageError: an argument breaks its rule, there are not two models, or two have no prompt in common.
    """
    import polars as pl

    missing = [name for name in NEEDED if name not in values.columns]
    if missing:
        raise UsageError(f"values must have the columns {', '.join(NEEDED)}", found=f"no {', '.join(missing)}")
    known = values.select(NEEDED).filter(pl.col("value").is_not_null() & pl.col("value").is_not_nan())
    sides = {part["model"][0]: part for part in known.sort("model").partition_by("model", maintain_order=True)}
    pairs = list(itertools.combinations(sorted(sides), 2))
    if not pairs:
        raise UsageError("values must be of at least two models", found=", ".join(map(str, sides)) or "none")
    rows = []
    for (a, b), stream in zip(pairs, rng.spawn(len(pairs)), strict=True):
        answer = compare(
            sides[a]["value"].to_numpy(),
            sides[b]["value"].to_numpy(),
            clusters=(sides[a]["prompt_id"].to_numpy().astype(str), sides[b]["prompt_id"].to_numpy().astype(str)),
            paired=paired,
            target=target,
            confidence=confidence,
            resamples=resamples,
            rng=stream,
        )
        limits = {"low": answer.interval.low, "high": answer.interval.high}
        counts = {"n": answer.n, "common": answer.common, "left_out": answer.left_out}
        rows.append({"a": a, "b": b, "difference": answer.difference, **limits, "p": answer.p, **counts})
    p = corrected([row["p"] for row in rows], correction=correction)
    return pl.DataFrame(rows).insert_column(6, pl.Series("p_corrected", p))


def compare_over_countries(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters: tuple[Keys, Keys],
    countries: tuple[Keys, Keys],
    paired: bool = True,
    target: Target = "population",
    confidence: float = CONFIDENCE,
    resamples: int = PERMUTATIONS,
    rng: np.random.Generator,
) -> Comparison:
    """Compare two models as `compare` does, with means taken over prompts, then over countries.

    Paired, the interval is t over the prompts' differences, stratified by country, and the test flips their signs.
    Unpaired, or for `these` prompts, both are of the difference of two stratified means. A prompt lies in one country.
    """
    check_confidence(confidence)
    check_choice("target", target, ("population", "these"))
    sides = [
        (finite_vector(name, values), cluster_keys(f"clusters of {name}", prompts, length=np.size(values)),
         cluster_keys(f"countries of {name}", places, length=np.size(values)))
        for name, values, prompts, places in zip("ab", (a, b), clusters, countries, strict=True)
    ]  # fmt: skip
    first, second = (side[1] for side in sides)
    common, every = np.intersect1d(first, second), len(np.union1d(first, second))
    kept = [np.isin(side[1], common) | (not paired) for side in sides]
    strata = [
        strata_of(values[mask], places[mask], prompts[mask])
        for (values, prompts, places), mask in zip(sides, kept, strict=True)
    ]
    if paired and target == "population":
        differences = [
            np.array([one.mean() - other.mean() for one, other in zip(*prompts, strict=True)])
            for prompts in zip(*strata, strict=True)
        ]
        gap = mean_of_these(differences)
        p = sign_flip_p(np.concatenate([part / len(part) for part in differences]), "two-sided", resamples, rng)
    else:
        gap = difference_of(*(mean_over(side, target) for side in strata))
        p = t_p_value(gap)
    n = int(sum(mask.sum() for mask in kept))
    answer = mean_interval(gap, n=n, target=target, confidence=confidence)
    entered = len(common) if paired else every
    return Comparison(gap.value, answer, p, p, entered, len(common), every - entered)
