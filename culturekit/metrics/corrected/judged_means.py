"""Means over units that a judge marked all of, put right by the people who marked a random part of them (PPI++).

With y what people say of a unit and f what the judge says, the mean is that of y - trust (f - mean of f): the judge
counts as far as it foretells what people say, and no bias of it is left. The trust is learnt from other units than it
is used on. A ratio of two sums is the same of y - ratio * per, the terms that it is the root of.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.defaults import CONFIDENCE
from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error, finite_vector
from culturekit.metrics.statistics.clustering import Keys, check_confidence

__all__ = ["FEWEST_ERRORS", "FOLDS", "JudgedMean", "judged_mean"]

Values = NDArray[np.float64]

FOLDS = 5
"""Parts of the units that people marked: the trust of each is learnt from the others."""

FEWEST_ERRORS = 5
"""People who met fewer errors of the judge could have missed one: one more is then in the interval."""

SAME = 1e-9


@dataclass(frozen=True, slots=True)
class JudgedMean:
    """What people would say of all units on average.

    Attributes:
        value: with its limits `low` and `high`.
        n: how many units there are.
        people: how many of them people marked.
        judged: what the judge alone says.
        trust: how far the judge counts, from 0 to 1; the lambda of PPI++.
    """

    value: float
    low: float
    high: float
    n: int
    people: int
    judged: float
    trust: float


def judged_mean(
    judged: ArrayLike,
    people: ArrayLike,
    *,
    per: tuple[ArrayLike, ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    chances: ArrayLike | None = None,
    clusters: Keys | None = None,
    folds: int = FOLDS,
    confidence: float = CONFIDENCE,
) -> JudgedMean:
    """Estimate the mean, or a ratio of sums, that people would give all units, from a judge and a random sample.

    Units that people marked are to be a random draw: nothing here can see whether they are. Limits are t, with the
    clusters that people marked (units, where there are none) as what varies.

    Args:
        judged: float, (n,): what the judge says of each unit, in an order that says nothing of the answers.
        people: float, (n,): what people say of it, NaN where nobody was asked; on the judge's scale.
        per: for a ratio: what its denominator gets of each unit, by the judge (n,) and by people (n,), NaN alike.
        weights: (n,), above 0: what each unit weighs in the mean; all the same without.
        chances: (n,), above 0: the chance with which each unit was drawn for people; all the same without. Of units
            that people did not mark it is not looked at.
        clusters: (n,): what units belong to that were drawn together, such as prompts.
        folds: parts for learning the trust; with 1 it is learnt from all, as in the published PPI++.
        confidence: how often such intervals are to hold the true value.

    Raises:
        UsageError: an argument breaks its rule, fewer than two units or clusters per fold were marked, or the sum that
            a ratio is over is not above 0.

    Example:
        >>> found = ck.judged_mean([1, 1, 0, 1, 1, 0, 1, 1] * 5, [1, 0, 0, 1, 1, 0, None, None] * 5)
        >>> round(found.value, 2), round(found.judged, 2), found.people
        (0.58, 0.75, 30)
    """
    check_confidence(confidence)
    said = finite_vector("judged", judged)
    answers = np.asarray(people, dtype=np.float64)
    asked = ~np.isnan(answers)
    if answers.shape != said.shape or not asked.any() or np.isinf(answers).any():
        raise argument_error("people", f"one number for each of {len(said)} units, NaN where nobody was asked", people)
    units = Units(said, answers, *denominators(per, len(said), asked), asked, positive("weights", weights, len(said)))
    drawn = np.where(asked, units.weights, 0.0)
    drawn[asked] /= positive("chances", chances, len(said), where=asked)[asked]
    cluster = np.arange(len(said)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    return estimate(units, drawn / drawn.sum(), parts_of(cluster, asked, folds), cluster, confidence)


@dataclass(frozen=True, slots=True)
class Units:
    """What judge and people say of units, float64 (n,) each: numerator and denominator, who was asked, weights."""

    judged: Values
    people: Values
    judged_per: Values
    people_per: Values
    asked: NDArray[np.bool_]
    weights: Values


def denominators(per: tuple[ArrayLike, ArrayLike] | None, n: int, asked: NDArray[np.bool_]) -> tuple[Values, Values]:
    """Read the denominators; those of a mean are 1."""
    if per is None:
        return np.ones(n), np.where(asked, 1.0, np.nan)
    by_judge, by_people = finite_vector("per[0]", per[0], length=n), np.asarray(per[1], dtype=np.float64)
    if by_people.shape != (n,) or (np.isnan(by_people) == asked).any():
        raise argument_error("per[1]", "a number where people has one, NaN elsewhere", per[1])
    return by_judge, by_people


def positive(name: str, numbers: ArrayLike | None, n: int, where: NDArray[np.bool_] | None = None) -> Values:
    """Read numbers that are to be above 0, adding up to 1; all the same where there are none."""
    if numbers is None:
        return np.full(n, 1 / n)
    found = np.asarray(numbers, dtype=np.float64)
    if found.shape != (n,):
        raise argument_error(name, f"of length {n}, like judged", f"shape {found.shape}")
    looked = found if where is None else found[where]
    if not (np.isfinite(looked) & (looked > 0)).all():
        raise argument_error(name, "finite and above 0", looked[~(np.isfinite(looked) & (looked > 0))][0])
    return np.asarray(found / looked.sum())


def parts_of(cluster: NDArray[np.int64], asked: NDArray[np.bool_], folds: int) -> NDArray[np.int64]:
    """Part the clusters that people marked in turn, int64 (n,)."""
    marked = np.unique(cluster[asked])
    if folds < 1 or len(marked) < 2 * folds:
        raise UsageError(
            "people marked too few units, or clusters of them, to learn how far the judge can be trusted",
            expected=f"at least {2 * max(folds, 1)}", found=str(len(marked)),
        )  # fmt: skip
    return np.asarray(np.searchsorted(marked, cluster) % folds)


def estimate(
    units: Units, drawn: Values, fold: NDArray[np.int64], cluster: NDArray[np.int64], confidence: float
) -> JudgedMean:
    """Put the judge right.

    Args:
        units: what was said of them.
        drawn: float64, (n,): the weight of each unit among those that people marked, 0 for the others.
        fold: int64, (n,): which part a unit is in.
        cluster: int64, (n,): the number of its cluster.
        confidence: of the interval.
    """
    asked, weights = units.asked, units.weights
    people, per = np.where(asked, units.people, 0.0), np.where(asked, units.people_per, 0.0)
    first = divided(float(drawn @ people), float(drawn @ per))
    trusts = np.empty(len(weights))
    for number in np.unique(fold):
        learnt = np.where(fold == number, 0.0, drawn) if len(np.unique(fold)) > 1 else drawn
        terms = people - first * per, units.judged - first * units.judged_per
        trusts[fold == number] = trust_in(*terms, learnt / learnt.sum(), weights, float(weights[asked].sum()))
    over = float(drawn @ put_right(per, units.judged_per, trusts, weights))
    value = divided(float(drawn @ put_right(people, units.judged, trusts, weights)), over)
    terms = (people - value * per) / over, (units.judged - value * units.judged_per) / over
    spread = variance_of(*terms, trusts, drawn, units, cluster)
    missed = float(drawn.max()) * float(np.ptp(terms[0][asked])) if errors_met(units) < FEWEST_ERRORS else 0.0
    k = len(np.unique(cluster[asked]))
    from scipy.special import stdtrit

    margin = float(stdtrit(k - 1, (1 + confidence) / 2)) * math.sqrt(k / (k - 1) * spread + missed**2)
    rest = float(weights[~asked].sum())
    alone = divided(float(weights @ units.judged), float(weights @ units.judged_per))
    trust = float(drawn @ trusts) * (rest if rest > 0 else 1.0)
    return JudgedMean(value, value - margin, value + margin, len(weights), int(asked.sum()), alone, trust)


def divided(over: float, under: float) -> float:
    """Divide sums."""
    if not under > 0:
        raise UsageError("a ratio is over a sum above 0", found=f"{under:g}")
    return float(over / under)


def trust_in(people: Values, judged: Values, learnt: Values, weights: Values, share: float) -> float:
    """Give the trust with which the judge helps most, as a factor of what its units differ from all units by.

    PPI++ counts what marked units differ from the others by, so that its lambda is smaller by the share of these, and
    lies from 0 to 1.
    """
    n, centred = len(weights), judged - weights @ judged
    spread = float(weights @ centred**2) * n / (n - 1)
    together = float(learnt @ ((people - learnt @ people) * (judged - learnt @ judged)))
    return float(np.clip(together / spread, 0.0, 1 / (1 - share) if share < 1 else 1.0)) if spread > SAME**2 else 0.0


def put_right(people: Values, judged: Values, trusts: Values, weights: Values) -> Values:
    """Take from what people say what the judge foretells of it, float64 (n,)."""
    return np.asarray(people - trusts * (judged - weights @ judged))


def variance_of(
    people: Values, judged: Values, trusts: Values, drawn: Values, units: Units, cluster: NDArray[np.int64]
) -> float:
    """Add the squares of what each cluster adds to the estimate: marked units and the others, each about their mean."""
    trust = float(drawn @ trusts)
    rectified = put_right(people, judged, trusts, units.weights)
    added = drawn * (rectified - drawn @ rectified) + units.weights * trust * (judged - units.weights @ judged)
    for side in (units.asked, ~units.asked):
        if side.any():
            added[side] -= added[side].mean()
    return float(np.square(np.bincount(cluster, weights=added)).sum())


def errors_met(units: Units) -> int:
    """Count the units of which people say something else than the judge."""
    asked = units.asked
    other = np.abs(units.people - units.judged) > SAME
    return int((asked & (other | (np.abs(units.people_per - units.judged_per) > SAME))).sum())
