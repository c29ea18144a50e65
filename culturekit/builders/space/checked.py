"""What people who judged a sample of a cultural space found of it: carried along with a release, and put in words."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.digests import digest_file
from culturekit.core.schemas import SPACE_CHECK
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, write_table

ARTIFACTS = "artifacts"
ALL = "all"
UNCHECKED = "Nobody judged a sample of it: how many of its rows are wrong is not known."
OTHERWISE = "The sample was drawn from other candidates than those released, such as before a review."


def carry_check(work: Work, checked: Path, kept: Sequence[Path]) -> dict[str, Any]:
    """Put what was found beside a release; give a note where the sample is of other candidates."""
    rows = read_table(checked, SPACE_CHECK)
    write_table(work.out, SPACE_CHECK, rows)
    return {} if set(rows["kept"]) <= set(map(digest_file, kept)) else {"checked": OTHERWISE}


def check_lines(rows: pl.DataFrame) -> Iterator[tuple[str, str, str, str]]:
    """Write what was found, of all, by concept and by country: measure, where, value with interval, how many judged."""
    part = rows.filter(pl.col("concept").is_null() | pl.col("country").is_null())
    for row in part.sort("measure", "country", "concept", nulls_last=False).iter_rows(named=True):
        value, low, high = (row[name] for name in ("value", "ci_low", "ci_high"))
        found = f"{100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        if row["measure"] == ARTIFACTS:
            found = f"{value:,.0f} ({low:,.0f} to {high:,.0f}), where {row['judged']:,} were kept"
        yield row["measure"], row["concept"] or row["country"] or ALL, found, f"{row['answered']:,} of {row['units']:,}"


def check_beside(space: Path) -> Path | None:
    """Find what people found of a space, where it was checked."""
    path = space.parent / f"{SPACE_CHECK.name}.parquet"
    return path if path.is_file() else None


def compared(*tables: Path | None) -> Iterator[str]:
    """Compare what was found of two spaces, of all and by concept, where one of them was checked."""
    sides: list[Mapping[tuple[str, str], str]] = [
        {(measure, where): found for measure, where, found, _ in check_lines(
            read_table(path, SPACE_CHECK).filter(pl.col("country").is_null()))} if path else {}
        for path in tables
    ]  # fmt: skip
    for measure, where in sorted({key for side in sides for key in side}):
        before, after = (side.get((measure, where), "not checked") for side in sides)
        yield f"{measure}, {where}: {before} -> {after}"
