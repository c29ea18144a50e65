"""Diversity from an audit of whole batches: any kernel, any order, however many prompts.

The Vendi score of a batch whose images were all looked at is unbiased whatever it looks at, so the mean over drawn
batches needs no model of how labels err. Even draws of single images cannot do that with many prompts: where each
prompt has one audited image, prompts of one artifact each look like prompts that mix all of them.
"""

import math
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.metrics.corrected.audited_counts import RatedInterval, RaterModel
from culturekit.metrics.diversity.batch_diversity import Batches, cut_batches, scorer_of_batches
from culturekit.metrics.diversity.kernel_diversity import Weights, counting_levels

Levels = NDArray[np.int64]
Values = NDArray[np.float64]

FEWEST_BATCHES = 12
"""With fewer audited batches the intervals are not known to hold."""

FEWEST_TO_REGRESS = 30
"""From so many batches on the mapping helps; with fewer its slope is too uncertain for the interval to hold."""

_SHUFFLES = 100
"""How often the images of each prompt are dealt into batches, to know the mean of their mapped diversity."""

_ERRORS_ADDED = 100
"""How often errors are added to the answers, to see what errors of raters do to a diversity."""


@dataclass(frozen=True, slots=True)
class AuditedBatches:
    """Batches of which every image was looked at.

    Attributes:
        mapped: int64, (n_images, 3): the numbers of what all images are mapped to, by level.
        prompt: int64, (n_images,): their prompts, in order.
        rows: int64, (n_batches, size): the images of each audited batch.
        found: int64, (n_batches * size, 3): what people found on these, numbered like the mapped labels.
        raters: how often the answer that most people give is right.
    """

    mapped: Levels
    prompt: NDArray[np.int64]
    rows: NDArray[np.int64]
    found: Levels
    raters: RaterModel


