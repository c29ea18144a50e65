"""Mapped and audited labels as counts: all that the correction looks at, however many images there are."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.errors import UsageError, argument_error
from culturekit.metrics.corrected.audit_gates import NOTHING, Design, audited_answers, lone_continent
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts, Findings
from culturekit.metrics.diversity.labels import Weights
from culturekit.metrics.statistics.intervals import Interval

# What an image shows when people err: the model of Dawid and Skene, one coin each, held by gold items.
#
# Rater r is right with probability a_r; a wrong answer falls on the other labels as often as those occur. EM turns
# answers into a share of the image per label, and tells how good each rater is, from gold items and from images that
# several people looked at. The answer that is likeliest is then right in some share of images, which is known about.

ROUNDS = 200
SETTLED = 1e-9
TAIL = 0.025

USUAL, SEEN = 0.9, 10
"""Before anything is known of raters they are taken to be right nine times in ten, as if seen in ten answers."""


@dataclass(frozen=True, slots=True)
class RaterModel:
    """What the answers say together."""

    # float64, (n_images, n_labels): the probability of each label, in the order of the image ids
    shares: NDArray[np.float64]
    accuracy: NDArray[np.float64]  # float64, (n_raters,): how often each rater is right; 1 where nothing tells
    agreement: float  # share of pairs of answers to one image that agree; NaN when no image has two answers
    right: float = 1.0  # in what share of images the likeliest label is right
    doubt: float = 0.0  # the standard error of that


@dataclass(frozen=True, slots=True)
class RatedInterval(Interval):
    """What people's answers tell; `sure_low` and `sure_high` are its limits if how raters err were known."""

    sure_low: float
    sure_high: float


def added_distance(parts: Iterable[tuple[float, float, float]]) -> float:
    """Add how far limits of some parts lie from their values, each by its share: (share, distance, the same if sure).

    Parts are audited apart, so what is sure adds in squares. The same people answered in all of them: what their errors
    add goes the same way everywhere, and adds as it is.
    """
    known = [(share * distance, share * min(sure, distance)) for share, distance, sure in parts]
    shared = math.fsum(math.sqrt(distance**2 - sure**2) for distance, sure in known)
    return math.hypot(shared, *(sure for _, sure in known))


def over_concepts(parts: Sequence[tuple[int, RatedInterval]], size: int) -> Interval:
    """Average concepts by their numbers of prompts; the audits are independent, those who answered are not.

    Nor are values above the least diversity there is: where a limit lies at an end, all errors go one way.
    """
    total = sum(prompts for prompts, _ in parts)
    shares = [(prompts / total, answer) for prompts, answer in parts]
    value = sum(share * answer.value for share, answer in shares)
    below = added_distance(
        (share, one.value - one.low, 0.0 if one.low <= 1 / size else one.value - one.sure_low) for share, one in shares
    )
    above = added_distance(
        (share, one.high - one.value, 0.0 if one.high >= 1 else one.sure_high - one.value) for share, one in shares
    )
    low, high = max(value - below, 1 / size), min(value + above, 1.0)
    return Interval(value, low, high, sum(answer.n for _, answer in shares), "these")


def rater_model(
    images: NDArray[np.int64],
    raters: NDArray[np.int64],
    answers: NDArray[np.int64],
    *,
    labels: int,
    gold: NDArray[np.int64] | None = None,
) -> RaterModel:
    """Model the answers of raters.

    Args:
        images: int64, (n,): which image an answer is about, from 0.
        raters: int64, (n,): who answered, from 0.
        answers: int64, (n,): the label, from 0.
        labels: how many labels there are.
        gold: int64, (n_raters, 2): gold items that each rater answered, and those answered rightly.

    Returns:
        The probability of each label of each image, and the accuracy of each rater.
    """
    if not len(images) == len(raters) == len(answers) or len(answers) == 0:
        raise argument_error("answers", "of the length of images and raters, and not empty", len(answers))
    if labels < 1 or answers.min() < 0 or answers.max() >= labels:
        raise argument_error("labels", "more than the largest answer", labels)
    count, people = int(images.max()) + 1, int(raters.max()) + 1
    asked = np.zeros((people, 2), np.int64) if gold is None else gold
    votes = np.zeros((count, labels))
    np.add.at(votes, (images, answers), 1.0)
    agreement = pairs_that_agree(votes)
    shares = votes / votes.sum(axis=1, keepdims=True)
    held = votes.sum(axis=1)[images] > 1
    seen = int(held.sum() + asked[:, 0].sum())
    if labels == 1 or seen == 0:
        return RaterModel(shares, np.ones(people), agreement)
    for _ in range(ROUNDS):
        before = shares
        right = np.bincount(raters[held], weights=shares[images, answers][held], minlength=people) + asked[:, 1]
        known = np.bincount(raters[held], minlength=people) + asked[:, 0]
        accuracy = (right + USUAL * SEEN) / (known + SEEN)
        shares = posterior(shares.mean(axis=0), accuracy, images, raters, answers, count)
        if np.abs(shares - before).max() < SETTLED:
            break
    likeliest = float(shares.max(axis=1).mean())
    return RaterModel(shares, accuracy, agreement, likeliest, doubt_of(likeliest, seen + SEEN))


