"""Corrected diversity: VS over batch size of what images really show, with an interval that holds."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.choices import BATCH_SIZE, CONFIDENCE
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.metrics.arguments import check_confidence, check_count, check_order, polars_frame
from culturekit.metrics.corrected.audit_gates import (
    MOST_UNPLACED,
    NOTHING,
    WIDER,
    Design,
    TakenAnswers,
    audited_answers,
    closest_level,
    of_batches,
)
from culturekit.metrics.corrected.audited_counts import (
    RatedInterval,
    RaterModel,
    audited_counts,
    label_column,
    modelled_answers,
)
from culturekit.metrics.corrected.batch_audit import AuditedBatches, batches_diversity
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity, expected_diversity
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts
from culturekit.metrics.corrected.rectified import CAUTION, Parted, parted, rectified
from culturekit.metrics.corrected.references import diversity_from_references
from culturekit.metrics.diversity.labels import Kernel, Weights, check_weights
from culturekit.metrics.statistics.intervals import Interval

_COLUMNS = (("continent", "continent"), ("country", "country"), ("artifact", "artifact_id"))
"""Levels, and the columns of matches and answers that hold them."""

LEVELS = tuple(level for level, _ in _COLUMNS)
_FOUND = tuple(f"{level}_found" for level in LEVELS)
_ONE_COUNTRY = (0.0, 1.0, 0.0)
_FEWEST_PER_PROMPT = 20

_UNSEEN = 3.06
"""A share of 3 in n of images unlike all others is missed by n audited images 5 times in 100; it lowers the mean of k²
by twice its part. Over 1.96 this is the least standard error: no audit is without any. As much of 1 in n is left open
where no pair is alike: a mean of 6 in n² is missed as often."""

_HELPED = 1.1  # By how much the error of a helping mapping is larger yet: how far to trust it these images say


@dataclass(frozen=True, slots=True)
class PairMean:
    """The mean of k² over pairs of images of a prompt."""

    value: float  # the mean
    variance: float  # of it, over draws of an audit
    erring: float  # how far errors of raters may move it, as a standard error
    audited: int  # how many images were audited


@dataclass(frozen=True, slots=True)
class FoundLevels:
    """What images are mapped to and found to show on every level: kernels of one closest level share it."""

    # image_id, prompt_id, and the numbers of what each image is mapped to and found to show on each level;
    # nothing is found where nobody looked
    images: pl.DataFrame
    raters: RaterModel  # how often the answer that most people give is right
    adrift: Mapping[str, float]  # as in TakenAnswers


def found_levels(nearest: pl.DataFrame, taken: TakenAnswers) -> FoundLevels:
    """Put beside what images are mapped to what most people say of them."""
    mapped = [pl.col(column).fill_null(NOTHING).alias(level) for level, column in _COLUMNS]
    answers = _one_answer(taken.answers).rename(dict(zip(LEVELS, _FOUND, strict=True))).drop("len")
    both = nearest.select("image_id", "prompt_id", *mapped).join(
        answers, on="image_id", how="left", maintain_order="left"
    )
    numbered = both.with_columns(pl.exclude("image_id", "prompt_id").rank("dense").cast(pl.Int64))
    labels = taken.answers.select("image_id", "annotator", label=pl.col("label").rank("dense").cast(pl.Int64) - 1)
    raters = modelled_answers(labels, taken.gold, labels=labels["label"].n_unique())
    return FoundLevels(numbered, raters, taken.adrift)


def _pair_diversity(found: FoundLevels, *, weights: Weights, size: int, confidence: float) -> RatedInterval:
    """Give 1 / (1 + (size - 1) m) over prompts, m the corrected mean of k² over a prompt's pairs.

    The mapping helps in all prompts or in none: in each alone, what seems surer would often only seem so. The fraction
    bends: what scatters around m raises its mean by half the curvature times the variance, which is taken out.
    """
    prompts = found.images.partition_by("prompt_id", maintain_order=True, as_dict=True).items()
    tried = []
    for helped in (False, True):
        means = [
            corrected_pair_mean(rows, str(name), weights=weights, raters=found.raters, helped=helped)
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
    for error in _errors_of(slopes, means):
        low, high = _limits_of(value, error, audited - len(means), confidence)
        limits += [max(low, 1 / size), min(high, 1.0)]
    low, high, *sure = limits
    return RatedInterval(value, low, high, audited, "these", *sure)


def _errors_of(slopes: NDArray[np.float64], means: Sequence[PairMean]) -> tuple[float, float]:
    """Give the standard error of the mean over prompts, of which the audits are independent and the raters are not.

    Images unlike all others may have been missed in any prompt, but in all of them together no more than UNSEEN. The
    second is what it would be if how raters err were known.
    """
    drawn = CAUTION * math.sqrt(sum(slope**2 * mean.variance for slope, mean in zip(slopes, means, strict=True)))
    missed = max(
        slope * _UNSEEN * max(mean.value, 1 / mean.audited) / mean.audited
        for slope, mean in zip(slopes, means, strict=True)
    )
    erring = sum(slope * mean.erring for slope, mean in zip(slopes, means, strict=True))
    larger = max(drawn, missed)
    return math.hypot(larger, erring) / len(means), larger / len(means)


def _limits_of(value: float, error: float, freedom: int, confidence: float) -> tuple[float, float]:
    """Give a t interval on the scale of log odds, or the plain one where its limit is lower.

    The mean over pairs is too low and too sure where few are alike by chance: what is true lies below more often.
    """
    from scipy.special import stdtrit

    margin = float(stdtrit(freedom, (1 + confidence) / 2)) * error
    odds, far = (1 - value) / value, margin / (value * max(1 - value, margin, 1e-12))
    low, high = (1 / (1 + odds * math.exp(way * far)) for way in (1, -1))
    return min(low, value - margin), min(high, value + margin)


def _one_answer(audit: pl.DataFrame) -> pl.DataFrame:
    """Take the answer that most raters of an image give; ties go to the alphabetically first."""
    labels = [
        pl.when(pl.col("none_of_these")).then(pl.lit(NOTHING)).otherwise(pl.col(column)).alias(level)
        for level, column in _COLUMNS
    ]
    answers = audit.select("image_id", *labels).group_by("image_id", *LEVELS).len()
    return answers.sort("image_id", "len", *LEVELS, descending=[False, True, False, False, False]).unique(
        "image_id", keep="first", maintain_order=True
    )


def corrected_pair_mean(
    images: pl.DataFrame, prompt: str, *, weights: Weights, raters: RaterModel, helped: bool
) -> PairMean:
    """Correct the mean of k² over the pairs of one prompt's images, by the numbers of their levels.

    Where it helps, the mapped part enters with the weight that makes the audited difference scatter least. Pairs of
    which an answer is wrong are between as similar as others and not similar: the mean lies between what was seen and
    that over right².
    """
    mapped, looked_at = images.select(LEVELS).to_numpy().T, images.drop_nulls("artifact_found")
    audited = looked_at.height
    if audited < _FEWEST_PER_PROMPT:
        raise UsageError(
            "too few images of a prompt were audited",
            where=f"prompt {prompt!r}",
            expected=f"at least {_FEWEST_PER_PROMPT}, or whole batches of some prompts (drawing=batches)",
            found=str(audited),
        )
    both = [looked_at.select(columns).to_numpy().T for columns in (LEVELS, _FOUND)]
    seen, true = (squared_similarities(levels, weights) for levels in both)
    alike = squared_similarities(both[0], _ONE_COUNTRY)
    of_images = means_of_images(mapped, weights)
    scatter = 4 * float(of_images.var(ddof=1)) / len(of_images)
    trust = _weight_of_mapping(true, seen) if helped else 0.0
    mean, variance = u_statistic(true - trust * seen)
    variance = _HELPED**2 * (variance + trust**2 * scatter) if helped else variance
    missing = float(means_of_images(mapped, _ONE_COUNTRY).mean()) - u_statistic(alike)[0]
    mean += trust * float(of_images.mean()) + missing * _gap_between(true - trust * seen, alike)
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


def _gap_between(pairs: NDArray[np.float64], alike: NDArray[np.float64]) -> float:
    """Give by how much pairs of one mapped country are above others, (n, n) with zeros on the diagonal."""
    same = alike.sum()
    others = len(pairs) * (len(pairs) - 1) - same
    if same == 0 or others == 0:
        return 0.0
    return float((pairs * alike).sum() / same - (pairs * (1 - alike)).sum() / others)


def _weight_of_mapping(true: NDArray[np.float64], seen: NDArray[np.float64]) -> float:
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
                _, group, times = np.unique(both, return_inverse=True, return_counts=True)
                total += weight * other * (times - 1.0)[group]
    return np.asarray(total / (labels.shape[1] - 1))


Method: TypeAlias = Literal["audit", "references"]

_DRAWS = 300
_PER_PROMPT, _RIGHT = 2, 0.8
_FRAME = "a table, as a frame of polars or pandas"
_ANSWERED = ("image_id", "artifact_id", "country", "continent")
_LARGEST = 12  # The largest batch: the number of kinds of batches grows fast


def vendi_corrected(
    matches: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Kernel,
    q: float = 1.0,
    size: int = BATCH_SIZE,
    method: Method = "audit",
    rng: np.random.Generator,
    confidence: float = CONFIDENCE,
    pool: str | None = None,
    references: pl.DataFrame | None = None,
    sample: pl.DataFrame | None = None,
    design: Design = "drawn",
    second: pl.DataFrame | None = None,
) -> Interval:
    """Estimate the mean of VS_q/size over batches of what a model's images really show.

    Batches are of one prompt each, and prompts count alike; one with fewer images than a batch counts nothing.

    Kernels of continents and countries take every order; one with artifacts needs q=2, and gives
    1 / (1 + (size - 1) m), m the mean of k(i, j)² over pairs: the order-2 diversity of a batch of average pairs. Where
    the sample is of whole batches, every kernel takes every order.

    Args:
        matches: MATCHES of one model, and usually of one concept; the nearest match of an image counts.
        audit: AUDITS of some of those images, drawn by `audit_sample`; others are not looked at.
        weights: of the same continent, the same country, the same artifact, or a name, as for `vendi`.
        q: the order, above 0.
        size: images per batch, at most 12.
        method: `audit` corrects by what people found. `references` corrects by how held-out reference images
            are mapped, only where the audit is large enough to see a bias of .02 and sees none.
        rng: draws the scatter of the estimate.
        confidence: how often such intervals are to hold the truth.
        pool: whose answers count, when several pools of people answered.
        references: for `references`: columns `mapped`, `true`: labels of held-out reference images, on the
            level of the kernel; `true` is null for pictures that show no culture, such as the floor of a diagnosis.
        sample: AUDIT_SAMPLE, the drawn images: answers about others, and parts without answers, are refused.
        design: `unknown` takes answers about images that nobody drew evenly; the interval then promises nothing.
        second: MATCHES of the same images by another instrument, such as another encoder or the tags of a vision model:
            with kernels of continents and countries it makes the interval narrower. How far both err alike is learnt
            from the audit.

    Returns:
        The corrected diversity, its interval, and how many images were audited.

    Raises:
        UsageError: an argument breaks its rule, or the audit cannot carry a correction.
    """
    check_choice("method", method, ("audit", "references"))
    images = CorrectedImages(matches, audit, rng=lambda _: rng, pool=pool, sample=sample, design=design, second=second)
    by_audit = images.vendi(weights, q=q, size=size, confidence=confidence)
    known = checked_weights(weights, q, size, confidence)
    if method == "audit" or (known[2] > 0 and q == 2) or of_batches(sample):
        return by_audit
    if references is None:
        raise argument_error("references", "the labels of held-out reference images", references)
    counts, _ = images.imputed(known)
    diversity = mean_of_labels(counts.parents, known, q=q, size=size)
    return diversity_from_references(
        counts, references, diversity, draws=_DRAWS, confidence=confidence, rng=rng, by_audit=by_audit
    )


class CorrectedImages:
    """The images of a model and what people say of some: kernels of the same level share what is imputed."""

    def __init__(
        self,
        matches: pl.DataFrame,
        audit: pl.DataFrame,
        *,
        rng: Callable[[str], np.random.Generator],
        pool: str | None = None,
        sample: pl.DataFrame | None = None,
        design: Design = "drawn",
        second: pl.DataFrame | None = None,
    ) -> None:
        """Take the tables of `vendi_corrected`, and what makes the draws of a level, or of a kernel, by its name."""
        columns = {"model", "rank", *_ANSWERED}
        self.second = None if second is None else _of_one_model(with_columns("second", second, columns))
        self.matches = _of_one_model(with_columns("matches", matches, {"model", "rank", *_ANSWERED}))
        self.audit = with_columns("audit", audit, {"annotator", "none_of_these", *_ANSWERED})
        self.rng = rng
        self.asked: dict[str, Any] = {"pool": pool, "sample": sample, "design": design}
        self.found: dict[str, FoundLevels] = {}
        self.levels: dict[str, tuple[AuditedCounts, Parted]] = {}

    def vendi(self, weights: Kernel, *, q: float, size: int, confidence: float) -> RatedInterval:
        """Correct one kernel, as `vendi_corrected` says."""
        known = checked_weights(weights, q, size, confidence)
        batches = of_batches(self.asked["sample"])
        if batches or (known[2] > 0 and q == 2):
            level = closest_level(known)[0]
            if level not in self.found:
                nearest = self.matches.filter(pl.col("rank") == 1).sort("image_id")
                taken = audited_answers(nearest, self.audit, weights=known, **self.asked)
                self.found[level] = found_levels(nearest, taken)
            found = self.found[level]
            _refuse_adrift(found.adrift, known)
            if not batches:
                return _pair_diversity(found, weights=known, size=size, confidence=confidence)
            whole, rng = _whole_batches(found, level, self.asked["sample"], size), self.rng(str(known))
            return batches_diversity(whole, weights=known, q=q, confidence=confidence, rng=rng)
        counts, imputed = self.imputed(known)
        _refuse_adrift(counts.adrift, known)
        diversity, rng = mean_of_labels(counts.parents, known, q=q, size=size), self.rng(str(known))
        return rectified(counts, imputed, diversity, confidence=confidence, rng=rng)

    def imputed(self, weights: Weights) -> tuple[AuditedCounts, Parted]:
        """Count and impute the labels that a kernel looks at, once."""
        level = label_column(weights)
        if level not in self.levels:
            counts = audited_counts(self.matches, self.audit, weights=weights, second=self.second, **self.asked)
            _refuse_lone_images(counts)
            self.levels[level] = counts, parted(counts, rng=self.rng(level))
        return self.levels[level]


def _whole_batches(found: FoundLevels, level: str, sample: pl.DataFrame, size: int) -> AuditedBatches:
    """Take the batches of a sample of which every image has an answer that names the closest level of a kernel."""
    images = found.images.sort("prompt_id", "image_id")
    prompt = images["prompt_id"].fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    answered = images.with_row_index("row").drop_nulls(f"{level}_found").select("image_id", "row")
    whole = sample.join(answered, on="image_id").sort("batch", "image_id")
    whole = whole.group_by("batch", maintain_order=True).agg("row").filter(pl.col("row").list.len() == size)
    rows = np.array(whole["row"].to_list(), np.int64).reshape(-1, size)
    mapped, shown = (images.select(columns).fill_null(0).to_numpy() for columns in (LEVELS, _FOUND))
    return AuditedBatches(mapped, prompt, rows, shown, found.raters)


def _refuse_lone_images(counts: AuditedCounts) -> None:
    """Refuse many prompts of about one audited image each, where the mapping errs often.

    How alike the images of a prompt are is then known from the mapping alone: simulated intervals held in 67 to 90 of
    100 cases where it is right 65 times in 100, in 95 where it is right 85 times.
    """
    found, shown = counts.found, counts.found.shown.argmax(axis=1)
    something = shown != counts.none
    if counts.instruments is not None or len(shown) >= _PER_PROMPT * len(counts.mapped) or not something.any():
        return
    right = float((shown == found.mapped)[something].mean())
    if right < _RIGHT:
        raise UsageError(
            "one audited image a prompt does not tell how alike the images of a prompt are",
            where=f"{len(counts.mapped)} prompts, and a mapping right in {right:.0%} of the audited images",
            expected=f"{_PER_PROMPT} audited images a prompt on average, or a mapping right in {_RIGHT:.0%}",
            found=f"{len(found.prompt)} audited images",
            hint="Audit whole batches (drawing=batches), or give a second instrument.",
        )


def _refuse_adrift(adrift: Mapping[str, float], weights: Weights) -> None:
    """Refuse a kernel of wider places than many answers name: what lies nowhere would be like nothing else."""
    for level, weight in zip(WIDER, weights[:2], strict=True):
        if weight > 0 and adrift.get(level, 0) > MOST_UNPLACED:
            raise UsageError(
                f"an audit does not say the {level} of what it names",
                where=f"{adrift[level]:.0%} of the audited images",
                expected=f"a {level} for all but {MOST_UNPLACED:.0%} of them",
                found="places that no image is mapped to",
            )


def checked_weights(weights: Kernel, q: float, size: int, confidence: float) -> Weights:
    """Check what is asked for, and read the kernel."""
    check_order(q)
    check_count("size", size)
    if not 2 <= size <= _LARGEST:
        raise argument_error("size", f"between 2 and {_LARGEST}", size)
    check_confidence(confidence)
    return check_weights(weights)


def mean_of_labels(parents: NDArray[np.int64], weights: Weights, *, q: float, size: int) -> ExpectedDiversity:
    """Prepare the mean diversity of batches as a function of the shares of labels, each in its continent."""
    continent, country, _ = weights
    # With continents alone the labels are the continents.
    outer, inner = (continent, country) if country > 0 else (0.0, 1.0)
    return expected_diversity(size=size, continent=outer, country=inner, q=q, parents=parents.tolist())


def with_columns(name: str, table: pl.DataFrame, needed: set[str]) -> pl.DataFrame:
    """Read a table that has at least some columns."""
    frame = polars_frame(name, _FRAME, table)
    if lacking := needed - set(frame.columns):
        raise argument_error(name, f"a table with the columns {', '.join(sorted(lacking))}, too", frame.columns)
    return frame


def _of_one_model(matches: pl.DataFrame) -> pl.DataFrame:
    """Refuse matches of several models: each errs in its own way."""
    models = matches["model"].unique().sort().to_list()
    if len(models) != 1:
        raise argument_error("matches", "of one model", ", ".join(map(str, models)) or "no rows")
    return matches
