"""Rows of `scores` tables: read as they stand, and compared with what was worked out again."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from tests.oracles.averages import Answer

TOLERANCE = 1e-8  # Relative, or absolute below 1: what is left after rounding and the t quantile worked out another way


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read a table of scores; params are taken apart under `about`."""
    return [{**row, "about": json.loads(row["params"])} for row in pl.read_parquet(path).iter_rows(named=True)]


def close(stated: float | None, found: float | None, *, tolerance: float = TOLERANCE) -> bool:
    """Tell whether two numbers are the same but for rounding; null and NaN both mean that there is none."""
    one = math.nan if stated is None else stated
    other = math.nan if found is None else found
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other or abs(one - other) <= tolerance * max(1.0, abs(other))


def assert_row(
    row: Mapping[str, Any], answer: Answer, n: int, said: Mapping[str, object], *, tolerance: float = TOLERANCE
) -> None:
    """Make sure that a row is what was worked out again; `said` are params that follow from the same tables."""
    pairs = {"value": answer.value, "ci_low": answer.low, "ci_high": answer.high}
    wrong: dict[str, object] = {
        name: (row[name], found) for name, found in pairs.items() if not close(row[name], found, tolerance=tolerance)
    }
    stated = {"n": row["n"], **{name: row["about"].get(name) for name in said}}
    wrong |= {name: (stated[name], found) for name, found in {"n": n, **said}.items() if not same(stated[name], found)}
    assert wrong == {}, f"not what the tables give: {wrong} of {row}"


def same(stated: object, found: object) -> bool:
    """Tell whether two params are equal, numbers but for rounding."""
    if isinstance(stated, float) and isinstance(found, float):
        return close(stated, found)
    return stated == found
