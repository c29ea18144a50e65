"""Which images people should look at: an even draw over prompts and what the images were mapped to."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import Array
from culturekit.core.choices import BATCH_SIZE, CONFIDENCE
from culturekit.core.errors import UsageError, argument_error, check_choice
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS
from culturekit.metrics.corrected.audit_gates import FEWEST_AUDITED
from culturekit.metrics.corrected.audited_counts import (
    added_distance,
    audited_counts,
    continents_of,
    counted_images,
    label_column,
    numbered_images,
    numbered_parents,
)
from culturekit.metrics.corrected.batch_audit import FEWEST_BATCHES, draw_batches
from culturekit.metrics.corrected.corrected_diversity import checked_weights, mean_of_labels
from culturekit.metrics.corrected.expected_diversity import ExpectedDiversity
from culturekit.metrics.corrected.imputed_prompts import AuditedCounts, Findings, drawn_rows, impute
from culturekit.metrics.corrected.looks import Goal, check_looks
from culturekit.metrics.corrected.rectified import parted, rectified
from culturekit.metrics.diversity.batch_diversity import cut_batches, scorer_of_batches
from culturekit.metrics.diversity.labels import Kernel, Weights, check_weights, counting_levels

Per: TypeAlias = Literal["model", "concept"]
"""Of what so many images are drawn: of a model, shared among its concepts, or of each of its concepts."""

Drawing: TypeAlias = Literal["images", "batches"]  # Whether single images are drawn, or whole batches


def audit_sample(
    matches: pl.DataFrame,
    *,
    n: int,
    rng: np.random.Generator,
    stratum: str = "country",
    per: Per = "concept",
    drawing: Drawing = "images",
    size: int = BATCH_SIZE,
    looks: Sequence[int] = (),
    goal: Goal = "order",
) -> pl.DataFrame:
    """Draw n images of each model and concept, or of each model, for an audit.

    Images are put in order by prompt and mapped label, both in random order, and at random within; the order is cut
    into n parts, and one image at random is taken from each. Each image has the same chance, n over the number of
    images, whatever the sizes of prompts. With more prompts than images to draw the order is by mapped label first.

    Args:
        matches: MATCHES; the nearest match of an image counts.
        n: how many images; all of them where there are fewer.
        rng: draws.
        stratum: the mapped label to spread over: `country` or `continent`.
        per: `concept` draws n of each concept of a model. `model` shares n among its concepts by their images, and
            gives none less than a correction needs, 30, or 12 batches, or all there are.
        drawing: `batches` draws whole batches of a prompt, spread over prompts by their mapped diversity: what kernels
            with artifacts need where there are many prompts.
        size: images of a batch.
        looks: images of a model after which somebody looks whether the models are told apart; n is the last.
        goal: what is looked for: `order` settles every pair of models, `top` which shows most.

    Returns:
        AUDIT_SAMPLE: the images, their stratum and the chance with which each was drawn; the batch of each, or the look
        before which it is answered, and the goal.
    """
    if n < 1:
        raise argument_error("n", "at least 1", n)
    if stratum not in {"country", "continent"}:
        raise argument_error("stratum", "'country' or 'continent'", stratum)
    check_choice("per", per, ("model", "concept"))
    check_choice("drawing", drawing, ("images", "batches"))
    if looks:
        check_looks(looks)
        check_choice("goal", goal, get_args(Goal))
        if looks[-1] != n or per != "model" or drawing != "images":
            raise argument_error("looks", "the last of them n, for single images drawn per model", list(looks))
    nearest = matches.filter(pl.col("rank") == 1)
    if nearest.is_empty():
        raise UsageError("there are no matches to draw from", expected="at least one image")
    groups = nearest.sort("model", "concept", "image_id").partition_by("model", "concept", maintain_order=True)
    least = FEWEST_AUDITED if drawing == "images" else FEWEST_BATCHES * size
    wanted = [min(n, images.height) for images in groups] if per == "concept" else shared_by_model(groups, n, least)
    draw_some = partial(draw, stratum=stratum) if drawing == "images" else partial(draw_batches, size=size)
    parts = [draw_some(images, n=count, rng=rng) for images, count in zip(groups, wanted, strict=True)]
    if looks:
        counts = zip(*(shared_by_model(groups, look, least) for look in looks), strict=True)
        parts = [in_looks(part, each, goal, rng) for part, each in zip(parts, counts, strict=True)]
    more = [name for name in AUDIT_SAMPLE.optional if name in parts[0].columns]
    return pl.concat(parts).select(*AUDIT_SAMPLE.columns, *more).sort(AUDIT_SAMPLE.key)


def in_looks(drawn: pl.DataFrame, counts: Sequence[int], goal: Goal, rng: np.random.Generator) -> pl.DataFrame:
    """Deal drawn images to looks, as many as `counts` says up to each, all spread over the whole draw.

    Steps of the golden ratio round a circle, from a random place, leave every first part of them even.

    Raises:
        UsageError: two looks would be at the same images.
    """
    if len(set(counts)) < len(counts):
        raise UsageError(
            "two looks would see the same images", where=f"concept {drawn['concept'][0]!r}",
            expected=f"looks far enough apart for {FEWEST_AUDITED} images or more of each concept, and more at each",
            found=f"{', '.join(map(str, counts))} images", hint="Begin to look later, or at fewer times.",
        )  # fmt: skip
    turn = (rng.random() + np.arange(drawn.height) * (math.sqrt(5) - 1) / 2) % 1
    look = np.searchsorted(counts, np.argsort(np.argsort(turn)), side="right") + 1
    return drawn.with_columns(look=pl.Series(look, dtype=pl.Int64), goal=pl.lit(goal))


def shared_by_model(groups: Sequence[pl.DataFrame], n: int, least: int) -> list[int]:
    """Share n images of each model among its concepts, which follow one another."""
    sizes: dict[str, list[int]] = {}
    for images in groups:
        sizes.setdefault(images["model"][0], []).append(images.height)
    return [count for each in sizes.values() for count in shared(n, np.array(each), least).tolist()]


def shared(n: int, sizes: NDArray[np.int64], least: int = FEWEST_AUDITED) -> NDArray[np.int64]:
    """Share n among parts by their sizes; none gets less than an audit needs, nor more than it has."""
    given = np.minimum(sizes, least)
    while given.sum() < min(n, sizes.sum()):
        given[np.argmax(np.where(given < sizes, sizes / (given + 0.5), 0.0))] += 1
    return given


def draw(images: pl.DataFrame, *, n: int, rng: np.random.Generator, stratum: str) -> pl.DataFrame:
    """Draw n images of one model and concept, spread over prompts and mapped labels.

    The order begins at a random place, as a circle does, so that no image is more often in a small part than another.
    """
    labelled = images.with_columns(stratum=pl.col(stratum).fill_null("(none)"))
    prompt, label = (shuffled_codes(labelled[column], rng) for column in ("prompt_id", "stratum"))
    first, second = (prompt, label) if n > prompt.max() else (label, prompt)
    order = np.roll(np.lexsort((rng.random(images.height), second, first)), int(rng.integers(images.height)))
    ends = np.arange(n + 1) * images.height // n
    return labelled[order[rng.integers(ends[:-1], ends[1:])]].with_columns(chance=pl.lit(n / images.height))


def shuffled_codes(labels: pl.Series, rng: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Number the labels from 0 in a random order."""
    codes = np.unique(labels.fill_null("").to_numpy(), return_inverse=True)[1]
    return np.asarray(rng.permutation(int(codes.max()) + 1)[codes])