def doubt_of(right: float, seen: int) -> float:
    """Give the standard error of a share of so many answers, by its lower limit: few errors seen may be many errors.

    The limit is Jeffreys's. Ten gold items that are all right are met by one in five of the raters who are right in 85
    of 100: intervals of these held the truth in 30 of 36 simulated cases without the halves, in 33 with them.
    """
    from scipy.special import betaincinv, ndtri

    lowest = betaincinv(right * seen + 0.5, (1 - right) * seen + 0.5, TAIL)
    return float((right - lowest) / -ndtri(TAIL))


def posterior(
    prior: NDArray[np.float64],
    accuracy: NDArray[np.float64],
    images: NDArray[np.int64],
    raters: NDArray[np.int64],
    answers: NDArray[np.int64],
    count: int,
) -> NDArray[np.float64]:
    """Give the probability of each label of each image from the answers to it."""
    frequent = np.maximum(prior, 1e-6)
    right = np.log(accuracy[raters])
    # A wrong answer falls on label a with the frequency of a among the labels that are not the true one.
    wrong = np.log1p(-np.minimum(accuracy[raters], 1 - 1e-9)) + np.log(frequent[answers])
    logs = np.tile(np.log(frequent), (count, 1))
    np.add.at(logs, images, wrong[:, None] - np.log(np.maximum(1 - frequent, 1e-6))[None, :])
    np.add.at(logs, (images, answers), right - wrong + np.log(np.maximum(1 - frequent[answers], 1e-6)))
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def pairs_that_agree(votes: NDArray[np.float64]) -> float:
    """Give the share of pairs of answers to one image that agree."""
    answers = votes.sum(axis=1)
    pairs = float((answers * (answers - 1)).sum())
    return float((votes * (votes - 1)).sum()) / pairs if pairs else float("nan")


def modelled_answers(found: pl.DataFrame, gold: pl.DataFrame, *, labels: int) -> RaterModel:
    """Model answers (image_id, annotator, label), images in the order of their ids.

    One answer per image is taken as it is where no gold items (annotator, asked, right) tell how often that is right.
    """
    table = found.sort("image_id", "annotator")
    images = table["image_id"].rle_id().to_numpy().astype(np.int64)
    raters = table["annotator"].rank("dense").to_numpy().astype(np.int64) - 1
    people = table.select("annotator").unique().sort("annotator").join(gold, on="annotator", how="left")
    asked = people.select(pl.col("asked", "right").fill_null(0).cast(pl.Int64)).to_numpy()
    return rater_model(images, raters, table["label"].to_numpy().astype(np.int64), labels=labels, gold=asked)


DIGITS = 9
"""Digits of what people say of an image that count: labels that are equally likely stay so, and are drawn alike."""


