"""Items with equal labels are one class: millions of images become a table of thousands of rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error
from culturekit.metrics.diversity.labels import LEVELS, Codes, Labels, Missing, code_levels

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LabelClasses", "classes_of", "classes_of_labels", "combined", "label_classes"]

ITEMS = "items of a class"
"""A column that no table of labels has."""

WIDEST = 2**62
"""Above this, keys of several columns no longer fit one number."""


@dataclass(frozen=True, slots=True)
class LabelClasses:
    """The combinations of labels that occur, in the order of their labels.

    Attributes:
        labels: int64, (n_classes, n_levels): codes, coarse levels first; the rows differ.
        counts: int64, (n_classes,): how many items carry them, at least 1.
    """

    labels: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def items(self) -> int:
        """How many items there are."""
        return int(self.counts.sum())

    def on(self, levels: Sequence[int]) -> "LabelClasses":
        """Keep some of the levels: classes that now have equal labels become one."""
        if len(levels) == self.labels.shape[1]:
            return self
        return grouped([self.labels[:, level] for level in levels], self.counts)


def classes_of(codes: NDArray[np.int64]) -> LabelClasses:
    """Count the classes of coded labels, int64 (n, n_levels)."""
    return label_classes(list(codes.T))


def classes_of_labels(
    labels: "Labels | pl.LazyFrame", *, levels: Sequence[int], missing: Missing, normalize: bool
) -> LabelClasses:
    """Count the classes of labels; those of a lazy frame are counted as they are read, and never all held at once."""
    if not hasattr(labels, "collect"):
        return label_classes(code_levels(labels, levels=levels, missing=missing, normalize=normalize))
    rows = counted(cast("pl.LazyFrame", labels), [LEVELS[level] for level in levels], missing=missing)
    return grouped(code_levels(rows, levels=levels, missing=missing, normalize=normalize), rows[ITEMS].to_numpy())


def counted(labels: "pl.LazyFrame", names: Sequence[str], *, missing: Missing) -> "pl.DataFrame":
    """Count rows with the same labels; `distinct` leaves each row that lacks one by itself."""
    import polars as pl

    known = labels.collect_schema().names()
    if not set(names) <= set(known):
        raise argument_error("labels", f"a frame with the columns {', '.join(LEVELS)}", known)
    rows = labels.group_by(names).agg(pl.len().alias(ITEMS)).collect(engine="streaming")
    if missing == "distinct":
        gone = pl.any_horizontal(pl.col(names).is_null())
        each = rows.filter(gone).select(pl.all().repeat_by(ITEMS).explode())
        rows = pl.concat([rows.filter(~gone), each.with_columns(pl.lit(1, rows[ITEMS].dtype).alias(ITEMS))])
    return rows.with_columns(pl.lit(None).alias(name) for name in LEVELS if name not in names)


def label_classes(levels: Sequence[Codes]) -> LabelClasses:
    """Count the classes of items in one pass over their codes, one array (n,) per level, coarse levels first.

    Most labels nest: an artifact has one country and one continent. So one place per code of the finest level
    remembers labels of the coarser ones, and the items that fit it are counted by that code alone, with nothing
    sorted. The items that do not fit are few, and are sorted.
    """
    *coarse, finest = levels
    finest = narrow(finest)
    size = int(finest.max()) + 1
    places = np.zeros((size, len(levels)), np.int64)
    places[:, -1] = np.arange(size)
    fits: NDArray[np.bool_] | None = None
    for number, level in enumerate(coarse):
        places[finest, number] = level
        same = np.ascontiguousarray(places[:, number]).astype(level.dtype)[finest] == level
        fits = same if fits is None else fits & same
    if fits is None or fits.all():
        counts = np.bincount(finest, minlength=size)
        return ordered(places[counts > 0], counts[counts > 0])
    counts = np.bincount(finest[fits], minlength=size)
    others = grouped([*(level[~fits] for level in coarse), finest[~fits]])
    seen = counts > 0
    return ordered(np.concatenate([places[seen], others.labels]), np.concatenate([counts[seen], others.counts]))


def narrow(codes: Codes) -> Codes:
    """Give codes that are at most a few times as many as the items."""
    if int(codes.max()) <= 8 * len(codes) + 1000:
        return codes
    return np.unique(codes, return_inverse=True)[1]


def grouped(columns: Sequence[Codes], counts: NDArray[np.int64] | None = None) -> LabelClasses:
    """Count rows with equal labels by sorting them; `counts` says how many items each row stands for."""
    _, firsts, numbers = np.unique(combined(columns), return_index=True, return_inverse=True)
    summed = np.bincount(numbers, weights=counts, minlength=len(firsts)).astype(np.int64)
    return LabelClasses(np.stack([column[firsts].astype(np.int64) for column in columns], axis=1), summed)


def ordered(labels: NDArray[np.int64], counts: NDArray[np.int64]) -> LabelClasses:
    """Order classes by their labels, so that sums over them do not depend on the order of the items."""
    order = np.argsort(combined(list(labels.T)))
    return LabelClasses(labels[order], counts[order])


def combined(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Number rows by several columns of whole numbers of at least -1; the numbers follow the order of the rows."""
    key = np.zeros(len(columns[0]), np.int64)
    spread = 1
    for column in columns:
        width = int(column.max(initial=0)) + 2
        if spread * width > WIDEST:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            spread = len(key) + 1
        if spread * width > WIDEST:
            column = np.unique(column, return_inverse=True)[1]
            width = len(column) + 2
        key = key * width + (column.astype(np.int64) + 1)
        spread *= width
    return key
