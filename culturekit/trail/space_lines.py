"""Two compared cultural spaces in lines of text."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.builders.space.space_diff import CHANGES
from culturekit.counting import counted

_UNDECIDED = "undecided: "


def _cause_of(row: Mapping[str, Any]) -> str:
    """Write the causes of a row, and what is left undecided."""
    sure, open_ones = "+".join(row["causes"]), " or ".join(row["undecided"])
    if sure and open_ones:
        return f"{sure}, {_UNDECIDED}{open_ones}"
    return sure or (f"{_UNDECIDED}{open_ones}" if open_ones else "nothing recorded")


def cause_totals(rows: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Count the changes of each kind by their causes, most frequent causes first."""
    counted = Counter((_cause_of(row), row["change"]) for row in rows.iter_rows(named=True))
    totals = Counter({cause: 0 for cause, _ in counted})
    for (cause, _), count in counted.items():
        totals[cause] += count
    ordered = sorted(totals, key=lambda cause: (-totals[cause], cause))
    return {
        cause: {change: counted[cause, change] for change in CHANGES if counted[cause, change]} for cause in ordered
    }


def diff_lines(rows: pl.DataFrame, notes: Mapping[str, Any], *, show: int) -> Iterator[str]:
    """Tell what differs between two runs, how many rows it made others, and the first rows with their evidence."""
    yield f"what differs: {', '.join(notes['factors']) or 'nothing that is recorded'}"
    for text in notes["missing"]:
        yield f"not to be walked back: {text}"
    counts = Counter(rows["change"])
    yield ", ".join(f"{counts[change]:,} {change}" for change in CHANGES)
    if notes["untold"]:
        others = ", ".join(f"{name} in {counted(count, 'rows')}" for name, count in notes["untold"].items())
        yield f"not told row by row: {others}"
    if rows.height:
        yield f"{'cause':<40} " + " ".join(f"{change:>12}" for change in CHANGES)
        for cause, own in cause_totals(rows).items():
            yield f"{cause:<40} " + " ".join(f"{own.get(change, 0):>12,}" for change in CHANGES)
    for row in rows.head(show).iter_rows(named=True):
        yield from _row_lines(row)
    if rows.height > show:
        yield f"... and {rows.height - show:,} more; --out writes all of them"


def _row_lines(row: Mapping[str, Any]) -> Sequence[str]:
    """Tell a change, its cause, and the evidence below it."""
    name = {"added": row["after"], "removed": row["before"]}.get(row["change"])
    what = name or f"{row['part']} {row['before']} -> {row['after']}"
    head = (
        f"{row['change']} {row['concept']} {row['value']} {row['qid']} {what}: {_cause_of(row)} ({row['stage'] or '?'})"
    )
    return [head, *(f"    {line}" for line in row["because"].splitlines())]
