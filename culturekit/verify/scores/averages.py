"""Means and t intervals: over repeats, then over prompts, each counted alike."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from culturekit.verify.scores.student import t_quantile

__all__ = [
    "Answer",
    "Mean",
    "RatedAnswer",
    "clustered_share",
    "mean",
    "of_population",
    "of_these",
    "t_answer",
    "together",
    "wilson",
]


@dataclass(frozen=True, slots=True)
class Answer:
    """A value with its limits; NaN where they are not known."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RatedAnswer(Answer):
    """An answer by people, with its limits if it were known how these err."""

    sure: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, its variance, and the degrees of freedom of that."""

    value: float
    variance: float
    freedom: float


def mean(numbers: Sequence[float]) -> Mean:
    """Average numbers; a single one says nothing of its variance."""
    count = len(numbers)
    average = math.fsum(numbers) / count
    if min(numbers) == max(numbers):
        average = numbers[0]
    if count == 1:
        return Mean(average, math.nan, 0.0)
    squares = math.fsum((number - average) ** 2 for number in numbers)
    return Mean(average, squares / (count - 1) / count, count - 1.0)


def together(means: Sequence[Mean]) -> Mean:
    """Average independent means alike: variance Σv/k², degrees of freedom (Σv)²/Σ(v²/f)."""
    value = mean([one.value for one in means]).value
    total = math.fsum(one.variance for one in means)
    if not total > 0:
        return Mean(value, total, math.nan)
    freedom = total**2 / math.fsum(one.variance**2 / one.freedom for one in means if one.variance > 0)
    return Mean(value, total / len(means) ** 2, freedom)


def of_these(prompts: Sequence[Sequence[float]]) -> Mean:
    """Average prompts held fixed: what scatters is the repeats of each."""
    return together([mean(repeats) for repeats in prompts])


def of_population(prompts: Sequence[Sequence[float]]) -> Mean:
    """Average prompts taken as a sample: what scatters is the prompts."""
    return mean([mean(repeats).value for repeats in prompts])


def t_answer(about: Mean, confidence: float) -> Answer:
    """Put the t interval around a mean."""
    if math.isnan(about.variance):
        return Answer(about.value, math.nan, math.nan)
    if about.variance == 0:
        return Answer(about.value, about.value, about.value)
    margin = t_quantile(about.freedom, confidence) * math.sqrt(about.variance)
    return Answer(about.value, about.value - margin, about.value + margin)


def wilson(share: float, worth: float, t: float) -> tuple[float, float]:
    """Give Wilson's limits of a share of as many independent items as it is worth; the share lies between them."""
    square = t * t / worth
    middle, half = share + square / 2, t * math.sqrt(share * (1 - share) / worth + square / (4 * worth))
    low, high = (middle - half) / (1 + square), (middle + half) / (1 + square)
    return min(share, max(0.0, low)), max(share, min(1.0, high))


def clustered_share(values: Sequence[float], kinds: Sequence[Sequence[object]], confidence: float) -> Answer:
    """Give a share with Wilson's limits, for as many independent values as scatter like those that go together.

    Values go together by one kind or two, such as image and annotator; a kind in which all do says nothing.
    """
    share, n = math.fsum(values) / len(values), len(values)
    kinds = [kind for kind in kinds if len(set(kind)) > 1]
    if not kinds:
        return Answer(share, math.nan, math.nan)
    spread = [variance(values, share, kind) for kind in kinds]
    if len(kinds) == 2:
        crossed = variance(values, share, list(zip(*kinds, strict=True)))
        spread.append(max(*spread, math.fsum(spread) - crossed))
    groups = [len(set(kind)) for kind in kinds]
    worth = min(float(n), share * (1 - share) / spread[-1]) if spread[-1] > 0 else float(max(groups))
    return Answer(share, *wilson(share, worth, t_quantile(min(groups) - 1, confidence)))


def variance(values: Sequence[float], share: float, kind: Sequence[object]) -> float:
    """Give the variance of a mean whose values go together by kind."""
    sums: dict[object, float] = defaultdict(float)
    for value, one in zip(values, kind, strict=True):
        sums[one] += value - share
    return math.fsum(one**2 for one in sums.values()) / len(values) ** 2 * len(sums) / (len(sums) - 1)