# How wide the interval of a corrected diversity will be, before anybody has labelled an image: audits are simulated.
#
# What each image shows is drawn, from an assumed accuracy of the mapping or from a first, smaller audit; images are
# drawn as `audit_sample` draws them, and the estimator is asked for its interval.

TIMES = 4  # Audits that are simulated for one width: their widths scatter by about a tenth

NEAR = 0.5  # Part of the wrong labels that are taken to be of the same continent

ROUNDS, ROUNDS_OF_PROMPTS = 300, 20

FEWEST, TRIED = 2.0, 60  # Images of a label that is there at all, and numbers of them that are tried

LIKE = 10.0  # Images of the model that a prompt is taken to be like

MORE = 1.05
"""So many times as many images are tried while the width that is simulated lies above the one that is asked for."""


@dataclass(frozen=True, slots=True)
class Concept:
    """The images of a model and concept, and the chances of what they show by prompt and mapped label.

    `counts.found` says how often raters are right, as those of a first audit are; nobody has looked without one.
    """

    nearest: pl.DataFrame
    numbered: pl.DataFrame
    counts: AuditedCounts
    chances: Array
    diversity: ExpectedDiversity

    def width(self, n: int, *, confidence: float, rng: np.random.Generator) -> tuple[float, float]:
        """Simulate audits of n images; give the root of the mean square of their widths, and if raters were known."""
        codes = self.numbered.select("prompt", "label").to_numpy()
        squares = []
        for _ in range(TIMES):
            shown = drawn_rows(self.chances[codes[:, 0], codes[:, 1]], rng)
            ids = draw(self.nearest, n=n, rng=rng, stratum="country")["image_id"]
            rows = self.numbered.with_row_index("place").filter(pl.col("image_id").is_in(ids.implode()))["place"]
            asked = rows.to_numpy()
            found = np.eye(len(self.counts.labels))[shown[asked]]
            found = replace(self.counts.found, prompt=codes[asked, 0], mapped=codes[asked, 1], shown=found)
            audit = replace(self.counts, found=found)
            answer = rectified(audit, parted(audit, rng=rng), self.diversity, confidence=confidence, rng=rng)
            squares.append(((answer.high - answer.low) ** 2, (answer.sure_high - answer.sure_low) ** 2))
        every, sure = np.sqrt(np.mean(squares, axis=0))
        return float(every), float(sure)


