"""Feature vectors as they come in: checked, and what can be done with them before any metric."""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error

__all__ = ["Features", "blocks", "check_same_width", "feature_rows", "features_digest", "unduplicated"]

Features = NDArray[np.floating]

LARGEST = 1e150
"""Squares of larger numbers overflow."""

ROWS = 4096
"""Rows handled at a time where a copy of them is made."""


def feature_rows(name: str, features: ArrayLike, *, fewest: int = 1) -> Features:
    """Read features, float (n, dim), one row per image; float32 stays float32, everything else becomes float64."""
    try:
        rows = np.asarray(features)
        rows = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(name, "numbers, (n, dim)", features) from error
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise argument_error(name, "one row of numbers per image, (n, dim)", f"shape {rows.shape}")
    if len(rows) < fewest:
        raise argument_error(name, f"at least {fewest} rows", f"{len(rows)}")
    largest = min(LARGEST, float(np.finfo(rows.dtype).max))
    for start, block in blocks(rows):
        usable = (np.abs(block) <= largest).all(axis=1)
        if not usable.all():
            row = start + int(np.argmin(usable))
            worst = rows[row][np.argmin(np.abs(rows[row]) <= largest)]
            raise argument_error(f"{name}[{row}]", "finite, and at most 1e150 in size", float(worst))
    return rows


def check_same_width(first: tuple[str, Features], second: tuple[str, Features]) -> None:
    """Refuse two sets of features that are not of one space."""
    (name, rows), (other, others) = first, second
    if rows.shape[1] != others.shape[1]:
        raise UsageError(
            f"{name} and {other} must come from one extractor",
            expected=f"vectors of {rows.shape[1]} numbers, like {name}",
            found=f"{others.shape[1]} in {other}",
        )


def blocks(rows: Features, size: int = ROWS) -> Iterator[tuple[int, Features]]:
    """Give runs of rows with the number of the first."""
    for start in range(0, len(rows), size):
        yield start, rows[start : start + size]


def features_digest(rows: Features) -> str:
    """Hash features by content: values, their type, and the shape."""
    digest = hashlib.sha256(f"{rows.dtype.str} {rows.shape}".encode())
    for _, block in blocks(rows):
        digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


def unduplicated(features: ArrayLike) -> NDArray[np.bool_]:
    """Mark the rows that no other row equals, bool (n,): of rows that are equal all copies are unmarked.

    Equal pictures have one and the same feature vector, and a neighbourhood of radius zero in which nothing lies.
    """
    rows = feature_rows("features", features, fewest=0)
    # Adding zero makes -0.0 and 0.0, which are equal, have the same bytes.
    plain = np.ascontiguousarray(rows) + np.zeros((), rows.dtype)
    keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
    _, code, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.asarray(counts[code] == 1)
