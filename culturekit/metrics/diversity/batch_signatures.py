"""The pattern of equal labels in a batch, whatever the labels are and in whatever order they come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.diversity.labels import Codes

__all__ = ["LARGEST", "Signatures", "signatures_of"]

Places: TypeAlias = NDArray[np.uint8]

BLOCK = 4096
"""Batches worked on at a time: few enough to stay in a processor's cache."""

LARGEST = 64
"""Items of larger batches hardly ever fall into the same pattern twice."""


@dataclass(frozen=True, slots=True)
class Signatures:
    """The different patterns among some batches.

    Attributes:
        of_batch: int64, (n_batches,): the number of each batch's pattern.
        places: by level, uint8, (n_patterns, size): the first place with the same label, or `size` where there is
            no item. Places are those of the pattern: items stand in an order of its own.
        filled: int64, (n_patterns,): how many items there are.
    """

    of_batch: NDArray[np.int64]
    places: dict[int, Places]
    filled: NDArray[np.int64]

    @property
    def size(self) -> int:
        """How many places a batch has."""
        return int(next(iter(self.places.values())).shape[1])

    def alike(self, level: int) -> NDArray[np.bool_]:
        """Tell which items of a pattern have equal labels, bool (n_patterns, size, size)."""
        place = self.places[level]
        return np.asarray((place[:, :, None] == place[:, None, :]) & (place < self.size)[:, :, None])


def signatures_of(codes: Mapping[int, Codes], rows: NDArray[np.int64], present: NDArray[np.bool_]) -> Signatures:
    """Find the patterns of batches.

    The items of a batch are put in order by the sizes of their groups of equal labels, coarse levels first. Two
    batches with the same pattern may still come out differently where groups tie: that costs a second solution,
    and changes no score.

    Args:
        codes: by level, coarse levels first, (n_rows,): coded labels.
        rows: int64, (n_batches, size): which rows make which batch; at most LARGEST.
        present: bool, (n_batches, size): which of these places are filled.
    """
    columns = [np.ascontiguousarray(column) for column in codes.values()]
    blocks = [slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK)]
    words = [numbers_of(patterns(columns, rows[block], present[block])) for block in blocks]
    numbers, firsts = numbered([np.concatenate(word) for word in zip(*words, strict=True)])
    found = patterns(columns, rows[firsts], present[firsts])
    return Signatures(
        numbers,
        {level: place.T for level, place in zip(codes, found, strict=True)},
        present[firsts].sum(axis=1),
    )


def patterns(columns: Sequence[Codes], rows: NDArray[np.int64], present: NDArray[np.bool_]) -> list[Places]:
    """Put the items of each batch in order, and say for each level which are alike."""
    where, filled = np.ascontiguousarray(rows.T), present.T
    bits = (rows.shape[1] + 1).bit_length()
    key = np.zeros(where.shape, np.int32 if 2 * bits * len(columns) < 32 else np.int64)
    for column in columns:
        places, sizes = alike(column[where])
        if not present.all():
            # An empty place repeats a row, which must not count.
            places, sizes = alike(np.where(filled, column[where], -1 - np.arange(len(where))[:, None]))
            places[~filled], sizes[~filled] = len(where), 0
        key = (((key << bits) | (len(where) - sizes)) << bits) | places
    key.sort(axis=0)
    ordered: list[np.ndarray] = []
    for number in reversed(range(len(columns))):
        place = ((key >> (2 * number * bits)) & (2**bits - 1)).astype(np.uint8)
        again = alike(place)[0] if ordered else runs(place)
        ordered.append(again if present.all() else np.where(place == len(where), place, again))
    return ordered


def runs(places: Places) -> Places:
    """Do what `alike` does where equal places stand next to each other, as those of the coarsest level do."""
    firsts = np.zeros_like(places)
    for place in range(1, len(places)):
        same = (places[place] == places[place - 1]).view(np.uint8)
        np.maximum(firsts[place - 1], (np.uint8(1) - same) * np.uint8(place), out=firsts[place])
    return firsts


def alike(labels: NDArray[Any]) -> tuple[Places, Places]:
    """Find for each label, (size, n_batches), the first place of the batch that has it, and how many have it.

    No branch depends on the labels: ten times as fast as choosing by a mask.
    """
    places = np.empty(labels.shape, np.uint8)
    sizes = np.ones(labels.shape, np.uint8)
    for place in range(len(labels)):
        places[place] = place
        for earlier in range(place):
            same = (labels[place] == labels[earlier]).view(np.uint8)
            sizes[place] += same
            sizes[earlier] += same
            # Where they are the same, 1 - 1 | earlier is earlier; elsewhere 0 - 1 wraps to 255.
            np.minimum(places[place], (same - np.uint8(1)) | np.uint8(earlier), out=places[place])
    return places, sizes


def numbers_of(levels: Sequence[Places]) -> list[NDArray[np.int64]]:
    """Write the patterns of batches as few large numbers."""
    bits = (len(levels[0]) + 1).bit_length()
    fit = 62 // bits
    columns = [row for places in levels for row in places]
    words = []
    for start in range(0, len(columns), fit):
        word = np.zeros(len(columns[0]), np.int64)
        for column in columns[start : start + fit]:
            word = (word << bits) | column
        words.append(word)
    return words


def numbered(words: Sequence[NDArray[np.int64]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the batches by the words that describe them, and give one batch for each number."""
    key, *others = words
    for word in others:
        wide = ranks(word)
        key = ranks(key) * (int(wide.max()) + 1) + wide
    numbers = ranks(key)
    firsts = np.empty(int(numbers.max()) + 1, np.int64)
    firsts[numbers[::-1]] = np.arange(len(numbers))[::-1]
    return numbers, firsts


def ranks(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number the values of a key in their order: where few differ, a search is faster than an indirect sort."""
    return np.searchsorted(np.unique(key), key)
