"""Means and t intervals: over repeats, then over prompts, each counted alike."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scipy import stats


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


def t_quantile(freedom: float, confidence: float) -> float:
    """Give the point between whose negative and itself so much of Student's t lies."""
    return float(stats.t.ppf((1 + confidence) / 2, freedom))


def t_answer(about: Mean, confidence: float) -> Answer:
    """Put the t interval around a mean."""
    if math.isnan(about.variance):
        return Answer(about.value, math.nan, math.nan)
    if about.variance == 0:
        return Answer(about.value, about.value, about.value)
    margin = t_quantile(about.freedom, confidence) * math.sqrt(about.variance)
    return Answer(about.value, about.value - margin, about.value + margin)