def draw_batches(images: pl.DataFrame, *, n: int, size: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw n // size whole batches of one model and concept: rows of `images` with `stratum`, `chance` and `batch`.

    Prompts are put in the order of their mapped diversity, and batches are spread evenly over them. With more batches
    than prompts each prompt has as many as the others, and one more where they are spread.

    Args:
        images: the nearest matches of one model and concept.
        n: how many images at most.
        size: images of a batch.
        rng: draws.

    Raises:
        UsageError: no prompt has images for a batch.
    """
    shuffled = images[rng.permutation(images.height)].sort("prompt_id", maintain_order=True)
    _, prompt = np.unique(shuffled["prompt_id"].fill_null("").to_numpy(), return_inverse=True)
    sizes = np.bincount(prompt)
    able = np.flatnonzero(sizes >= size)
    room = sizes[able] // size
    if not len(able):
        raise UsageError("no prompt has as many images as a batch", expected=f"{size} images of some prompt")
    codes = {1: shuffled["country"].fill_null("").rank("dense").to_numpy().astype(np.int64)}
    batches = cut_batches(prompt, size, "drop")
    diversity = scorer_of_batches(codes, batches)((0.0, 1.0, 0.0), 1.0)
    mean = np.bincount(prompt[batches.rows[:, 0]], diversity, len(sizes))[able] / room
    ordered = np.lexsort((rng.random(len(able)), mean))
    wanted = np.zeros(len(able), np.int64)
    left = min(n // size, int(room.sum()))
    while left:
        free = ordered[wanted[ordered] < room[ordered]]
        if left >= len(free):
            wanted[free] += 1
            left -= len(free)
        else:
            ends = np.arange(left + 1) * len(free) / left
            place = np.floor(ends[:-1] + rng.random() * len(free) / left).astype(np.int64)
            wanted[free[np.minimum(place, len(free) - 1)]] += 1
            left = 0
    taken = np.zeros(len(sizes), np.int64)
    taken[able] = wanted
    number = np.arange(len(prompt)) - np.searchsorted(prompt, prompt)
    kept = number < taken[prompt] * size
    chance = taken.sum() / np.maximum(room.sum(), 1)
    drawn = shuffled.filter(pl.Series(kept))
    label = [f"{name} {k // size + 1}" for name, k in zip(drawn["prompt_id"].fill_null(""), number[kept], strict=True)]
    return drawn.with_columns(
        stratum=pl.col("country").fill_null("(none)"), chance=pl.lit(float(chance)), batch=pl.Series(label, dtype=pl.String)
    )


def batches_diversity(
    batches: AuditedBatches, *, weights: Weights, q: float, confidence: float, rng: np.random.Generator
) -> RatedInterval:
    """Estimate the mean of VS_q/size over batches of all prompts that have images for one.

    From 30 batches on the mapped diversity of the batches helps, by a regression; errors of raters are taken out by
    adding them a second time (SIMEX).

    Raises:
        UsageError: there are fewer than 12 batches.
    """
    from scipy.special import stdtrit

    count, size = batches.rows.shape
    if count < FEWEST_BATCHES:
        raise UsageError(
            "too few whole batches were audited", expected=f"at least {FEWEST_BATCHES} of {size} images", found=str(count)
        )
    levels = counting_levels(weights)

    def scored(labels: Levels, rows: NDArray[np.int64]) -> Values:
        return scorer_of_batches({level: labels[:, level] for level in levels}, Batches(rows, np.ones(rows.shape, bool)))(
            weights, q
        )

    def of_batches(labels: Levels) -> Values:
        return scored(labels, np.arange(len(labels)).reshape(-1, size))

    y = of_batches(batches.found)
    added, doubt = _added_by_errors(batches, y, of_batches, rng)
    y = y + added
    x, everywhere, scatter = scored(batches.mapped, batches.rows), *_mapped_mean(batches, scored, size, rng)
    value, error, freedom = _regressed(y, x, everywhere) if count >= FEWEST_TO_REGRESS else (y.mean(), _error(y), count - 1)
    error = math.hypot(error, scatter if count >= FEWEST_TO_REGRESS else 0.0)
    margin = float(stdtrit(freedom, (1 + confidence) / 2))
    unseen = 1 - (1 - confidence) ** (1 / count)
    one = unseen * _one_image_more(float(value), size, q)
    limits = []
    for wide in (margin * math.hypot(error, doubt), margin * error):
        limits += [max(float(value) - max(wide, one), 1 / size), min(float(value) + max(wide, one), 1.0)]
    within = float(np.clip(value, 1 / size, 1.0))
    low, high, *sure = limits
    return RatedInterval(within, min(low, within), max(high, within), count * size, "these", *sure)


def _error(y: Values) -> float:
    return float(y.std(ddof=1)) / math.sqrt(len(y))


def _regressed(y: Values, x: Values, at: float) -> tuple[float, float, int]:
    """Give the value of a line at a place, its HC3 standard error, and the degrees of freedom."""
    spread = x - x.mean()
    if float(spread @ spread) < 1e-12:
        return float(y.mean()), _error(y), len(y) - 1
    design = np.column_stack([np.ones_like(x), x])
    inverse = np.linalg.inv(design.T @ design)
    line = inverse @ design.T @ y
    leverage = np.einsum("ij,jk,ik->i", design, inverse, design)
    away = (y - design @ line) / (1 - leverage)
    of_line = inverse @ (design * away[:, None] ** 2).T @ design @ inverse
    place = np.array([1.0, at])
    return float(place @ line), math.sqrt(float(place @ of_line @ place)), len(y) - 2


def _mapped_mean(batches: AuditedBatches, scored, size: int, rng: np.random.Generator) -> tuple[float, float]:  # noqa: ANN001
    """Average the mapped diversity over batches of each prompt, then over prompts; with the error of the draws."""
    prompt = batches.prompt
    sizes = np.bincount(prompt)
    able = sizes >= size
    means = []
    for _ in range(_SHUFFLES):
        order = np.lexsort((rng.random(len(prompt)), prompt))
        cut = cut_batches(prompt[order], size, "drop")
        rows = order[cut.rows]
        values = scored(batches.mapped, rows)
        of = prompt[rows[:, 0]]
        means.append(float((np.bincount(of, values, len(sizes))[able] / np.bincount(of, minlength=len(sizes))[able]).mean()))
    return float(np.mean(means)), float(np.std(means, ddof=1)) / math.sqrt(_SHUFFLES)


def _added_by_errors(batches: AuditedBatches, y: Values, of_batches, rng: np.random.Generator) -> tuple[Values, float]:  # noqa: ANN001
    """Say by how much errors of raters lower or raise each batch, with a minus, and how far that is not known."""
    wrong, doubt = 1 - batches.raters.right, batches.raters.doubt
    if wrong <= 0 and doubt <= 0:
        return np.zeros_like(y), 0.0
    supposed = max(wrong, doubt, 1e-3)
    again = np.zeros_like(y)
    for _ in range(_ERRORS_ADDED):
        labels = batches.found.copy()
        err = rng.random(len(labels)) < supposed
        labels[err] = batches.found[rng.integers(len(labels), size=int(err.sum()))]
        again += of_batches(labels) / _ERRORS_ADDED
    slope = (y - again) / supposed
    return slope * wrong, abs(float(slope.mean())) * doubt


def _one_image_more(value: float, size: int, q: float) -> float:
    """Give how far one image unlike the others would move a batch."""
    from culturekit.metrics.diversity.label_spectra import effective_number

    alike = np.array([1 - 1 / size, 1 / size])
    return float(effective_number(alike[None], q=q)[0] - 1) / size
