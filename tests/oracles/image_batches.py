"""The images behind one score, in the order in which they make batches."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tests.oracles.vendi import LEVELS, Codes, coded

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
