"""Rows of `scores` tables: read as they stand, and compared with what was worked out again."""

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.verify.chain import Ledger
from tests.oracles.averages import Answer

SCORES_FILE = "scores.parquet"
CHECK = "scores"

TOLERANCE = 1e-8  # Relative, or absolute below 1: what is left after rounding and the t quantile worked out another way


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a table of scores; each row with its number, and its params taken apart under `about`."""
    rows = pl.read_parquet(path).with_row_index("row").to_dicts()
    return [{**row, "about": json.loads(row["params"])} for row in rows]


def close(stated: float | None, found: float | None, *, tolerance: float = TOLERANCE) -> bool:
    """Tell whether two numbers are the same but for rounding; null and NaN both mean that there is none."""
    one = math.nan if stated is None else stated
    other = math.nan if found is None else found
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or abs(one - other) <= tolerance * max(1.0, abs(other))


def differences(
    row: Mapping[str, Any], answer: Answer, n: int | None, tolerance: float
) -> Iterator[tuple[str, str, str]]:
    """List what a row says otherwise than was found: the column, what was found, what stands there."""
    numbers = {"value": answer.value, "ci_low": answer.low, "ci_high": answer.high}
    for column, found in numbers.items():
        if not close(row[column], found, tolerance=tolerance):
            yield column, f"{found!r}", f"{row[column]!r}"
    if n is not None and row["n"] != n:
        yield "n", str(n), str(row["n"])


def compare_row(
    folder: str,
    row: Mapping[str, Any],
    answer: Answer,
    n: int | None,
    how: str,
    ledger: Ledger,
    *,
    tolerance: float = TOLERANCE,
    said: Mapping[str, object] | None = None,
) -> bool:
    """Compare a row with what was worked out again; `said` are params that follow from the same tables."""
    wrong = list(differences(row, answer, n, tolerance))
    wrong += [
        (f"params.{key}", repr(value), repr(row["about"].get(key)))
        for key, value in (said or {}).items()
        if not same(row["about"].get(key), value)
    ]
    for column, found, stated in wrong:
        wrong_row(folder, row, f"{column} is not what the tables give", expected=found, found=stated, ledger=ledger)
    ledger.judge(folder, row, "wrong" if wrong else "verified", how)
    return not wrong


def same(stated: object, found: object) -> bool:
    """Tell whether two params are equal, numbers but for rounding."""
    if isinstance(stated, float) and isinstance(found, float):
        return close(stated, found)
    return stated == found


def wrong_row(
    folder: str, row: Mapping[str, Any], problem: str, *, expected: object, found: object, ledger: Ledger
) -> None:
    """Say that a score is not what it should be."""
    about = row["about"]
    kernel = "".join(f", {about[key]}" for key in ("kernel", "labels", "scorer") if about.get(key))
    place = ", ".join(str(row[key]) for key in ("model", "concept", "country", "group") if row[key])
    where = f"{folder}/{SCORES_FILE} row {row['row']} ({row['metric']}, {place}{kernel})"
    ledger.broken(CHECK, where, problem, expected=expected, found=found)
