"""Confidence intervals for scores that come as one number per prompt and repeat."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, check_choice, check_confidence, check_count, finite_vector
from culturekit.metrics.statistics.clustering import cluster_codes

__all__ = ["Interval", "Target", "interval", "proportion_interval"]

Target: TypeAlias = Literal["these", "population"]
"""What an interval speaks about: the prompts that were asked, or all the prompts they stand for."""

FEWEST_PROMPTS = 20
"""With fewer, an interval over prompts covers 72-91 % where it promises 95 %."""


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

    Raises:
        UsageError: an argument breaks its rule.

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
    margin = half_width(mean, confidence=confidence)
    return Interval(mean.value, mean.value - margin, mean.value + margin, len(numbers), target)


def by_prompt(numbers: NDArray[np.float64], prompts: ArrayLike, repeats: ArrayLike) -> list[NDArray[np.float64]]:
    """Sort numbers by prompt and repeat, and part them by prompt."""
    prompt = cluster_codes("prompts", prompts, length=len(numbers))
    repeat = cluster_codes("repeats", repeats, length=len(numbers))
    order = np.lexsort((repeat, prompt))
    prompt, repeat = prompt[order], repeat[order]
    same = np.flatnonzero((np.diff(prompt) == 0) & (np.diff(repeat) == 0))
    if len(same):
        place = int(order[same[0]])
        raise UsageError(
            "values must be one number per prompt and repeat",
            found=f"several for prompt {np.asarray(prompts)[place]}, repeat {np.asarray(repeats)[place]}",
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

    Raises:
        UsageError: an argument breaks its rule.
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
