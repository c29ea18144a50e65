"""Agreement of people on 576 and twice as many items, three annotators of each of three pools: CPU seconds.

    python benchmarks/agreement.py

Numbers are a scale of five; names are those of the two pictures of an item, of which one is chosen.
"""

import time

import numpy as np
import polars as pl
import scipy.stats  # noqa: F401 - loaded once, before anything is timed
from recording import record

from culturekit.families.agreement import AgreementOptions, score_agreement
from culturekit.records.schemas import ANNOTATIONS

POOLS = ("Africa", "Europe", "Southeast Asia")
ITEMS = 576


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


def main() -> None:
    """Measure each kind of answers."""
    rows: list[list[str]] = []
    for kind in ("numbers", "names"):
        seconds = []
        for items in (ITEMS, 2 * ITEMS):
            table = answers(items, kind)
            began = time.process_time()
            score_agreement(table, options=AgreementOptions())
            seconds.append(time.process_time() - began)
        rows.append([kind, *(f"{one:.2f}" for one in seconds), f"{seconds[1] / seconds[0]:.2f}x"])
    record(
        "agreement",
        title=f"Agreement of nine people in three pools, one criterion, {AgreementOptions().resamples:,} resamples",
        command="python benchmarks/agreement.py",
        table=[["answers", f"CPU-s, {ITEMS} items", f"CPU-s, {2 * ITEMS} items", "growth"], *rows],
    )


if __name__ == "__main__":
    main()
