"""Correction by references: how held-out pictures of known artifacts are mapped, instead of an audit alone.

The confusion of the references says how each true label is mapped; EM finds the shares that explain what the
model's images were mapped to (maximum likelihood under label shift). It rests on generated images being mapped
like references, which they need not be: the audit tests that, and a rejection withholds the result.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics.corrected.audit_gates import NOTHING
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, over_prompts
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts
from culturekit.metrics.statistics.intervals import Interval

FEWEST_FOR_TEST = 150  # With fewer audited images a drift that matters would often pass the test

LEVEL = 0.05
TOLERATED, POWER = 0.02, 0.8  # The bias that the audit must be able to see, and how often

PERMUTATIONS = 999
EM_ROUNDS = 500
SETTLED = 1e-8
SMOOTHING = 0.5  # Imagined references per true label, spread over the mapped labels: no mapping is impossible

LEAST_APART = 0.05
"""The least singular value of how references are mapped: below, some mixture of labels is mapped like another one."""

STRONGEST = 1.2  # Beyond this skewness the correction, a cubic in it, would say more than a few hundred draws know


@dataclass(frozen=True, slots=True)
class Homogeneity:
    """Whether audited images are mapped as references of the same label are."""

    statistic: float  # likelihood ratio of two confusions against one, summed over true labels
    p: float  # how often it is as large when references and audited images are exchanged at random
    audited: int  # images behind it

    @property
    def rejected(self) -> bool:
        """Tell whether references and generated images are mapped differently."""
        return self.p < LEVEL


def diversity_from_references(
    counts: AuditedCounts,
    references: pl.DataFrame,
    diversity: ExpectedDiversity,
    *,
    draws: int,
    confidence: float,
    rng: np.random.Generator,
    by_audit: Interval,
) -> Interval:
    """Estimate the diversity from the references' confusion, unless the audit contradicts it or could not.

    `by_audit` is what the audit alone gives.
    """
    confusion = confusion_of(references, counts.labels)
    check_references(counts, confusion)
    check_told_apart(confusion)
    check_power((by_audit.high - by_audit.low) / 2, counts.audited, confidence)
    test = homogeneity_test(counts, confusion, rng=rng)
    if test.rejected:
        raise UsageError(
            "the audit shows that these images are not mapped like the references, which cannot correct them then",
            expected=f"p of at least {LEVEL} in the test of homogeneity",
            found=f"p = {test.p:.3f}",
            hint='Use method="audit", which does not assume it.',
        )
    shares = np.stack([shares_by_em(row, confusion) for row in counts.mapped])
    drawn = drawn_by_em(counts, confusion, draws=draws, rng=rng)
    plain = float(over_prompts(diversity, shares[None])[0])
    values = over_prompts(diversity, drawn)
    value = float(np.clip(plain - (values.mean() - plain), 1 / diversity.size, 1.0))
    low, high = skewed_limits(
        value,
        values,
        freedom=max(float(confusion.sum()) - len(confusion), 1.0),
        confidence=confidence,
        lowest=1 / diversity.size,
        highest=1.0,
    )
    apart = math.hypot((high - low) / 2, (by_audit.high - by_audit.low) / 2)
    check_power(apart, counts.audited, confidence)
    if abs(value - by_audit.value) > apart:
        raise UsageError(
            "the audit contradicts what the references give",
            expected=f"a value at most {apart:.3f} from the audit's {by_audit.value:.3f}",
            found=f"{value:.3f}",
            hint='Use method="audit".',
        )
    return Interval(value, low, high, counts.audited, "these")


def check_references(counts: AuditedCounts, confusion: NDArray[np.float64]) -> None:
    """Refuse references that lack what people found: how it is mapped is not known, so it would never be found."""
    found = counts.audit.sum(axis=0)
    lacking = [
        label
        for label, times, known in zip(counts.labels, found, confusion.sum(axis=1), strict=True)
        if times >= 1 > known
    ]
    if lacking:
        raise UsageError(
            "people found labels of which there are no references",
            expected="references of each, also of pictures that show nothing",
            found=", ".join(lacking[:5]),
            hint='Add pictures of the floor of a diagnosis, whose true label is null; or use method="audit".',
        )


def check_told_apart(confusion: NDArray[np.float64]) -> None:
    """Refuse a mapping by which no number of images could tell the shares of true labels.

    A mapping that never says none of these is one where pictures of nothing are among the labels: these are mapped like
    some mixture of the others.
    """
    known = confusion[confusion.sum(axis=1) >= 1]
    rows = known / known.sum(axis=1, keepdims=True)
    least = 0.0 if len(rows) > (rows.sum(axis=0) > 0).sum() else float(np.linalg.svd(rows, compute_uv=False)[-1])
    if least < LEAST_APART:
        raise UsageError(
            "what images are mapped to does not tell their true labels apart, so references cannot correct it",
            expected=f"references of which no label is mapped like a mixture of others (at least {LEAST_APART} apart)",
            found=f"{least:.3f}, {len(rows)} true labels, {int((rows.sum(axis=0) > 0).sum())} mapped ones",
            hint='Use method="audit", or a mapping that abstains from pictures of nothing.',
        )


def check_power(margin: float, audited: int, confidence: float) -> None:
    """Refuse what would pass references which bias by TOLERATED more than one time in five.

    `margin` is the half width of the difference between what the audit and the references give, or of a part of it.
    """
    from scipy.special import ndtri

    seen = margin / float(ndtri((1 + confidence) / 2)) * float(ndtri(1 - LEVEL / 2) + ndtri(POWER))
    if seen > TOLERATED:
        raise UsageError(
            "too few images were audited to tell whether references can stand for them",
            expected=f"audited images and references that see a bias of {TOLERATED} in {POWER:.0%} of cases",
            found=f"{audited} audited images, which see a bias of {seen:.3f}",
            hint='Use method="audit": it needs no references.',
        )


def confusion_of(references: pl.DataFrame, labels: tuple[str, ...]) -> NDArray[np.float64]:
    """Count references by true and mapped label, float64 (n_labels, n_labels); labels of no image are left out.

    No label is that of showing nothing: the floor pictures of a diagnosis are references of it.
    """
    for column in ("mapped", "true"):
        if column not in references.columns:
            raise UsageError(
                "not a table of references", expected="columns mapped and true", found=", ".join(references.columns)
            )
    named = references.select(pl.col("mapped", "true").cast(pl.String).fill_null(NOTHING))
    known = named.filter(pl.col("mapped").is_in(labels), pl.col("true").is_in(labels))
    table = np.zeros((len(labels), len(labels)))
    number = {label: row for row, label in enumerate(labels)}
    for true, mapped, count in known.group_by("true", "mapped").len().sort("true", "mapped").iter_rows():
        table[number[true], number[mapped]] = count
    return table


def shares_by_em(mapped: NDArray[np.int64], confusion: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find the shares of true labels, (n_labels,), that best explain how many images each label was mapped to.

    A label without references is taken to be mapped to itself.
    """
    chances = confusion + SMOOTHING * np.eye(len(confusion)) + 1e-9
    chances = chances / chances.sum(axis=1, keepdims=True)
    shares = np.full(len(mapped), 1 / len(mapped))
    observed = mapped / mapped.sum()
    for _ in range(EM_ROUNDS):
        joint = shares[:, None] * chances
        after = (joint / joint.sum(axis=0, keepdims=True)) @ observed
        if np.abs(after - shares).max() < SETTLED:
            return np.asarray(after)
        shares = after
    return shares


