"""Corrected diversity of kernels with artifacts, at order 2: by the mean of k(i, j)² over pairs of images.

Over all images of a prompt the mean is counted for mapped labels. On the audited images it is known for both kinds of
labels, and the difference of the two corrects it; pairs of one mapped country count there as often as among all images.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tests.oracles.averages import RatedAnswer, t_quantile
from tests.oracles.corrected_labels import WIDER, CorrectionOf
from tests.oracles.rater_errors import NONE, Raters, gold_of, raters_of

# Over the number of audited images: the least standard error, in parts of the mean, or of one image where that is less.
# And how many times as large yet the error is where the mapping helps.
UNSEEN, HELPED = 3.06, 1.1

COUNTRY = (0.0, 1.0, 0.0)

Triple: TypeAlias = tuple[str, str, str]


def corrected_pairs(images: pl.DataFrame, audits: pl.DataFrame, of: CorrectionOf) -> tuple[RatedAnswer, int]:
    """Give 1 / (1 + (size - 1) m) over prompts, m the corrected mean of k² over the pairs of a prompt."""
    own = audits.join(images.select("image_id"), on="image_id", how="semi")
    placed = [row for row in own.iter_rows(named=True) if row["none_of_these"] or row["artifact_id"]]
    said, raters = most_said(placed), how_right(placed, audits)
    audited = 0
    alone, helped = Parts(), Parts()
    for own in images.sort("image_id").partition_by("prompt_id", maintain_order=True):
        mapped = {
            image: triple_of(labels)
            for image, *labels in own.select("image_id", "continent", "country", "artifact_id").iter_rows()
        }
        both = [image for image in mapped if image in said]
        audited += len(both)
        labels = [said[image] for image in both], [mapped[image] for image in both], list(mapped.values())
        for parts, with_mapping in ((alone, False), (helped, True)):
            parts.add(corrected_mean(*labels, of.weights, raters, with_mapping), len(both), of.size)
    best = helped if math.fsum(helped.errors) < math.fsum(alone.errors) else alone
    prompts = len(best.values)
    value = math.fsum(min(max(each, 1 / of.size), 1.0) for each in best.values) / prompts
    sure, limits = max(WIDER * math.sqrt(math.fsum(best.errors)), *best.least), []
    for error in (math.hypot(sure, math.fsum(best.of_raters)), sure):
        margin = t_quantile(float(audited - prompts), of.confidence) * error / prompts
        limits.append((max(limit(value, -margin), 1 / of.size), min(limit(value, margin), 1.0)))
    return RatedAnswer(value, *limits[0], limits[1]), audited


@dataclass(slots=True)
class Parts:
    """Prompt by prompt the diversity, less what its bend adds, and how far draws, rare labels and raters move it."""

    values: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    of_raters: list[float] = field(default_factory=list)

    def add(self, mean: tuple[float, float, float], audited: int, size: int) -> None:
        """Add a prompt by its mean of k², the variance of that, and the standard error that raters add."""
        pair_mean, variance, erring = mean
        value = 1 / (1 + (size - 1) * pair_mean)
        slope = (size - 1) * value**2
        self.values.append(value - (size - 1) ** 2 * value**3 * variance)
        self.errors.append(slope**2 * variance)
        self.least.append(slope * max(pair_mean, 1 / audited) * UNSEEN / audited)
        self.of_raters.append(slope * erring)


def limit(value: float, margin: float) -> float:
    """Go so far from a value, on the scale of log odds; no further up, and no less far down, than on that of values."""
    room = max(1 - value, abs(margin), 1e-12)
    return min(value / (value + (1 - value) * math.exp(-margin / value / room)), value + margin)


def how_right(placed: Sequence[Mapping[str, Any]], audits: pl.DataFrame) -> Raters:
    """Say how often what is likeliest to be an artifact is it."""
    answers: dict[str, dict[str, str]] = {}
    for row in placed:
        answers.setdefault(row["image_id"], {})[row["annotator"]] = NONE if row["none_of_these"] else row["artifact_id"]
    labels = sorted({label for own in answers.values() for label in own.values()})
    return raters_of(answers, gold_of(audits, "artifact_id"), labels)


def triple_of(labels: Sequence[str | None]) -> Triple:
    """Give the labels of three levels; one that is missing is that of showing none."""
    continent, country, artifact = (NONE if label is None else label for label in labels)
    return continent, country, artifact


def most_said(audits: Sequence[Mapping[str, Any]]) -> dict[str, Triple]:
    """Give the answer that most people gave of each image; of equally many the first in the alphabet.

    What an answer leaves open is like nothing else.
    """
    votes: dict[str, Counter[Triple]] = {}
    for row in audits:
        levels = (row["continent"], row["country"], row["artifact_id"])
        said = (NONE, NONE, NONE) if row["none_of_these"] else tuple("" if each is None else each for each in levels)
        votes.setdefault(row["image_id"], Counter())[said[0], said[1], said[2]] += 1
    most = {image: min(each, key=lambda triple: (-each[triple], triple)) for image, each in votes.items()}
    return {image: alone(triple, image) for image, triple in most.items()}


def alone(triple: Triple, image: str) -> Triple:
    """Give an image a label of its own on the levels that nobody told."""
    continent, country, artifact = (label or f"untold of {image}" for label in triple)
    return continent, country, artifact


def squares(labels: Sequence[Triple], weights: Sequence[float]) -> NDArray[np.float64]:
    """Write k(i, j)² down for some images, with 0 for each with itself."""
    kernel = np.zeros((len(labels), len(labels)))
    for level, weight in enumerate(weights):
        names = np.array([triple[level] for triple in labels])
        kernel += weight * (names[:, None] == names[None, :])
    kernel = kernel**2
    np.fill_diagonal(kernel, 0.0)
    return kernel


def corrected_mean(
    found: Sequence[Triple],
    seen: Sequence[Triple],
    everywhere: Sequence[Triple],
    weights: Sequence[float],
    raters: Raters,
    with_mapping: bool,
) -> tuple[float, float, float]:
    """Give the corrected mean of k² over pairs, its variance, and the standard error that raters' errors add.

    Where one of two answers is wrong the two images are at least not similar, and at most as similar as others.
    """
    true, mapped, one_country = squares(found, weights), squares(seen, weights), squares(seen, COUNTRY)
    mean, of_images = mean_by_counting(everywhere, weights)
    trust = slope_on(mapped.sum(axis=1), true.sum(axis=1)) if with_mapping else 0.0
    rest = true - trust * mapped
    least = over_pairs(rest)[1] + trust**2 * of_images
    least *= HELPED**2 if with_mapping else 1.0
    too_few = mean_by_counting(everywhere, COUNTRY)[0] - over_pairs(one_country)[0]
    before = max(over_pairs(rest)[0] + trust * mean + too_few * more_alike(rest, one_country), 0.0)
    both = raters.right**2
    drawn = least * ((1 + 1 / both) / 2) ** 2
    erring = before * math.hypot((1 / both - 1) / 2, 2 * raters.doubt / (both * raters.right))
    return min(before * (1 + 1 / both) / 2, 1.0), drawn, erring


def more_alike(pairs: NDArray[np.float64], one_country: NDArray[np.float64]) -> float:
    """Say by how much pairs of one mapped country are above the others; nothing where all pairs are of one kind."""
    same = float(one_country.sum())
    others = len(pairs) * (len(pairs) - 1) - same
    if 0 in (same, others):
        return 0.0
    inside = float(pairs[one_country > 0].sum())
    return inside / same - (float(pairs.sum()) - inside) / others


def slope_on(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Give the slope of y on x, kept between 0 and 1."""
    spread = float(((x - x.mean()) ** 2).sum())
    return min(max(float(((x - x.mean()) * (y - y.mean())).sum()) / spread, 0.0), 1.0) if spread > 0 else 0.0


