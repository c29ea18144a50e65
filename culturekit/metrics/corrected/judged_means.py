"""Means over units that a judge marked all of, put right by the people who marked a random part of them (PPI++).

With y what people say of a unit and f what the judge says, the mean is that of y - trust (f - mean of f): the judge
counts as far as it foretells what people say, and no bias of it is left. The trust is learnt from other units than it
is used on. A ratio of two sums is the same of y - ratio * per, the terms that it is the root of.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from culturekit.core.choices import CONFIDENCE
from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.arguments import check_confidence, finite_vector
from culturekit.metrics.corrected.audit_gates import (
    DESIGN_UNKNOWN,
    FARTHEST,
    FEWEST_AUDITED,
    ONE_RATER,
    Design,
    check_design,
    check_response,
    distance,
    not_even,
    refuse_disagreement,
    rest_on_one,
)
from culturekit.metrics.statistics.intervals import Interval, Keys, Target

# Which answers of people put a judge right: the rules of audits, for items of any kind; what breaks one is refused.

FEWEST_OTHERWISE = 5
"""Items of which people say something else than of most: with fewer the limits of a mean are not known to hold."""

MOST_GRADES = 11  # Grades of the finest scale that people are asked to rate on

LABEL = "countries asked for"


def marked_items(
    items: pl.DataFrame,
    answers: pl.DataFrame,
    *,
    sample: pl.DataFrame | None,
    design: Design = "drawn",
    step: float | None = None,
    span: float = math.inf,
) -> pl.DataFrame:
    """Put beside each item what people say of it on average, and the chance with which it was drawn for them.

    Args:
        items: image_id, prompt_id, country, and `value`, what the judge says.
        answers: image_id, annotator, value: of one pool; those about other items are not looked at.
        sample: AUDIT_SAMPLE: which items people were asked about, where that is known.
        design: `unknown` looks at no draw; what comes of it is to be marked.
        step: from one grade of the scale to the next, where it is known.
        span: from the lowest to the highest value that there can be, where there are such.

    Returns:
        The items in their order with `people` and `chance`, null where nobody was asked; without a sample all chances
        are alike.

    Raises:
        UsageError: the answers cannot put the judge right.
    """
    about_items = answers.join(items.select("image_id"), on="image_id", how="semi")
    by_item = about_items.group_by("image_id").agg(people=pl.col("value").sort().mean())
    if by_item.height < FEWEST_AUDITED:
        raise UsageError(
            "people marked too few items", expected=f"at least {FEWEST_AUDITED}, better 150", found=str(by_item.height)
        )
    refuse_disagreement(*agreeing_pairs(about_items, step, span))
    refuse_one_sided(by_item["people"])
    marked = items.join(by_item, on="image_id", how="left", maintain_order="left")
    chances = None if sample is None else chances_of(items, sample)
    if sample is None or chances is None or chances["chance"].n_unique() == 1:
        check_design(items.drop("value"), about_items, sample, design, label=LABEL)
        if design == "drawn":
            refuse_favoured(marked)
    else:
        check_response(items, about_items, sample)
    if chances is None:
        return marked.with_columns(chance=pl.when(pl.col("people").is_not_null()).then(1.0))
    return marked.join(chances, on="image_id", how="left", maintain_order="left")


def marks_of_answers(answers: pl.DataFrame, design: Design) -> list[str]:
    """Say what is to stand beside numbers that nobody can check: one rater an item, a design that is not known."""
    no_gold = pl.DataFrame(schema={"annotator": pl.String, "asked": pl.UInt32})
    return [ONE_RATER] * rest_on_one(answers, no_gold) + [DESIGN_UNKNOWN] * (design == "unknown")


def agreeing_pairs(answers: pl.DataFrame, step: float | None = None, span: float = math.inf) -> tuple[int, int]:
    """Count the pairs of answers to one item that agree, and all.

    Ratings on a scale agree where they are the same or one step apart: people who see the same differ by that much.
    What has more values than a scale, such as a share of things that are ticked, has steps of a quarter of the range
    that it can have, of that which was met where there are no ends: items that are alike are no disagreement. Without
    a known step it is the smallest that was met, and two answers are yes and no.
    """
    known = np.unique(answers["value"].to_numpy())
    if step is None:
        step = float(np.diff(known).min()) if len(known) > 2 else 0.0
        if len(known) > MOST_GRADES:
            step = (span if math.isfinite(span) else float(known[-1] - known[0])) / 4
    pairs = answers.join(answers, on="image_id", suffix="_b").filter(pl.col("annotator") < pl.col("annotator_b"))
    return int(((pairs["value"] - pairs["value_b"]).abs() <= step * (1 + 1e-9)).sum()), pairs.height


def refuse_one_sided(values: pl.Series) -> None:
    """Refuse answers that are nearly all the same: how often another would come is then not known."""
    _, counts = np.unique(values.to_numpy(), return_counts=True)
    otherwise = len(values) - int(counts.max())
    if otherwise < FEWEST_OTHERWISE:
        raise UsageError(
            "people say the same of nearly all items",
            expected=f"at least {FEWEST_OTHERWISE} of which they say something else",
            found=f"{otherwise} of {len(values)}",
            hint="Ask about more items.",
        )


def refuse_favoured(marked: pl.DataFrame) -> None:
    """Refuse answers about items that the judge rates far higher, or lower, than the others."""
    away = distance(marked["value"].to_numpy().astype(np.float64), marked["people"].is_not_null().to_numpy())
    if abs(away) > FARTHEST:
        raise not_even(
            "what the judge says", f"items that it rates {'higher' if away > 0 else 'lower'} than the others"
        )


def chances_of(items: pl.DataFrame, sample: pl.DataFrame) -> pl.DataFrame:
    """Give the chance with which each drawn item was drawn: image_id, chance.

    Where prompts were drawn and one image of each is shown, `chance` is that of the prompt; its images share it. A
    sample tells which of both it is: what is drawn stands, each for as many as its chance says, for all prompts or
    for all items.
    """
    drawn = sample.select("image_id", "chance").join(items.select("image_id", "prompt_id"), on="image_id")
    if drawn.is_empty():
        raise UsageError("no drawn item is among the values", expected="the sample that was drawn from these items")
    sizes = items.group_by("prompt_id").agg(images=pl.len())
    stand, prompts = float((1 / drawn["chance"]).sum()), sizes.height
    of_prompts = abs(np.log(stand / prompts)) < abs(np.log(stand / items.height))
    shared = drawn.join(sizes, on="prompt_id", nulls_equal=True, maintain_order="left")
    per = pl.col("images") if of_prompts else pl.lit(1)
    return shared.select("image_id", chance=pl.col("chance") / per)


Values = NDArray[np.float64]

FOLDS = 5  # Parts of the units that people marked: the trust of each is learnt from the others

FEWEST_ERRORS = 5  # People who met fewer errors of the judge could have missed one: one more is then in the interval

SAME = 1e-9


@dataclass(frozen=True, slots=True)
class JudgedMean:
    """What people would say of all units on average.

    Attributes:
        corrected: the mean with its limits; `n` counts all units.
        judged: what the judge alone says, with limits that know nothing of its errors.
        alone: what people alone say; `n` counts the units that they marked.
        trust: how far the judge counts, from 0 to 1; the lambda of PPI++.
    """

    corrected: Interval
    judged: Interval
    alone: Interval
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
        >>> round(found.corrected.value, 2), round(found.judged.value, 2), found.alone.n
        (0.58, 0.75, 30)
    """
    check_confidence(confidence)
    values = finite_vector("judged", judged)
    answers = np.asarray(people, dtype=np.float64)
    asked = ~np.isnan(answers)
    if answers.shape != values.shape or not asked.any() or np.isinf(answers).any():
        raise argument_error(
            "people", f"one number for each of {len(values)} units, NaN where nobody was asked", people
        )
    units = Units(
        values, answers, *denominators(per, len(values), asked), asked, positive("weights", weights, len(values))
    )
    drawn = np.where(asked, units.weights, 0.0)
    drawn[asked] /= positive("chances", chances, len(values), where=asked)[asked]
    cluster = np.arange(len(values)) if clusters is None else np.unique(np.asarray(clusters), return_inverse=True)[1]
    limits = Limits(cluster, "these" if clusters is None else "population", confidence)
    return estimate(units, drawn / drawn.sum(), parts_of(cluster, asked, folds), limits)


