"""The images behind one score, in the order in which they make batches; without prompts, one value of all."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tests.oracles.averages import Answer, Mean, mean, t_answer
from tests.oracles.vendi import LEVELS, Codes, coded, order_of, vendi_of_classes

Repeat: TypeAlias = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Batch:
    """The repeat that a batch belongs to, and the numbers of its images."""

    repeat: Repeat
    images: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Collection:
    """Images of one model, and of one concept or country or all.

    Attributes:
        images: their ids, by prompt, repeat and slot.
        codes: their labels.
        repeats: prompt and repeat of each; empty where they have none, and are one whole.
        batches: what is scored together.
        size: places in a full batch.
    """

    images: tuple[str, ...]
    codes: Codes
    repeats: tuple[Repeat, ...]
    batches: tuple[Batch, ...]
    size: int

    @property
    def whole(self) -> bool:
        """Tell whether the images are one collection without repeats."""
        return not self.repeats

    def quality(self, values: Mapping[str, float]) -> NDArray[np.float64]:
        """Look up the quality of each image; NaN where there is none."""
        return np.array([values.get(image, np.nan) for image in self.images])


def collection_of(rows: pl.DataFrame, *, size: int, missing: str, partial: str) -> Collection:
    """Put nearest matches in order and cut them into batches: the first `size` of a repeat, the next, and so on.

    An incomplete batch is left out, or kept with `partial="paper"`.
    """
    ordered = rows.sort("prompt_id", "repeat", "slot", "image_id", nulls_last=False)
    images: Sequence[str] = ordered["image_id"].to_list()
    codes = coded(ordered.select(LEVELS).iter_rows(), missing=missing)
    if ordered["prompt_id"].null_count() or ordered["repeat"].null_count():
        everything = Batch(("", 0), tuple(range(len(images))))
        return Collection(tuple(images), codes, (), (everything,), len(images))
    repeats = tuple(ordered.select("prompt_id", "repeat").iter_rows())
    members: dict[Any, list[int]] = {}
    for number, repeat in enumerate(repeats):
        members.setdefault(repeat, []).append(number)
    batches = tuple(cut(members.items(), size=size, partial=partial))
    return Collection(tuple(images), codes, repeats, batches, size)


def cut(members: Iterable[tuple[Repeat, list[int]]], *, size: int, partial: str) -> Iterable[Batch]:
    """Cut the images of each repeat into batches."""
    for repeat, numbers in members:
        for start in range(0, len(numbers), size):
            some = tuple(numbers[start : start + size])
            if len(some) == size or partial == "paper":
                yield Batch(repeat, some)


GROUPS = 100  # Groups of images that the jackknife leaves out in turn; which image is in which is a draw with seed 0


def whole_answer(
    row: Mapping[str, Any], images: Collection, quality: NDArray[np.float64] | None
) -> tuple[Answer, int, dict[str, object]]:
    """Work out the score of a whole collection: the answer, how many images entered, and what params say of it."""
    about, count = row["about"], len(images.images)
    if row["metric"] == "quality":
        known = [] if quality is None else [float(value) for value in quality if np.isfinite(value)]
        if not known:
            return Answer(math.nan, math.nan, math.nan), 0, {}
        return t_answer(mean(known), float(about["confidence"])), len(known), {}
    if row["metric"] == "vs":
        quality = None
    elif quality is None or np.isnan(quality).any():
        return Answer(math.nan, math.nan, math.nan), 0, {"bias_corrected": None}

    def score(kept: NDArray[np.bool_]) -> float:
        vendi = vendi_of_classes(images.codes[kept], about["weights"], order_of(about["q"])) / count
        # Whatever is left out, the score is a share of all images.
        return vendi if quality is None else vendi * float(quality[kept].mean())

    value = score(np.ones(count, np.bool_))
    if count < 2:
        return Answer(value, math.nan, math.nan), count, {"bias_corrected": None}
    corrected = jackknife(score, count, value)
    limits = t_answer(corrected, float(about["confidence"]))
    said: dict[str, object] = {"bias_corrected": corrected.value, "images_left_out": 0}
    return Answer(value, limits.low, limits.high), count, said


def jackknife(score: Any, count: int, whole: float) -> Mean:
    """Correct the bias that falls as one over n by leaving groups out in turn (Busing, Meijer, van der Leeden 1999)."""
    groups = np.random.default_rng(0).permutation(count) % min(GROUPS, count)
    number = int(groups.max()) + 1
    sizes = [int((groups == one).sum()) for one in range(number)]
    without = [score(groups != one) for one in range(number)]
    corrected = number * whole - math.fsum((1 - size / count) * left for size, left in zip(sizes, without, strict=True))
    scatter = []
    for size, left in zip(sizes, without, strict=True):
        ratio = count / size
        scatter.append((ratio * whole - (ratio - 1) * left - corrected) ** 2 / (ratio - 1))
    return Mean(corrected, math.fsum(scatter) / number, number - 1.0)
