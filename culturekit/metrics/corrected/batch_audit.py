"""Diversity from an audit of whole batches: any kernel, any order, however many prompts.

The Vendi score of a batch of which every image was looked at is unbiased, whatever the kernel, so the mean over drawn
batches needs no model of how the mapping errs. Even draws of single images cannot give that with many prompts: where
each prompt has one audited image, prompts of one artifact each look like prompts that mix all of them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics.corrected.audited_counts import RatedInterval, RaterModel
from culturekit.metrics.diversity.batch_diversity import Batches, cut_batches, scorer_of_batches
from culturekit.metrics.diversity.label_spectra import effective_number
from culturekit.metrics.diversity.labels import Weights, counting_levels

Levels = NDArray[np.int64]
Values = NDArray[np.float64]
Score = Callable[[Levels, NDArray[np.int64]], Values]

FEWEST_BATCHES = 12  # With fewer audited batches the intervals are not known to hold

_FEWEST_TO_REGRESS = 30  # With fewer batches the slope is too uncertain for the interval to hold

_DEALT = 100  # How often all images are dealt into batches, to know the mean of their mapped diversity

_ERRORS_ADDED = 100  # How often errors are added to the answers, to see what errors of raters do


@dataclass(frozen=True, slots=True)
class AuditedBatches:
    """The images of a model and concept, and the batches of which every image was looked at."""

    mapped: Levels  # int64, (n_images, 3): the numbers of what images are mapped to, by level
    prompt: NDArray[np.int64]  # int64, (n_images,): the prompt of each, ascending
    rows: NDArray[np.int64]  # int64, (n_batches, size): the images of each audited batch
    found: Levels  # int64, (n_images, 3): what people found, where they looked
    raters: RaterModel  # how often the answer that most people give is right


def draw_batches(images: pl.DataFrame, *, n: int, size: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw n // size whole batches of one model and concept: rows of `images` with `stratum`, `chance` and `batch`.

    Prompts are put in the order of their mapped diversity of countries, and batches are spread evenly over them. With
    more batches than prompts, every prompt has as many as its images and the others allow before the rest is spread.

    Raises:
        UsageError: no prompt has images for a batch.
    """
    prompt = images["prompt_id"].fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    order = np.lexsort((rng.random(images.height), prompt))
    images, prompt = images[order], prompt[order]
    room = np.bincount(prompt) // size
    if not room.any():
        raise UsageError("no prompt has as many images as a batch", expected=f"{size} images of some prompt")
    batches = cut_batches(prompt, size, "drop")
    country = images["country"].fill_null("").rank("dense").to_numpy().astype(np.int64)
    diversity = scorer_of_batches({1: country}, batches)((0.0, 1.0, 0.0), 1.0)
    mean = np.bincount(prompt[batches.rows[:, 0]], diversity, len(room)) / np.maximum(room, 1)
    by_diversity, taken = np.lexsort((rng.random(len(room)), mean)), np.zeros_like(room)
    left = min(n // size, int(room.sum()))
    while left > 0:
        free = by_diversity[taken[by_diversity] < room[by_diversity]]
        places = (np.arange(min(left, len(free))) + rng.random()) * max(len(free) / left, 1.0)
        taken[free[places.astype(np.int64)]] += 1
        left -= len(places)
    number = (np.arange(len(prompt)) - np.searchsorted(prompt, prompt)) // size
    named = pl.format("{} {}", pl.col("prompt_id").fill_null(""), pl.Series(number + 1))
    return images.with_columns(
        stratum=pl.col("country").fill_null("(none)"), chance=pl.lit(taken.sum() / room.sum()), batch=named
    ).filter(pl.Series(number < taken[prompt]))


def batches_diversity(
    batches: AuditedBatches, *, weights: Weights, q: float, confidence: float, rng: np.random.Generator
) -> RatedInterval:
    """Estimate the mean of VS_q/size over batches, of the prompts that have images for one.

    From 30 batches on their mapped diversity helps, by a regression. Errors of raters are taken out by adding them a
    second time (SIMEX), for two suppositions: the value is their midpoint, and the interval covers both.

    Raises:
        UsageError: there are fewer than 12 batches.
    """
    from scipy.special import stdtrit

    count, size = batches.rows.shape
    if count < FEWEST_BATCHES:
        raise UsageError(
            "too few whole batches were audited", expected=f"at least {FEWEST_BATCHES} of {size} images",
            found=f"{count} of which every image was answered",
        )  # fmt: skip
    levels = counting_levels(weights)

    def score(labels: Levels, rows: NDArray[np.int64]) -> Values:
        whole = Batches(rows, np.ones(rows.shape, np.bool_))
        return scorer_of_batches({level: labels[:, level] for level in levels}, whole)(weights, q)

    helped = count >= _FEWEST_TO_REGRESS  # else the line is flat: a mean
    x = score(batches.mapped, batches.rows) if helped else np.zeros(count)
    at = _mapped_mean(batches, score, rng) if helped else (0.0, 0.0)
    supposed = _without_errors(batches, score, levels[-1], rng)
    values, errors, freedom, doubts = np.array([(*_regressed(y, x, *at), doubt) for y, doubt in supposed]).T
    value, error, apart = float(values.mean()), float(errors.max()), float(np.ptp(values)) / 2
    least = (1 - (1 - confidence) ** (1 / count)) * _one_label_more(size, q)
    limits = []
    for each in (math.hypot(error, apart, doubts.max()), error):
        margin = max(float(stdtrit(freedom[0], (1 + confidence) / 2)) * each, least)
        limits += [max(value - margin, 1 / size), min(value + margin, 1.0)]
    low, high, *sure = limits
    within = float(np.clip(value, 1 / size, 1.0))
    return RatedInterval(within, min(low, within), max(high, within), count * size, "these", *sure)


def _regressed(y: Values, x: Values, at: float, scatter: float) -> tuple[float, float, int]:
    """Give the value of a line at a place, its standard error (HC3, and of the place) and degrees of freedom."""
    away = x - x.mean()
    if float(away @ away) < 1e-12:
        return float(y.mean()), float(y.std(ddof=1)) / math.sqrt(len(y)), len(y) - 1
    slope = float(away @ y) / float(away @ away)
    residual = (y - y.mean() - slope * away) / (1 - 1 / len(y) - away**2 / (away @ away))
    weight = 1 / len(y) + away * (at - float(x.mean())) / (away @ away)
    error = math.hypot(float(np.linalg.norm(weight * residual)), slope * scatter)
    return float(y.mean()) + slope * (at - float(x.mean())), error, len(y) - 2


def _mapped_mean(batches: AuditedBatches, score: Score, rng: np.random.Generator) -> tuple[float, float]:
    """Average the mapped diversity over batches of each prompt, then over prompts.

    Returns:
        The mean and its standard error: of the dealing, and of the images as a draw from what the prompts give.
    """
    prompt, size = batches.prompt, batches.rows.shape[1]
    cut = cut_batches(prompt, size, "drop").rows
    of_batch = prompt[cut[:, 0]]
    each = np.bincount(of_batch)
    able, means, within = each > 0, [], []
    for _ in range(_DEALT):
        values = score(batches.mapped, np.lexsort((rng.random(len(prompt)), prompt))[cut])
        of_prompt = np.bincount(of_batch, values) / np.maximum(each, 1)
        means.append(float(of_prompt[able].mean()))
        within.append(float(((values - of_prompt[of_batch]) ** 2).sum()) / max(len(values) - int(able.sum()), 1))
    drawn = float(np.mean(within)) * float((1 / each[able]).sum()) / int(able.sum()) ** 2
    return float(np.mean(means)), math.sqrt(drawn + float(np.var(means, ddof=1)) / _DEALT)


def _without_errors(
    batches: AuditedBatches, score: Score, level: int, rng: np.random.Generator
) -> list[tuple[Values, float]]:
    """Take out of the diversity of batches what errors of raters add, with the error of that.

    Wrong answers may fall on other labels as often as people name these, or evenly on all that people name: both are
    supposed. Errors added to answers of which some are wrong already change fewer that are right.
    """
    y, right, doubt = score(batches.found, batches.rows), batches.raters.right, batches.raters.doubt
    again = max(1 - right, doubt)
    if again <= 0:
        return [(y, 0.0)]
    looked_at, supposed = batches.rows.ravel(), []
    answers = batches.found[looked_at]
    label, sorted_ = answers[:, level], answers[np.argsort(answers[:, level], kind="stable")]
    for named in (sorted_, sorted_[np.unique(sorted_[:, level], return_index=True)[1]]):
        start, end = (np.searchsorted(named[:, level], label, side=side) for side in ("left", "right"))
        others, more = len(named) - (end - start), -y
        for _ in range(_ERRORS_ADDED):
            labels, err = batches.found.copy(), np.flatnonzero((rng.random(len(label)) < again) & (others > 0))
            chosen = rng.integers(others[err])
            labels[looked_at[err]] = named[np.where(chosen < start[err], chosen, chosen + (end - start)[err])]
            more = more + score(labels, batches.rows) / _ERRORS_ADDED
        slope = more / (again * right)
        supposed.append((y - slope * (1 - right), abs(float(slope.mean())) * doubt))
    return supposed


def _one_label_more(size: int, q: float) -> float:
    """Give by how much one image unlike the others raises the diversity of a batch."""
    return float(effective_number(np.array([[1 - 1 / size, 1 / size]]), q=q)[0] - 1) / size
