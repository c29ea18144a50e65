"""Order-2 diversity of artifacts, corrected pair by pair.

The mean of k(i, j)² over pairs of images is a U-statistic. Over all images it is known for the mapped labels, by
counting; its error is known for the audited pairs, by looking. The corrected mean is the mapped one over all
images plus the audited difference, and never needs a matrix of artifacts by artifacts.

An audit is spread over mapped labels: fewer of its pairs are of one mapped country than of all pairs, which is counted
and made good.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_design import Design
from culturekit.metrics.corrected.audit_gates import TakenAnswers, audited_answers
from culturekit.metrics.corrected.audited_counts import NONE
from culturekit.metrics.corrected.raters import RatedInterval, RaterModel, modelled_answers
from culturekit.metrics.corrected.rectified import CAUTION
from culturekit.metrics.diversity.kernels import Weights

__all__ = [
    "FoundArtifacts",
    "PairMean",
    "corrected_pair_mean",
    "found_artifacts",
    "means_of_images",
    "pair_diversity",
    "u_statistic",
]

COLUMNS = (("continent", "continent"), ("country", "country"), ("artifact", "artifact_id"))
"""Levels, and the columns of matches and answers that hold them."""

LEVELS = tuple(level for level, _ in COLUMNS)
ONE_COUNTRY = (0.0, 1.0, 0.0)
FEWEST_PER_PROMPT = 20

UNSEEN = 3.06
"""A share of 3 in n of images unlike all others is missed by n audited images 5 times in 100; it lowers the mean of k²
by twice its part. Over 1.96 this is the least standard error: no audit is without any. As much of 1 in n is left open
where no pair is alike: a mean of 6 in n² is missed as often."""

HELPED = 1.1
"""By how much the error of a helping mapping is larger yet: how far to trust it these images say."""


@dataclass(frozen=True, slots=True)
class PairMean:
    """The mean of k² over pairs of images of a prompt.

    Attributes:
        value: the mean.
        variance: of it, over draws of an audit.
        erring: how far errors of raters may move it, as a standard error.
        audited: how many images were audited.
    """

    value: float
    variance: float
    erring: float
    audited: int


@dataclass(frozen=True, slots=True)
class FoundArtifacts:
    """What images are mapped to and found to show: all kernels with artifacts share it.

    Attributes:
        images: prompt_id, and the numbers of what each image is mapped to and found to show on each level.
        raters: how often the answer that most people give is right.
        adrift: as in TakenAnswers.
    """

    images: pl.DataFrame
    raters: RaterModel
    adrift: Mapping[str, float]


def found_artifacts(
    matches: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Weights,
    pool: str | None = None,
    sample: pl.DataFrame | None = None,
    design: Design = "drawn",
) -> FoundArtifacts:
    """Take the answers that correct kernels with artifacts, or refuse the audit."""
    nearest = matches.filter(pl.col("rank") == 1).sort("image_id")
    taken = audited_answers(nearest, audit, weights=weights, pool=pool, sample=sample, design=design)
    return FoundArtifacts(numbered_levels(nearest, one_answer(taken.said)), modelled(taken), taken.adrift)


def pair_diversity(found: FoundArtifacts, *, weights: Weights, size: int, confidence: float) -> RatedInterval:
    """Give 1 / (1 + (size - 1) m) over prompts, m the corrected mean of k² over a prompt's pairs.

    The mapping helps in all prompts or in none: in each alone, what seems surer would often only seem so. The fraction
    bends: what scatters around m raises its mean by half the curvature times the variance, which is taken out.
    """
    prompts = found.images.partition_by("prompt_id", maintain_order=True, as_dict=True).items()
    tried = []
    for helped in (False, True):
        means = [
            corrected_pair_mean(rows.drop("prompt_id"), str(name), weights=weights, raters=found.raters, helped=helped)
            for (name,), rows in prompts
        ]
        values = np.array([1 / (1 + (size - 1) * mean.value) for mean in means])
        slopes, scatter = (size - 1) * values**2, np.array([mean.variance for mean in means])
        tried.append(
            (float(slopes**2 @ scatter), means, values, slopes, values - (size - 1) * slopes * values * scatter)
        )
    _, means, values, slopes, straight = min(tried, key=lambda each: each[0])
    audited = sum(mean.audited for mean in means)
    value, limits = float(np.clip(straight, 1 / size, 1.0).mean()), list[float]()
    for error in errors_of(slopes, means):
        low, high = limits_of(value, error, audited - len(means), confidence)
        limits += [max(low, 1 / size), min(high, 1.0)]
    low, high, *sure = limits
    return RatedInterval(value, low, high, audited, "these", *sure)


def errors_of(slopes: NDArray[np.float64], means: Sequence[PairMean]) -> tuple[float, float]:
    """Give the standard error of the mean over prompts, of which the audits are independent and the raters are not.

    Images unlike all others may have been missed in any prompt, but in all of them together no more than UNSEEN. The
    second is what it would be if how raters err were known.
    """
    drawn = CAUTION * math.sqrt(sum(slope**2 * mean.variance for slope, mean in zip(slopes, means, strict=True)))
    missed = max(
        slope * UNSEEN * max(mean.value, 1 / mean.audited) / mean.audited
        for slope, mean in zip(slopes, means, strict=True)
    )
    erring = sum(slope * mean.erring for slope, mean in zip(slopes, means, strict=True))
    own = max(drawn, missed)
    return math.hypot(own, erring) / len(means), own / len(means)


def limits_of(value: float, error: float, freedom: int, confidence: float) -> tuple[float, float]:
    """Give a t interval on the scale of log odds, or the plain one where its limit is lower.

    The mean over pairs is too low and too sure where few are alike by chance: what is true lies below more often.
    """
    from scipy.special import stdtrit

    margin = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    odds, far = (1 - value) / value, margin / (value * max(1 - value, margin, 1e-12))
    low, high = (1 / (1 + odds * math.exp(way * far)) for way in (1, -1))
    return min(low, value - margin), min(high, value + margin)


def modelled(taken: TakenAnswers) -> RaterModel:
    """Say how often the answer that most people give is right."""
    labels = taken.said["label"].rank("dense").cast(pl.Int64) - 1
    said = taken.said.select("image_id", "annotator", label=labels)
    return modelled_answers(said, taken.gold, labels=labels.n_unique())


def one_answer(audit: pl.DataFrame) -> pl.DataFrame:
    """Take the answer that most raters of an image give; ties go to the alphabetically first."""
    labels = [
        pl.when(pl.col("none_of_these")).then(pl.lit(NONE)).otherwise(pl.col(column)).alias(level)
        for level, column in COLUMNS
    ]
    answers = audit.select("image_id", *labels).group_by("image_id", *LEVELS).len()
    return answers.sort("image_id", "len", *LEVELS, descending=[False, True, False, False, False]).unique(
        "image_id", keep="first", maintain_order=True
    )


def numbered_levels(nearest: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Number what images are mapped to and found to show on each level; nothing is found where nobody looked."""
    mapped = [pl.col(column).fill_null(NONE).alias(level) for level, column in COLUMNS]
    both = nearest.select("image_id", "prompt_id", *mapped).join(
        said.select("image_id", *(pl.col(level).alias(f"{level}_found") for level in LEVELS)),
        on="image_id",
        how="left",
        maintain_order="left",
    )
    return both.select("prompt_id", pl.exclude("image_id", "prompt_id").rank("dense").cast(pl.Int64))