def audited_counts(
    matches: pl.DataFrame,
    audit: pl.DataFrame,
    *,
    weights: Weights,
    pool: str | None = None,
    sample: pl.DataFrame | None = None,
    design: Design = "drawn",
    second: pl.DataFrame | None = None,
) -> AuditedCounts:
    """Count the nearest matches of one model by label, and the audited ones by label and finding.

    Args:
        matches: MATCHES of one model; only rank 1 counts.
        audit: AUDITS; rows of images that are not among the matches are not looked at, and answers that name a
            continent only say nothing where countries count.
        weights: which levels count: countries or continents.
        pool: whose answers count; needed only when several pools answered.
        sample: AUDIT_SAMPLE: which images people were asked about.
        design: whether the audited images are known to be drawn evenly.
        second: MATCHES of the same images by another instrument.
    """
    column = label_column(weights)
    nearest = matches.filter(pl.col("rank") == 1)
    taken = audited_answers(nearest, audit, weights=weights, pool=pool, sample=sample, design=design)
    others = None if second is None else of_same_images(second.filter(pl.col("rank") == 1), nearest)
    places = [nearest] if others is None else [nearest, others]
    parents = continents_of(pl.concat([one.select(_PLACES) for one in places]), taken.answers, column)
    labels = tuple(sorted(parents))
    number = pl.Enum(labels)
    images, instruments = numbered_images(nearest, labels, column), None
    answered = taken.answers.select("image_id", "annotator", label=pl.col("label").cast(number).to_physical())
    model = modelled_answers(answered, taken.gold, labels=len(labels))
    seen = images.join(answered, on="image_id", how="semi", maintain_order="left")
    shown, codes = model.shares.round(DIGITS), len(labels)
    if others is not None:
        beside = numbered_images(others, labels, column)
        both = [seen["label"], beside.join(seen, on="image_id", how="semi", maintain_order="left")["label"]]
        if often_right(both, shown.argmax(axis=1), labels.index(NOTHING)):
            images, instruments = with_second(images, beside)
        seen = images.join(seen.select("image_id"), on="image_id", how="semi", maintain_order="left")
        codes = codes if instruments is None else instruments.shape[1]
    return AuditedCounts(
        labels=labels,
        parents=numbered_parents(parents),
        mapped=counted_images(images, codes),
        found=Findings(seen["prompt"].to_numpy(), seen["label"].to_numpy(), shown, model.right, model.doubt),
        adrift=taken.adrift,
        instruments=instruments,
    )


_PLACES = ("country", "continent")

SAME_LABELS = 0.95
"""Share of images above which a second instrument that gives the same label as the first adds nothing."""


def of_same_images(second: pl.DataFrame, first: pl.DataFrame) -> pl.DataFrame:
    """Take what a second instrument says of the images of the first, all of which it is to know."""
    others = second.drop("prompt_id").join(first.select("image_id", "prompt_id"), on="image_id")
    if others.height != first.height:
        raise UsageError(
            "the second instrument has not mapped all images", expected=f"the {first.height:,} images of the first",
            found=f"{others.height:,} of them", hint="Map the same images with both.",
        )  # fmt: skip
    return others


LEAST_RIGHT = 0.25
"""Share of audited images that show something of which each of two instruments is to be right: with one that is right
of 14 in 100, intervals of real flags of 251 countries lay too high."""


def often_right(instruments: Sequence[pl.Series], shown: NDArray[np.int64], none: int) -> bool:
    """Tell whether instruments are right often enough, of the audited images, to learn from both how they err."""
    something = shown != none
    rights = [((one.to_numpy() == shown) & something).sum() for one in instruments]
    return bool(min(rights) >= LEAST_RIGHT * something.sum() > 0)


def with_second(first: pl.DataFrame, second: pl.DataFrame) -> tuple[pl.DataFrame, NDArray[np.int64] | None]:
    """Code images by the labels of both instruments; give the images with their codes, and both labels of each code.

    An instrument that only repeats the first is left out: the codes are its labels.
    """
    both = np.array([first["label"], second["label"]])
    if (both[0] == both[1]).mean() > SAME_LABELS:
        return first, None
    instruments, code = np.unique(both, axis=1, return_inverse=True)
    return first.with_columns(label=pl.Series(code.ravel().astype(np.int64))), instruments


def numbered_images(nearest: pl.DataFrame, labels: Sequence[str], column: str) -> pl.DataFrame:
    """Give each image, by its id, the numbers of its prompt and of its mapped label."""
    return nearest.sort("image_id").select(
        "image_id",
        prompt=pl.col("prompt_id").fill_null("").rank("dense").cast(pl.Int64) - 1,
        label=pl.col(column).fill_null(NOTHING).cast(pl.Enum(labels)).to_physical().cast(pl.Int64),
    )


def counted_images(images: pl.DataFrame, labels: int) -> NDArray[np.int64]:
    """Count images by prompt and mapped label, int64 (n_prompts, n_labels)."""
    mapped = np.zeros((int(str(images["prompt"].max())) + 1, labels), np.int64)
    np.add.at(mapped, (images["prompt"].to_numpy(), images["label"].to_numpy()), 1)
    return mapped