@dataclass(frozen=True, slots=True)
class AuditForecast:
    """The concepts of one model; asked for a number of images, it says how wide the interval over all concepts is."""

    concepts: Sequence[Concept]
    confidence: float
    rng: np.random.Generator

    @property
    def images(self) -> int:
        """How many images there are to ask about."""
        return sum(one.nearest.height for one in self.concepts)

    def least(self) -> int:
        """Say how many images a correction needs at least."""
        return int(shared(0, self.sizes).sum())

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many images each concept has."""
        return np.array([one.nearest.height for one in self.concepts])

    def width(self, n: int) -> float:
        """Predict the width over all concepts, n images shared among them as `audit_sample` shares them."""
        prompts = np.array([len(one.counts.mapped) for one in self.concepts])
        widths = [
            one.width(int(count), confidence=self.confidence, rng=self.rng)
            for one, count in zip(self.concepts, shared(n, self.sizes), strict=True)
        ]
        return added_distance((share, *each) for share, each in zip(prompts / prompts.sum(), widths, strict=True))


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """Whole batches of a model; asked for a number of images, it says how wide the interval of their mean is.

    `spread` is the standard deviation of the mapped diversity of batches, `room` how many there are, by concept.
    """

    spread: Array
    room: NDArray[np.int64]
    prompts: NDArray[np.int64]
    size: int
    confidence: float

    @property
    def images(self) -> int:
        """How many images stand in whole batches."""
        return int(self.room.sum()) * self.size

    def least(self) -> int:
        """Say how many images a correction needs at least."""
        return int(shared(0, self.room, FEWEST_BATCHES).sum()) * self.size

    def width(self, n: int) -> float:
        """Predict the width over all concepts, by the mean of batches alone."""
        from scipy.special import stdtrit

        count = shared(n // self.size, self.room, FEWEST_BATCHES)
        half = stdtrit(count - 1, (1 + self.confidence) / 2) * self.spread / np.sqrt(count)
        return 2 * float(np.linalg.norm(half * self.prompts / self.prompts.sum()))


def batch_forecast(
    matches: pl.DataFrame,
    *,
    weights: Kernel,
    size: int = BATCH_SIZE,
    confidence: float = CONFIDENCE,
    rng: np.random.Generator,
) -> BatchForecast:
    """Prepare to say how wide the interval of any kernel would be with some whole batches of a model audited.

    Their diversity is taken to scatter as the mapped one does, of batches that `rng` deals.

    Raises:
        UsageError: an argument breaks its rule, or a concept has too few whole batches.
    """
    known, found = check_weights(weights), list[tuple[float, int, int]]()
    nearest = matches.filter(pl.col("rank") == 1).sort("concept", "image_id")
    levels = pl.col("prompt_id", "continent", "country", "artifact_id").fill_null("").rank("dense").cast(pl.Int64)
    for images in nearest.partition_by("concept", maintain_order=True):
        dealt = images[rng.permutation(images.height)].sort("prompt_id", maintain_order=True)
        prompt, *codes = dealt.select(levels).to_numpy().T
        batches = cut_batches(prompt, size, "drop")
        if len(batches.rows) < FEWEST_BATCHES:
            raise UsageError(
                "a concept has too few whole batches to audit", where=str(images["concept"][0]),
                expected=f"at least {FEWEST_BATCHES} of {size} images of a prompt", found=str(len(batches.rows)),
            )  # fmt: skip
        values = scorer_of_batches({level: codes[level] for level in counting_levels(known)}, batches)(known, 1.0)
        found.append((float(values.std(ddof=1)), len(values), int(prompt.max())))
    spread, room, prompts = (np.array(each) for each in zip(*found, strict=True))
    return BatchForecast(spread, room, prompts, size, confidence)


def audit_forecast(
    matches: pl.DataFrame,
    *,
    weights: Kernel,
    size: int = BATCH_SIZE,
    confidence: float = CONFIDENCE,
    accuracy: float | None = None,
    pilot: pl.DataFrame | None = None,
    rng: np.random.Generator,
) -> AuditForecast:
    """Prepare to say how wide the interval of a model's corrected diversity would be with some images audited.

    Either an accuracy of the mapping is assumed, or a pilot tells it: AUDITS with at least 30 images of each concept.
    Kernels with artifacts are not forecast.

    Raises:
        UsageError: an argument breaks its rule, or the first audit cannot carry a correction.
    """
    if (accuracy is None) == (pilot is None):
        raise argument_error("accuracy", "a share, or a first audit, not both", accuracy)
    if accuracy is not None and not 0 < accuracy <= 1:
        raise argument_error("accuracy", "above 0 and at most 1", accuracy)
    known = check_weights(weights)
    nearest = matches.filter(pl.col("rank") == 1).sort("concept", "image_id")
    concepts = [
        concept_of(images, known, size, accuracy, pilot, rng)
        for images in nearest.partition_by("concept", maintain_order=True)
    ]
    return AuditForecast(concepts, confidence, rng)


def concept_of(
    nearest: pl.DataFrame,
    weights: Weights,
    size: int,
    accuracy: float | None,
    pilot: pl.DataFrame | None,
    rng: np.random.Generator,
) -> Concept:
    """Say of the images of a concept what they may show."""
    column = label_column(weights)
    if pilot is not None:
        counts = audited_counts(nearest, pilot, weights=weights)
        imputed = impute(counts, np.ones((1, counts.audited), bool), rng=rng)
        chances = np.zeros((*counts.mapped.shape, len(counts.labels)))
        chances[imputed.prompt, imputed.mapped] = imputed.chances[0]
    else:
        named = continents_of(nearest, pl.DataFrame(schema=AUDITS.schema), column)
        labels = tuple(sorted(named))
        mapped = counted_images(numbered_images(nearest, labels, column), len(labels))
        nobody = Findings(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(labels))))
        counts = AuditedCounts(labels, numbered_parents(named), mapped, nobody)
        chances = assumed_chances(mapped, counts.parents, counts.none, accuracy or 1.0)
    numbered, chances = numbered_images(nearest, counts.labels, column), evened(chances, counts.mapped, counts.none)
    known = checked_weights(weights, 1.0, size, 0.95)
    return Concept(nearest, numbered, counts, chances, mean_of_labels(counts.parents, known, q=1.0, size=size))


def assumed_chances(mapped: NDArray[np.int64], parents: NDArray[np.int64], none: int, accuracy: float) -> Array:
    """Say what images of a prompt and mapped label show, (n_prompts, n_labels, n_labels), if that many are right.

    The shares of true labels are those that explain best what was mapped (EM), of all images and then of each prompt,
    which is taken to be like the others; half of the errors stay on the continent, the others fall anywhere. Of
    pictures of nothing, nothing is known.
    """
    images, labels = mapped.sum(axis=0), mapped.shape[1]
    there = (images > 0) & (np.arange(labels) != none)
    errors = np.tile(there.astype(np.float64), (labels, 1))
    near = np.where(parents[:, None] == parents[None, :], errors, 0.0)
    for part in (errors, near):
        np.fill_diagonal(part, 0.0)
        part /= np.maximum(part.sum(axis=1, keepdims=True), 1e-300)
    wrong = np.where(near.sum(axis=1, keepdims=True) > 0, NEAR * near + (1 - NEAR) * errors, errors)
    rows = accuracy * np.eye(labels) + (1 - accuracy) * wrong

    def shown(shares: Array) -> Array:
        chances = shares[:, None, :] * rows.T
        return np.asarray(chances / np.maximum(chances.sum(axis=2, keepdims=True), 1e-300))

    shares = np.where(there, images, 0.0)[None] / max(int(images[there].sum()), 1)
    for _ in range(ROUNDS):
        shares = np.einsum("m,kml->kl", images, shown(shares)) / max(int(images.sum()), 1)
    usual = LIKE * shares
    shares = np.repeat(shares, len(mapped), axis=0)
    for _ in range(ROUNDS_OF_PROMPTS):
        shares = np.einsum("km,kml->kl", mapped, shown(shares)) + usual
        shares /= shares.sum(axis=1, keepdims=True)
    chances = shown(shares)
    return np.asarray(np.where(chances.sum(axis=2, keepdims=True) > 0, chances, np.eye(labels)))


def evened(chances: Array, mapped: NDArray[np.int64], none: int) -> Array:
    """Estimate how many images show each label from all labels together (empirical Bayes).

    Each alone looks less even than it is, and hardly ever absent. All come from one law, which says that half of the
    labels are absent until images mapped to them say otherwise; the medians of what is then likely are taken.
    """
    labels = np.arange(chances.shape[2])
    both = np.einsum("km,kml->lm", mapped, chances)
    shown = both.sum(axis=1)
    there = (shown > 0) & (labels != none)
    if not there.any():
        return chances
    images, seen = shown[there].sum(), mapped.sum(axis=0)[there, None]
    rows = both / np.maximum(shown, 1e-300)[:, None]
    right, counts = rows[labels, labels], shown.copy()
    tried = np.append(0.0, np.geomspace(FEWEST, FEWEST + images, TRIED))
    law = np.append(0.5, np.full(TRIED, 0.5 / TRIED))
    for _ in range(ROUNDS):
        wrong = counts @ rows - counts * right
        expected = right[there, None] * tried + wrong[there, None] + 1e-9
        fit = seen * np.log(expected) - expected
        likely = law * np.exp(fit - fit.max(axis=1, keepdims=True))
        likely /= likely.sum(axis=1, keepdims=True)
        law = likely.mean(axis=0)
        medians = tried[(likely.cumsum(axis=1) >= 0.5).argmax(axis=1)]
        counts[there] = medians * images / max(medians.sum(), 1.0)
    nearer = chances * np.where(there, counts / np.maximum(shown, 1e-300), 1.0)
    sums = nearer.sum(axis=2, keepdims=True)
    return np.asarray(np.where(sums > 0, nearer / np.maximum(sums, 1e-300), chances))


def images_for(width_at: Callable[[int], float], width: float, *, least: int, most: int, start: int = 150) -> int:
    """Say how many images give an interval of a width: the width falls about with the root of their number.

    Simulated widths scatter: of what seems enough, more are taken until it is.
    """
    n = min(max(start, least), most)
    for _ in range(3):
        found = width_at(n)
        if abs(found - width) <= 0.02 * width:
            break
        n = int(np.clip(round(n * (found / width) ** 2), least, most))
    while n < most and width_at(n) > width:
        n = min(math.ceil(n * MORE), most)
    return n