def drawn_by_em(
    counts: AuditedCounts, confusion: NDArray[np.float64], *, draws: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Draw images and references again, float64 (draws, n_prompts, n_labels)."""
    shares = np.empty((draws, *counts.mapped.shape))
    totals = confusion.sum(axis=1).astype(np.int64)
    chances = np.divide(confusion, totals[:, None], out=np.zeros_like(confusion), where=totals[:, None] > 0)
    chances[:, -1] = np.maximum(0.0, 1.0 - chances[:, :-1].sum(axis=1))
    for draw in range(draws):
        again = np.stack([rng.multinomial(total, row) for total, row in zip(totals, chances, strict=True)])
        for prompt, row in enumerate(counts.mapped):
            images = rng.multinomial(int(row.sum()), row / row.sum())
            shares[draw, prompt] = shares_by_em(images, again.astype(np.float64))
    return shares


def homogeneity_test(
    counts: AuditedCounts,
    confusion: NDArray[np.float64],
    *,
    rng: np.random.Generator,
    permutations: int = PERMUTATIONS,
) -> Homogeneity:
    """Test whether audited images are mapped like references of the same true label, by permutation within labels."""
    if counts.audited < FEWEST_FOR_TEST:
        raise UsageError(
            "too few images were audited to tell whether references can stand for them",
            expected=f"at least {FEWEST_FOR_TEST}",
            found=str(counts.audited),
        )
    audited = np.rint(counts.audit.T).astype(np.int64)
    both = [row for row in range(len(audited)) if audited[row].sum() > 0 and confusion[row].sum() > 0]
    if not both:
        raise UsageError("no audited label has references", expected="references of the labels that the audit found")
    observed = sum(ratio(audited[row], confusion[row].astype(np.int64)) for row in both)
    as_large = 0
    for _ in range(permutations):
        again = 0.0
        for row in both:
            pooled = audited[row] + confusion[row].astype(np.int64)
            drawn = rng.multivariate_hypergeometric(pooled, int(audited[row].sum()))
            again += ratio(drawn, pooled - drawn)
        as_large += again >= observed - 1e-12
    return Homogeneity(float(observed), (as_large + 1) / (permutations + 1), int(audited[both].sum()))


def ratio(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Give the log likelihood ratio of two multinomials against one, times two."""
    pooled = first + second
    return 2 * (log_likelihood(first) + log_likelihood(second) - log_likelihood(pooled))


def log_likelihood(counts: NDArray[np.int64]) -> float:
    """Give the log likelihood of counts under their own shares."""
    positive = counts[counts > 0]
    return float((positive * np.log(positive / positive.sum())).sum())


def skewed_limits(
    value: float, draws: NDArray[np.float64], *, freedom: float, confidence: float, lowest: float, highest: float
) -> tuple[float, float]:
    """Give the limits of a t interval corrected for skewness, kept within what is possible.

    A t interval misses more often on one side when the estimate is skewed, for then its standard error goes
    up and down with it. Hall's cubic (1992) takes that out: T becomes T + g T²/3 + g² T³/27 + g/6, which is
    monotone, so that its inverse bounds the value.

    Args:
        value: the estimate.
        draws: how the estimate scatters, float64 (n,), around any centre.
        freedom: degrees of freedom behind the scatter.
        confidence: how often the limits are to hold the truth.
        lowest: no value is below.
        highest: no value is above.
    """
    from scipy.special import stdtrit

    error = float(draws.std(ddof=1))
    if error == 0:
        return value, value
    centred = draws - draws.mean()
    skewness = float(np.clip((centred**3).mean() / (centred**2).mean() ** 1.5, -STRONGEST, STRONGEST))
    t = float(stdtrit(freedom, (1 + confidence) / 2))
    low, high = value - error * untransformed(t, skewness), value - error * untransformed(-t, skewness)
    return max(lowest, low), min(highest, high)


def untransformed(point: float, skewness: float) -> float:
    """Invert Hall's cubic at a point."""
    if abs(skewness) < 1e-3:
        return point
    return 3 / skewness * (math.cbrt(1 + skewness * (point - skewness / 6)) - 1)
