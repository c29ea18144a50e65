"""Agreement of people on 576 and twice as many items, three annotators of each of three pools: CPU seconds.

    python benchmarks/agreement.py

Numbers are a scale of five; names are those of the two pictures of an item, of which one is chosen. The command is
`culturekit annotate aggregate`, a process of its own: for ten items of numbers, that is little more than its start.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import scipy.stats  # noqa: F401 - loaded once, before anything is timed
from recording import record

from culturekit.core.schemas import ANNOTATIONS, RATED_ITEMS
from culturekit.core.tables import write_table
from culturekit.scores.agreement import AgreementOptions, score_agreement

POOLS = ("Africa", "Europe", "Southeast Asia")
ITEMS = 576
SIZES = (10, ITEMS, 2 * ITEMS)
RUNS = 3


def answers(items: int, kind: str) -> pl.DataFrame:
    """Draw answers of one criterion."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(1, 6, (items, 9))
    rows: list[dict[str, object]] = [
        {
            "item_id": f"i{item}",
            "annotator": f"{POOLS[place % 3]}-{place}",
            "annotator_region": POOLS[place % 3],
            "scheme": "task",
            "criterion": kind,
            "value": float(number) if kind == "numbers" else None,
            "choice": f"picture {item}-{number % 2}" if kind == "names" else None,
            "flags": [],
        }
        for item in range(items)
        for place, number in enumerate(numbers[item])
    ]
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def scored(table: pl.DataFrame) -> float:
    """Give the CPU seconds of scoring in this process."""
    began = time.process_time()
    score_agreement(table, options=AgreementOptions())
    return time.process_time() - began


def commanded(table: pl.DataFrame) -> float:
    """Give the CPU seconds of the command, of its process as a whole."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items = pl.DataFrame({"item_id": table["item_id"].unique(), "model": "m", "country": "Mali"})
        absent = [
            pl.lit(None, kind).alias(name) for name, kind in RATED_ITEMS.schema.items() if name not in items.columns
        ]
        write_table(folder, RATED_ITEMS, items.with_columns(absent).select(list(RATED_ITEMS.schema)))
        annotations = write_table(folder, ANNOTATIONS, table)
        arguments = ["annotate", "aggregate", "--annotations", str(annotations), "--out", str(folder / "people")]
        began = children()
        subprocess.run([sys.executable, "-m", "culturekit", *arguments], check=True, capture_output=True)
        return children() - began


def children() -> float:
    """Give the CPU seconds of all processes that were started here and ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure each kind of answers, at the least of some runs."""
    rows: list[list[str]] = []
    ways: dict[str, Callable[[pl.DataFrame], float]] = {"": scored, ", the command": commanded}
    for way, seconds_of in ways.items():
        for kind in ("numbers", "names"):
            tables = [answers(items, kind) for items in SIZES]
            seconds = [min(seconds_of(table) for _ in range(RUNS)) for table in tables]
            rows.append([f"{kind}{way}", *(f"{one:.2f}" for one in seconds), f"{seconds[2] / seconds[1]:.2f}x"])
    record(
        "agreement",
        title=f"Agreement of nine people in three pools, one criterion, {AgreementOptions().resamples:,} resamples",
        command="python benchmarks/agreement.py",
        table=[["answers", *(f"CPU-s, {items} items" for items in SIZES), "growth"], *rows],
    )


if __name__ == "__main__":
    main()