def over_pairs(pairs: NDArray[np.float64]) -> tuple[float, float]:
    """Average over pairs, and say by leaving out each image in turn how much the average scatters.

    That counts twice the squares that no sum over one image explains: once is left, and that at least.
    """
    n = len(pairs)
    total, of_image = float(pairs.sum()), [float(row.sum()) for row in pairs]
    without = [(total - 2 * each) / ((n - 1) * (n - 2)) for each in of_image]
    centre = math.fsum(without) / n
    scatter = (n - 1) / n * math.fsum((each - centre) ** 2 for each in without)
    squared, of_images = float((pairs**2).sum()), math.fsum(each**2 for each in of_image)
    left = squared - 2 * of_images / (n - 2) + total**2 / ((n - 1) * (n - 2))
    once = 2 * left / (n**2 * (n - 1) * (n - 3))
    return total / (n * (n - 1)), max(scatter - once, once)


def mean_by_counting(labels: Sequence[Triple], weights: Sequence[float]) -> tuple[float, float]:
    """Average k² over all pairs of images, and give the variance that comes from the choice of images, 4 Var / n.

    k² sums, over pairs of levels, the product of their weights where both labels are equal: so for each image the
    others that are equal to it on both levels are counted.
    """
    n = len(labels)
    of_image = [0.0] * n
    for first, second in product(range(3), repeat=2):
        weight = weights[first] * weights[second]
        if weight > 0:
            keys = [(triple[first], triple[second]) for triple in labels]
            counts = Counter(keys)
            for number, key in enumerate(keys):
                of_image[number] += weight * (counts[key] - 1) / (n - 1)
    mean = math.fsum(of_image) / n
    variance = math.fsum((each - mean) ** 2 for each in of_image) / (n - 1)
    return mean, 4 * variance / n
