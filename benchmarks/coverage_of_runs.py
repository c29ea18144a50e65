"""How often intervals hold the truth over many runs of a simulated recipe: the loop, the cells and the table."""

import argparse
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import orjson
from recording import record

from culturekit.core.atomic import write_atomically

__all__ = ["Told", "measure"]

ROUNDING = 1e-9

Told = tuple[list[str], float, float, float, float, float]
"""Of a score: what it is of, its value and limits, what models truly show, and what the images of this run show."""

OneRun = Callable[[int], Sequence[Told]]


def kept_run(one_run: OneRun, folder: Path | None, seed: int) -> Sequence[Told]:
    """Make a run, or read it where it was made."""
    if folder is None:
        return one_run(seed)
    path = folder / f"{seed}.json"
    if not path.is_file():
        write_atomically(path, orjson.dumps(one_run(seed)))
    found: Sequence[Told] = orjson.loads(path.read_bytes())
    return found


def measure(name: str, one_run: OneRun, *, of: Sequence[str], title: str, first: int, runs: int) -> None:
    """Make runs of the seeds from the first on, and record how often limits hold; `of` names what scores are of."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=runs)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--kept", type=Path, help="a folder of finished runs: those in it are not made again")
    given = parser.parse_args()
    cells: dict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
    with ProcessPoolExecutor(given.workers) as pool:
        for rows in pool.map(partial(kept_run, one_run, given.kept), range(first, first + given.runs)):
            for place, value, low, high, true, own in rows:
                held = (float(low - ROUNDING <= shown <= high + ROUNDING) for shown in (true, own))
                cells[tuple(place)].append((true, *held, value - true, high - low))
    table = [(*of, "n", "true", "held", "these images held", "bias", "width")]
    for cell, found in sorted(cells.items()):
        true, held, own_held, off, width = (np.array(column).mean() for column in zip(*found, strict=True))
        numbers = (f"{true:.3f}", f"{held:.3f}", f"{own_held:.3f}", f"{off:+.3f}", f"{width:.3f}")
        table.append((*cell, str(len(found)), *numbers))
    command = f"python benchmarks/{name}.py --runs {given.runs}"
    record(name, title=title.format(runs=given.runs), command=command, table=table)