def corrected_pair_mean(
    images: pl.DataFrame, prompt: str, *, weights: Weights, raters: RaterModel, helped: bool
) -> PairMean:
    """Correct the mean of k² over the pairs of one prompt's images, by the numbers of their levels.

    Where it helps, the mapped part enters with the weight that makes the audited difference scatter least. Pairs of
    which an answer is wrong are between as similar as others and not similar: the mean lies between what was seen and
    that over right².
    """
    mapped, both = images.select(LEVELS).to_numpy().T, images.drop_nulls("artifact_found").to_numpy().T
    audited = both.shape[1]
    if audited < FEWEST_PER_PROMPT:
        raise UsageError(
            "too few images of a prompt were audited",
            where=f"prompt {prompt!r}",
            expected=f"at least {FEWEST_PER_PROMPT}",
            found=str(audited),
        )
    seen, true = (squared_similarities(levels, weights) for levels in (both[:3], both[3:]))
    alike = squared_similarities(both[:3], ONE_COUNTRY)
    of_images = means_of_images(mapped, weights)
    scatter = 4 * float(of_images.var(ddof=1)) / len(of_images)
    trust = weight_of_mapping(true, seen) if helped else 0.0
    mean, variance = u_statistic(true - trust * seen)
    variance = HELPED**2 * (variance + trust**2 * scatter) if helped else variance
    missing = float(means_of_images(mapped, ONE_COUNTRY).mean()) - u_statistic(alike)[0]
    mean += trust * float(of_images.mean()) + missing * gap_between(true - trust * seen, alike)
    seen_mean = max(mean, 0.0)
    more = (1 + raters.right**-2) / 2
    erring = seen_mean * math.hypot(more - 1, 2 * raters.doubt / raters.right**3)
    return PairMean(min(more * seen_mean, 1.0), more**2 * variance, erring, audited)