@dataclass(frozen=True, slots=True)
class Units:
    """What judge and people say of units, float64 (n,) each: numerator and denominator, who was asked, weights."""

    judged: Values
    people: Values
    judged_per: Values
    people_per: Values
    asked: NDArray[np.bool_]
    weights: Values


@dataclass(frozen=True, slots=True)
class Limits:
    """How limits are put around a mean: by which clusters, int64 (n,), for which target, and how sure."""

    cluster: NDArray[np.int64]
    target: Target
    confidence: float

    def around(self, value: float, added: Values, units: NDArray[np.bool_], *, missed: float = 0.0) -> Interval:
        """Put limits around a value to which each unit adds something, float64 (n,); `units` are those that vary."""
        from scipy.special import stdtrit

        k = len(np.unique(self.cluster[units]))
        squares = float(np.square(np.bincount(self.cluster, weights=added)).sum())
        margin = float(stdtrit(k - 1, (1 + self.confidence) / 2)) * math.sqrt(k / (k - 1) * squares + missed**2)
        return Interval(value, value - margin, value + margin, int(units.sum()), self.target)


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


def estimate(units: Units, drawn: Values, fold: NDArray[np.int64], limits: Limits) -> JudgedMean:
    """Put the judge right.

    Args:
        units: what was said of them.
        drawn: float64, (n,): the weight of each unit among those that people marked, 0 for the others.
        fold: int64, (n,): which part a unit is in.
        limits: around all means.
    """
    asked, weights, every = units.asked, units.weights, np.ones(len(drawn), bool)
    people, per = np.where(asked, units.people, 0.0), np.where(asked, units.people_per, 0.0)
    first = divided(float(drawn @ people), float(drawn @ per))
    terms = people - first * per, units.judged - first * units.judged_per
    trusts, rest = np.empty(len(drawn)), float(weights[~asked].sum())
    for number in np.unique(fold):
        learnt = np.where(fold == number, 0.0, drawn) if fold.any() else drawn
        trusts[fold == number] = trust_in(*terms, learnt / learnt.sum(), weights, rest)
    over = float(drawn @ put_right(per, units.judged_per, trusts, weights))
    value = divided(float(drawn @ put_right(people, units.judged, trusts, weights)), over)
    left = people - value * per, units.judged - value * units.judged_per
    missed = float(drawn.max() * np.ptp(left[0][asked])) / over if errors_met(units) < FEWEST_ERRORS else 0.0
    under = float(weights @ units.judged_per)
    by_judge = divided(float(weights @ units.judged), under)
    return JudgedMean(
        replace(limits.around(value, added_by(*left, trusts, drawn, units) / over, asked, missed=missed), n=len(drawn)),
        limits.around(by_judge, weights * (units.judged - by_judge * units.judged_per) / under, every),
        limits.around(first, drawn * terms[0] / (drawn @ per), asked),
        float(drawn @ trusts) * (rest if rest > 0 else 1.0),
    )


