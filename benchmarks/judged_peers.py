"""Judged means put right by people: ours beside ppi-python, truescore and what others do by hand, on the same arrays.

    pip install -c constraints.txt ppi-python==0.2.3 truescore==0.7.4    # into a folder of their own, on PYTHONPATH
    python benchmarks/judged_peers.py

glide-py 0.11 wants Python 3.12; truescore refuses prompts of which some images are marked, and is not told of them.
The worlds, four ways to judge a group and numbers of runs are those of judged_coverage.py; a row holds the lowest
coverage of a group, and the mean width beside that of people alone.
"""

import sys
from collections.abc import Mapping

import numpy as np
from judged_coverage import GROUPS, RUNS, SEED, WORLDS, Drawn, Values
from numpy.typing import NDArray
from recording import record

from culturekit.core.errors import UsageError
from culturekit.metrics.corrected.judged_means import judged_mean

__all__ = ["main"]

HEAD = ("world", "images", "marked", "way", "runs", "lowest coverage", "width against people alone", "refused")
CHOSEN = (("yes and no", 1000), ("ratings", 1000), ("prompts that differ", 600))


def normal(values: Values, more: float = 0.0) -> tuple[float, float]:
    """Give the limits of a mean."""
    half = 1.96 * np.sqrt(values.var(ddof=1) / len(values) + more)
    return float(values.mean() - half), float(values.mean() + half)


def ways(drawn: Drawn, asked: NDArray[np.bool_]) -> Mapping[str, tuple[float, float]]:
    """Give the limits that each way finds."""
    import ppi_py
    import truescore

    said, judged, others = drawn.people[asked], drawn.judged[asked], drawn.judged[~asked]
    people = np.where(asked, drawn.people, np.nan)
    try:
        ours = judged_mean(drawn.judged, people, clusters=drawn.prompts)
        limits = {
            "culturekit": (ours.corrected.low, ours.corrected.high),
            "people alone": (ours.alone.low, ours.alone.high),
        }
    except UsageError:
        limits = {"culturekit": (np.nan, np.nan), "people alone": (np.nan, np.nan)}
    low, high = ppi_py.ppi_mean_ci(said, judged, others, alpha=0.05)
    limits["ppi-python"] = float(low[0]), float(high[0])
    place = np.flatnonzero(asked)
    for name, estimate in (
        ("truescore, PPI", truescore.ppi_estimate),
        ("truescore, Rogan-Gladen", truescore.rogan_gladen_estimate),
    ):
        if "PPI" in name or set(np.unique(drawn.judged)) <= {0.0, 1.0}:
            try:
                found = estimate(drawn.judged, said, place)
                limits[name] = found.low, found.high
            except ValueError:
                limits[name] = np.nan, np.nan
    half = others.var(ddof=1) / len(others)
    moved = normal(said - judged, half)
    limits["predict then debias"] = moved[0] + float(others.mean()), moved[1] + float(others.mean())
    slope, begin = np.polyfit(judged, said, 1) if judged.std() > 0 else (0.0, said.mean())
    rest = normal(said - begin - slope * judged, slope**2 * drawn.judged.var(ddof=1) / len(drawn.judged))
    mean = begin + slope * float(drawn.judged.mean())
    limits["AIPW, linear"] = rest[0] + mean, rest[1] + mean
    return limits


def main() -> int:
    """Draw every world."""
    rows = []
    for name, images in CHOSEN:
        number, world = next((n, one) for n, one in enumerate(WORLDS) if (one.name, one.images) == (name, images))
        found: dict[str, list[list[tuple[float, float, float]]]] = {}
        for place, group in enumerate(GROUPS):
            for run in range(RUNS):
                rng = np.random.default_rng([SEED, number, place, run])
                drawn, asked = world.draw(group, images, rng), np.zeros(images, bool)
                asked[rng.choice(images, world.marked, replace=False)] = True
                for way, (low, high) in ways(drawn, asked).items():
                    found.setdefault(way, [[] for _ in GROUPS])[place].append((drawn.truth, low, high))
        alone = np.array(found["people alone"])
        for way, each in found.items():
            truth, low, high = np.moveaxis(np.array(each), 2, 0)
            known = np.isfinite(low) & np.isfinite(alone[:, :, 1])
            held = [np.mean(((low <= truth) & (truth <= high))[group][known[group]]) for group in range(len(GROUPS))]
            width = (high - low)[known].mean() / (alone[:, :, 2] - alone[:, :, 1])[known].mean()
            lost = str(int((~np.isfinite(low)).sum()))
            rows.append(
                [name, f"{images:,}", str(world.marked), way, str(low.size), f"{min(held):.1%}", f"{width:.2f}", lost]
            )
    title = "Judged means put right, ours and others' on the same arrays: 95 % intervals, four ways to judge a group"
    command = " ".join(["python benchmarks/judged_peers.py", *sys.argv[1:]])
    record("judged_peers", title=title, command=command, table=[list(HEAD), *rows])
    return 0


if __name__ == "__main__":
    sys.exit(main())
