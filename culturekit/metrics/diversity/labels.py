"""Labels become integer codes: equal labels share one, wherever they are."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error, check_choice, polars_frame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LEVELS", "Codes", "Labels", "Missing", "code_labels", "code_levels"]

LEVELS = ("continent", "country", "artifact")

Label: TypeAlias = str | int | None
Labels: TypeAlias = "Sequence[Sequence[Label]] | Sequence[Label] | NDArray[Any] | pl.DataFrame"
"""Triples of (continent, country, artifact), an array of them, (n, 3), or a frame with columns of those names.

Plain labels, one an item, stand for all three.
"""

Missing: TypeAlias = Literal["distinct", "equal"]
"""Whether a missing label is unlike every other label, or equal to other missing ones."""

Codes: TypeAlias = NDArray[np.integer[Any]]
"""One whole number of at least 0 per item; equal labels have equal numbers, and some numbers may not occur."""

PLAIN = frozenset({str, int, np.str_, np.int64, type(None)})
"""The types of plain labels."""

LABEL = "a text, a whole number or None"

SPARE = 4
"""Whole numbers that span at most so many times the number of items are codes as they stand."""


def code_labels(labels: Labels, *, missing: Missing, normalize: bool) -> NDArray[np.int64]:
    """Code labels level by level.

    Args:
        labels: n triples of (continent, country, artifact), or a frame with those columns; None is missing.
        missing: `distinct` gives each missing label a code of its own, `equal` gives all of a level the same.
        normalize: whether case, surrounding spaces and Unicode composition are ignored.

    Returns:
        int64, (n, 3): one code per label. The same labels in another order get the same codes.
    """
    levels = range(len(LEVELS))
    return np.stack(code_levels(labels, levels=levels, missing=missing, normalize=normalize), axis=1, dtype=np.int64)


def code_levels(labels: Labels, *, levels: Sequence[int], missing: Missing, normalize: bool) -> list[Codes]:
    """Code labels as `code_labels` does: one array of n codes for each level asked for, without needless copies."""
    check_choice("missing", missing, ("distinct", "equal"))
    columns = columns_of(labels)
    if len(columns[0]) == 0:
        raise argument_error("labels", "at least one (continent, country, artifact)", labels)
    return [code_column(columns[level], name=LEVELS[level], missing=missing, normalize=normalize) for level in levels]


def columns_of(labels: Labels) -> "list[list[Label]] | list[NDArray[Any]] | list[pl.Series]":
    """Take labels apart into one column per level."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == len(LEVELS):
        whole = labels.dtype.kind in "iu"
        return [column if whole else column.tolist() for column in labels.T]
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        return columns_of_frame(labels)
    rows = list(labels)
    if set(map(type, rows)) <= PLAIN:
        return [cast(list[Label], rows)] * len(LEVELS)
    check_triples(cast(Sequence[Sequence[Label]], rows))
    return [list(column) for column in zip(*rows, strict=True)]


def check_triples(rows: Sequence[Sequence[Label]]) -> None:
    """Refuse rows of which one is no triple, though others are; a text of three letters is none."""
    if set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {len(LEVELS)}:
        return
    plain = not any(isinstance(row, tuple | list) for row in rows)
    for number, row in enumerate(rows):
        if plain and type(row) not in PLAIN and not hasattr(row, "__len__"):
            raise argument_error(f"labels[{number}]", LABEL, row)
        if plain and type(row) in PLAIN:
            continue
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(LEVELS):
            raise argument_error(f"labels[{number}]", "a triple (continent, country, artifact)", row)


def columns_of_frame(frame: "pl.DataFrame | str") -> "list[pl.Series]":
    """Take the label columns of a frame; a single column has plain labels."""
    rule = "a sequence of labels or of triples, or a frame of polars or pandas"
    column = getattr(frame, "to_frame", None)
    frame = polars_frame("labels", rule, column() if column else frame)
    if column:
        return [frame.to_series()] * len(LEVELS)
    if not set(LEVELS) <= set(frame.columns):
        raise argument_error("labels", f"a frame with the columns {', '.join(LEVELS)}", frame.columns)
    return [frame[level] for level in LEVELS]


