"""Labels become integer codes: equal labels share one, wherever they are."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from culturekit.metrics.arguments import argument_error, check_choice

if TYPE_CHECKING:
    import polars as pl

__all__ = ["LEVELS", "Labels", "Missing", "code_labels"]

LEVELS = ("continent", "country", "artifact")

Label: TypeAlias = str | int | None
Labels: TypeAlias = "Sequence[Sequence[Label]] | pl.DataFrame"
"""Triples of (continent, country, artifact), or a frame with columns of those names."""

Missing: TypeAlias = Literal["distinct", "equal"]
"""Whether a missing label is unlike every other label, or equal to other missing ones."""


def code_labels(
    labels: Labels, *, levels: Sequence[int] = (0, 1, 2), missing: Missing, normalize: bool
) -> NDArray[np.int64]:
    """Code labels level by level.

    Args:
        labels: n triples of (continent, country, artifact), or a frame with those columns; None is missing.
        levels: those to code; all labels of the others get the code 0.
        missing: `distinct` gives each missing label a code of its own, `equal` gives all of a level the same.
        normalize: whether case, surrounding spaces and Unicode composition are ignored.

    Returns:
        int64, (n, 3): one code per label. The same labels in another order get the same codes.
    """
    check_choice("missing", missing, ("distinct", "equal"))
    columns = columns_of(labels)
    if len(columns[0]) == 0:
        raise argument_error("labels", "at least one (continent, country, artifact)", labels)
    codes = np.zeros((len(columns[0]), len(LEVELS)), np.int64)
    for level in levels:
        codes[:, level] = code_column(columns[level], name=LEVELS[level], missing=missing, normalize=normalize)
    return codes


def columns_of(labels: Labels) -> list[list[Label]]:
    """Take labels apart into one list per level."""
    if not isinstance(labels, Sequence | np.ndarray):
        return columns_of_frame(labels)
    rows = list(labels)
    check_triples(rows)
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in LEVELS]


def check_triples(rows: Sequence[Sequence[Label]]) -> None:
    """Refuse rows of which one is no triple; a text of three letters is none."""
    if set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {len(LEVELS)}:
        return
    for number, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(LEVELS):
            raise argument_error(f"labels[{number}]", "a triple (continent, country, artifact)", row)


def columns_of_frame(frame: "pl.DataFrame") -> list[list[Label]]:
    """Take the label columns of a frame."""
    import polars as pl

    if not isinstance(frame, pl.DataFrame):
        raise argument_error("labels", "a sequence of triples, or a polars DataFrame", frame)
    if not set(LEVELS) <= set(frame.columns):
        raise argument_error("labels", f"a frame with the columns {', '.join(LEVELS)}", frame.columns)
    return [frame[level].to_list() for level in LEVELS]


def code_column(column: Sequence[Label], *, name: str, missing: Missing, normalize: bool) -> NDArray[np.int64]:
    """Code the labels of one level in alphabetical order, and the missing ones after them."""
    spelled = {label: spell(label) if normalize else label for label in distinct(column, name=name)}
    ordered = sorted(set(spelled.values()), key=lambda label: (isinstance(label, str), label))
    numbers = {label: code for code, label in enumerate(ordered)}
    codes: dict[Label, int] = {None: -1, **{label: numbers[text] for label, text in spelled.items()}}
    coded = np.fromiter(map(codes.__getitem__, column), np.int64, len(column))
    gone = coded < 0
    coded[gone] = len(ordered) + (np.arange(gone.sum()) if missing == "distinct" else 0)
    return coded


def distinct(column: Sequence[Label], *, name: str) -> set[str | int]:
    """Collect the labels of a level that are there."""
    rule = "a text, a whole number or None"
    try:
        found = set(column)
    except TypeError as error:
        raise argument_error(f"each {name} label", rule, column) from error
    for label in found:
        if not isinstance(label, str | int | np.integer | None):
            raise argument_error(f"each {name} label", rule, label)
    return {label for label in found if label is not None}


def spell(label: str | int) -> str | int:
    """Write a label without case, surrounding spaces, and differences of Unicode composition."""
    if not isinstance(label, str):
        return label
    # Case folding can take a composed letter apart, so the text is composed again after it.
    folded = unicodedata.normalize("NFC", label.strip()).casefold()
    return unicodedata.normalize("NFC", folded)