def squared_similarities(labels: NDArray[np.int64], weights: Weights) -> NDArray[np.float64]:
    """Compute k(i, j)² between images, float64 (n, n), with zeros on the diagonal, from the numbers of their levels."""
    kernel = sum(weight * (level[:, None] == level) for level, weight in zip(labels, weights, strict=True))
    squared = np.square(np.asarray(kernel, np.float64))
    np.fill_diagonal(squared, 0.0)
    return squared


def u_statistic(pairs: NDArray[np.float64]) -> tuple[float, float]:
    """Average over pairs, (n, n) with zeros on the diagonal, with the variance of the average.

    The jackknife counts twice what pairs have beyond their two images: once is taken out, once is there at least. Of
    images of many labels, all alike, that is nearly all.
    """
    n = len(pairs)
    rows = pairs.sum(axis=1)
    total = float(rows.sum())
    without = (total - 2 * rows) / ((n - 1) * (n - 2))
    jackknife = float((n - 1) / n * ((without - without.mean()) ** 2).sum())
    beyond = pairs - (rows[:, None] + rows) / (n - 2) + total / ((n - 1) * (n - 2))
    np.fill_diagonal(beyond, 0.0)
    of_pairs = 2 * float((beyond**2).sum()) / (n * (n - 3)) / (n * (n - 1))
    return total / (n * (n - 1)), max(jackknife - of_pairs, of_pairs)


def gap_between(pairs: NDArray[np.float64], alike: NDArray[np.float64]) -> float:
    """Give by how much pairs of one mapped country are above others, (n, n) with zeros on the diagonal."""
    same = alike.sum()
    others = len(pairs) * (len(pairs) - 1) - same
    if same == 0 or others == 0:
        return 0.0
    return float((pairs * alike).sum() / same - (pairs * (1 - alike)).sum() / others)


def weight_of_mapping(true: NDArray[np.float64], seen: NDArray[np.float64]) -> float:
    """Give the slope of an image's mean true similarity on its mapped one, between 0 and 1."""
    x, y = seen.sum(axis=1), true.sum(axis=1)
    spread = float(((x - x.mean()) ** 2).sum())
    return float(np.clip(((x - x.mean()) * (y - y.mean())).sum() / spread, 0.0, 1.0)) if spread > 0 else 0.0


def means_of_images(labels: NDArray[np.int64], weights: Weights) -> NDArray[np.float64]:
    """Average k² over the pairs of each image, by counting equal labels; no pair is looked at.

    k² is the sum over pairs of levels of the product of their weights times [equal on both].
    """
    total = np.zeros(labels.shape[1])
    for first, weight in zip(labels, weights, strict=True):
        for second, other in zip(labels, weights, strict=True):
            if weight * other > 0:
                both = first * (second.max() + 1) + second
                _, place, times = np.unique(both, return_inverse=True, return_counts=True)
                total += weight * other * (times - 1.0)[place]
    return np.asarray(total / (labels.shape[1] - 1))