def code_column(
    column: "Sequence[Label] | NDArray[Any] | pl.Series", *, name: str, missing: Missing, normalize: bool
) -> Codes:
    """Code the labels of one level in their order, and the missing ones after them."""
    if isinstance(column, np.ndarray):
        return code_numbers(column)
    if isinstance(column, list | tuple):
        coded, names = code_list(column, name=name, normalize=normalize)
    else:
        coded, names = code_series(column, name=name, normalize=normalize)  # type: ignore[arg-type]
    gone = coded < 0
    if gone.any():
        coded = coded.astype(np.int64)
        coded[gone] = names + (np.arange(gone.sum()) if missing == "distinct" else 0)
    return coded


def code_list(column: Sequence[Label], *, name: str, normalize: bool) -> tuple[Codes, int]:
    """Code a list of labels, -1 where one is missing, and say how many codes there are."""
    numbers, count = code_names(distinct(column, name=name), normalize=normalize)
    codes: dict[Label, int] = {None: -1}
    codes |= cast(dict[Label, int], numbers)
    return np.fromiter(map(codes.__getitem__, column), np.int64, len(column)), count


def code_names(labels: set[str | int], *, normalize: bool) -> tuple[dict[str | int, int], int]:
    """Number labels in alphabetical order of how they are spelled, and say how many numbers there are."""
    spelled = {label: spell(label) if normalize else label for label in labels}
    ordered = sorted(set(spelled.values()), key=lambda label: (isinstance(label, str), label))
    numbers = {label: code for code, label in enumerate(ordered)}
    return {label: numbers[text] for label, text in spelled.items()}, len(ordered)


def code_series(column: "pl.Series", *, name: str, normalize: bool) -> tuple[Codes, int]:
    """Code a column of a frame as `code_list` does; only distinct labels become Python objects."""
    import polars as pl

    if column.dtype == pl.Null:
        return np.full(len(column), -1, np.int64), 0
    if column.dtype.is_integer() or column.dtype == pl.Boolean:
        present = column.drop_nulls()
        coded = code_numbers(present.cast(pl.Int8).to_numpy() if column.dtype == pl.Boolean else present.to_numpy())
        count = int(coded.max()) + 1 if len(coded) else 0
        if len(present) == len(column):
            return coded, count
        filled = np.full(len(column), -1, np.int64)
        filled[column.is_not_null().to_numpy()] = coded
        return filled, count
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return code_list(column.to_list(), name=name, normalize=normalize)
    # A category space of its own: the numbers begin at 0, and nothing is kept when the column is gone.
    own = column.cast(pl.String).cast(pl.Categorical(pl.Categories.random()))
    texts = own.unique().drop_nulls()
    numbers, count = code_names(set(texts.cast(pl.String)), normalize=normalize)
    if not numbers:
        return np.full(len(column), -1, np.int64), 0
    table = np.zeros(len(numbers) + 1, np.int64)
    table[texts.to_physical().to_numpy()] = [numbers[text] for text in texts.cast(pl.String)]
    coded = table[own.to_physical().fill_null(0).to_numpy()]
    coded[column.is_null().to_numpy()] = -1
    return coded, count


def code_numbers(column: NDArray[Any]) -> Codes:
    """Code whole numbers, none missing; those that lie close together are moved to 0 at most."""
    if len(column) == 0:
        return column
    lowest, highest = int(column.min()), int(column.max())
    if highest - lowest > SPARE * len(column) + 1000:
        return np.unique(column, return_inverse=True)[1]
    return column if 0 <= lowest <= SPARE * len(column) else column.astype(np.int64) - lowest


def distinct(column: Sequence[Label], *, name: str) -> set[str | int]:
    """Collect the labels of a level that are there."""
    try:
        found = set(column)
    except TypeError as error:
        raise argument_error(f"each {name} label", LABEL, column) from error
    for label in found:
        if not isinstance(label, str | int | np.integer | None):
            raise argument_error(f"each {name} label", LABEL, label)
    return {label for label in found if label is not None}


def spell(label: str | int) -> str | int:
    """Write a label without case, surrounding spaces, and differences of Unicode composition."""
    if not isinstance(label, str):
        return label
    # Case folding can take a composed letter apart, so the text is composed again after it.
    folded = unicodedata.normalize("NFC", label.strip()).casefold()
    return unicodedata.normalize("NFC", folded)