def numbered_parents(parents: Mapping[str, str]) -> NDArray[np.int64]:
    """Number the continent of each label, labels in alphabetical order."""
    continents = sorted(set(parents.values()))
    return np.array([continents.index(parents[label]) for label in sorted(parents)])


def label_column(weights: Weights) -> str:
    """Say which column holds the labels of a kernel; artifacts are more than an audit of some images can tell."""
    if weights[2] > 0:
        raise UsageError(
            "the order q = 1 cannot be corrected for kernels with artifacts: a small audit meets most artifacts never",
            expected="weights without the artifact level, or q=2",
            found=f"weights={weights}",
        )
    return "country" if weights[1] > 0 else "continent"


def continents_of(nearest: pl.DataFrame, answers: pl.DataFrame, column: str) -> dict[str, str]:
    """Give the continent of every label that was mapped or found; a country lies in one continent.

    One that nobody knows is a continent of its own: a country without is not where pictures of nothing are.
    """
    places = [nearest, answers.filter(~pl.col("none_of_these"))]
    pairs = pl.concat([table.select(label=column, continent="continent") for table in places]).unique()
    pairs = pairs.drop_nulls("label").select("label", pl.coalesce("continent", lone_continent(pl.col("label"))))
    return {**dict(pairs.sort("label").iter_rows()), NOTHING: NOTHING}


# Shares of images by what people saw in an even draw of them: alone, and with the mapping to help.

Values = NDArray[np.float64]


def audited_rate(parts: Sequence[Values], sizes: Sequence[int], *, confidence: float) -> Interval:
    """Estimate a share of all images from what was seen on some of each part.

    Each part has Wilson's interval; their distances, weighed by the images of the parts, add in squares. Parts hold 1
    where it is so, 0 where it is not, or between where raters differ; `sizes` are the images that each has.
    """
    weights = [size / sum(sizes) for size in sizes]
    limits = [wilson(float(part.mean()), len(part), confidence) for part in parts]
    value = math.fsum(weight * float(part.mean()) for weight, part in zip(weights, parts, strict=True))
    below = math.hypot(*(w * (float(p.mean()) - low) for w, p, (low, _) in zip(weights, parts, limits, strict=True)))
    above = math.hypot(*(w * (high - float(p.mean())) for w, p, (_, high) in zip(weights, parts, limits, strict=True)))
    return Interval(value, max(value - below, 0.0), min(value + above, 1.0), sum(sizes), "these")


def wilson(share: float, trials: int, confidence: float) -> tuple[float, float]:
    """Give Wilson's limits of a share of independent trials."""
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    return min(max(centre - half, 0.0), share), max(min(centre + half, 1.0), share)


def audited_share(
    answered: Sequence[Values],
    seen: Sequence[Values],
    everywhere: Sequence[float],
    sizes: Sequence[int],
    *,
    confidence: float,
) -> Interval:
    """Estimate the share of images that show something, by what people said, helped by what was mapped to it.

    The mapping counts as far as it foretells what people say (PPI++), so that it never makes the share less sure than
    people alone. An audit without a single error could have missed one: one error more is in the interval.

    Args:
        answered: for each part float64 (n_seen,): 1 where people said so.
        seen: for each part float64 (n_seen,): 1 where the same images are mapped so.
        everywhere: the share of all images of each part that are mapped so.
        sizes: how many images each part has.
        confidence: of the interval.
    """
    from scipy.special import ndtri

    weights = [size / sum(sizes) for size in sizes]
    y, p = np.concatenate(answered), np.concatenate(seen)
    spread = float(p.var())
    trust = float(np.clip(np.cov(y, p, ddof=0)[0, 1] / spread, 0.0, 1.0)) if spread > 0 else 0.0
    value, variance, one = 0.0, 0.0, 0.0
    for weight, answers, mapped, share in zip(weights, answered, seen, everywhere, strict=True):
        rest = answers - trust * mapped
        value += weight * (float(rest.mean()) + trust * share)
        variance += weight**2 * float(rest.var(ddof=1)) / len(rest)
        one = max(one, weight / len(rest))
    margin = float(ndtri((1 + confidence) / 2)) * math.sqrt(variance + one**2)
    value = min(max(value, 0.0), 1.0)
    return Interval(value, max(value - margin, 0.0), min(value + margin, 1.0), sum(sizes), "these")