def divided(over: float, under: float) -> float:
    """Divide sums."""
    if not under > 0:
        raise UsageError("a ratio is over a sum above 0", found=f"{under:g}")
    return float(over / under)


def trust_in(people: Values, judged: Values, learnt: Values, weights: Values, rest: float) -> float:
    """Give the trust with which the judge helps most, as a factor of what its units differ from all units by.

    PPI++ counts what marked units differ from the others by, so that its lambda is smaller by the share of these, and
    lies from 0 to 1.
    """
    n, centred = len(weights), judged - weights @ judged
    spread = float(weights @ centred**2) * n / (n - 1)
    together = float(learnt @ ((people - learnt @ people) * (judged - learnt @ judged)))
    return float(np.clip(together / spread, 0.0, 1 / rest if rest > 0 else 1.0)) if spread > SAME**2 else 0.0


def put_right(people: Values, judged: Values, trusts: Values, weights: Values) -> Values:
    """Take from what people say what the judge foretells of it, float64 (n,)."""
    return np.asarray(people - trusts * (judged - weights @ judged))


def added_by(people: Values, judged: Values, trusts: Values, drawn: Values, units: Units) -> Values:
    """Give what each unit adds to the estimate, float64 (n,): marked units and the others, each about their mean."""
    rectified = put_right(people, judged, trusts, units.weights)
    added = drawn * (rectified - drawn @ rectified)
    added += units.weights * float(drawn @ trusts) * (judged - units.weights @ judged)
    for side in (units.asked, ~units.asked):
        if side.any():
            added[side] -= added[side].mean()
    return np.asarray(added)


def errors_met(units: Units) -> int:
    """Count the units of which people say something else than the judge."""
    asked = units.asked
    other = np.abs(units.people - units.judged) > SAME
    return int((asked & (other | (np.abs(units.people_per - units.judged_per) > SAME))).sum())
