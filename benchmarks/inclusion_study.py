"""The study of geographic inclusion at its size: 15,300 triplets of two models, and what 45,900 answers to them score.

Six objects in three regions, 100 images of each kind, two models, vectors of 2,048 numbers as InceptionV3 has them and
two more extractors. `triplets` stands beside a walk with one distance at a time, in processes of their own: both must
give every triplet alike. What people choose is drawn here. Goals: 60 s and 1 GB.
"""

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import polars as pl
from numpy.typing import NDArray
from recording import record

from culturekit.core.schemas import TASK1
from culturekit.metrics.inclusion.triplet_distances import ImageSet, image_set, triplets
from culturekit.recipes.inclusion.scores import RealFeatures, score_task1

OBJECTS = ("bag", "car", "cooking pot", "dog", "plate of food", "storefront")
REGIONS = ("Africa", "Europe", "Southeast Asia")
MODELS, EACH, NEAR, FAR, K, BINS = ("dm", "ldm"), 100, 60, 25, 5, 10
WIDTHS = {"inception": 2048, "clip": 512, "dino": 1024}
PLACES = {
    "A": ("real", ("in", 0), ("in", 8)), "B": ("in", ("real", 0), ("real", 8)), "C": ("real", ("in", 0), ("plain", 48)),
    "D": ("real", ("plain", 6), ("in", 8)), "E": ("plain", ("real", 0), ("real", 8)),
}  # fmt: skip
"""Of each combination the reference, and both images with how-many-th furthest they are; 0 is the closest."""

Vectors = NDArray[np.float32]


def images(source: str, width: int) -> ImageSet:
    """Draw the images of a model, or photographs: an object, a region and some of a few dozen looks."""
    cells: list[tuple[str, str | None]] = [(name, region) for name in OBJECTS for region in REGIONS]
    cells += [] if source == "real" else [(name, None) for name in OBJECTS]
    shared, own = np.random.default_rng(width), np.random.default_rng([width, len(source)])
    looks = shared.normal(size=(40, width)).astype(np.float32)
    middles = {cell: shared.normal(size=width).astype(np.float32) for cell in [*cells, *((o, None) for o in OBJECTS)]}
    rows = [middles[cell] + own.normal(size=(EACH, 40)).astype(np.float32) @ looks / 8 for cell in cells]
    labels = [cell for cell in cells for _ in range(EACH)]
    return image_set(
        source, np.concatenate(rows),
        ids=[f"{source}-{name}-{region}-{number % EACH:03}" for number, (name, region) in enumerate(labels)],
        objects=[name for name, _ in labels], regions=[region for _, region in labels],
    )  # fmt: skip


def ours(real: ImageSet, fake: ImageSet) -> list[tuple[str, str, str]]:
    """Give the triplets of a model: reference, first, second."""
    made = triplets(real, fake, near=NEAR, far=FAR)
    return [(row[0], row[1], row[2]) for row in made.select("reference_id", "first_id", "second_id").iter_rows()]


def walk(real: ImageSet, fake: ImageSet) -> list[tuple[str, str, str]]:
    """Give the same by one distance at a time, and by sorting names and distances."""
    known: dict[tuple[str, str | None, bool], list[tuple[str, NDArray[np.float64]]]] = defaultdict(list)
    for one in (real, fake):
        for row in zip(one.ids, one.objects, one.regions, one.vectors, strict=True):
            known[row[1], row[2], one is real].append((row[0], row[3]))
    found = []
    for name in OBJECTS:
        for region in REGIONS:
            kinds = {"real": known[name, region, True], "in": known[name, region, False],
                     "plain": known[name, None, False]}  # fmt: skip
            for of, *places in PLACES.values():
                loneliness = []
                for image, vector in kinds[of]:
                    others = [far(vector, other) for one, other in kinds[of] if one != image]
                    loneliness.append((min(others), image, vector))
                near = sorted(loneliness, key=lambda one: one[:2])[:NEAR]
                left = [one for one in loneliness if one[1] not in {each[1] for each in near}]
                chosen = near + sorted(left, key=lambda one: (-one[0], one[1]))[:FAR]
                for _, image, vector in sorted(chosen, key=lambda one: one[1]):
                    pair = []
                    for kind, place in places:
                        ranked = [(far(vector, other) * (-1 if place else 1), one) for one, other in kinds[kind]]
                        pair.append(sorted(ranked)[max(0, place - 1)][1])
                    found.append((image, pair[0], pair[1]))
    return found


def far(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Give the squared distance of two vectors."""
    return float(np.square(other - one).sum())


WAYS = {"triplets": ours, "walk": walk}


def child(way: str) -> None:
    """Make the triplets of both models one way; say what they are, what it took, and what it held at most."""
    real, fakes = images("real", WIDTHS["inception"]), [images(model, WIDTHS["inception"]) for model in MODELS]
    began = time.process_time()
    found = [WAYS[way](real, fake) for fake in fakes]
    took = time.process_time() - began
    sys.stdout.write(json.dumps({"found": found, "seconds": took, "memory": peak()}))


def peak() -> float:
    """Give the most memory that this process has held, in GB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024 / 1e9


def answers(made: pl.DataFrame) -> pl.DataFrame:
    """Let one person of each region compare each triplet: the nearer one is often chosen."""
    rng = np.random.default_rng(7)
    parts = []
    for place in REGIONS:
        nearer = (made["first_distance"] < made["second_distance"]).to_numpy() ^ (rng.random(made.height) < 0.25)
        pleasing = rng.random(made.height) < 0.5
        ends = [made[name].to_numpy() for name in ("first_id", "second_id")]
        shown = pl.concat_list("reference_id", "first_id", "second_id")
        parts.append(made.select(
            *(name for name in TASK1.schema if name in made.columns),
            annotator_id=pl.Series([f"{place} {number % 20}" for number in range(made.height)]),
            annotator_loc=pl.lit(place), similar_id=pl.Series(np.where(nearer, *ends).astype(str)),
            appealing_id=pl.Series(np.where(pleasing, *ends).astype(str)), confidence=pl.lit("high"), shown=shown,
        ))  # fmt: skip
    return pl.concat(parts).select(list(TASK1.schema)).sort(TASK1.key)


def scoring() -> None:
    """Score the answers, and say what it took."""
    spaces = {name: [images(source, width) for source in ("real", *MODELS)] for name, width in WIDTHS.items()}
    real, *fakes = spaces["inception"]
    table = answers(pl.concat([triplets(real, fake, near=NEAR, far=FAR) for fake in fakes]))
    features = {name: {image: vector for one in sets for image, vector in zip(one.ids, one.vectors, strict=True)}
                for name, sets in spaces.items()}  # fmt: skip
    began = time.process_time()
    manifold = RealFeatures("inception", real.vectors, K)
    scores = score_task1(table, features, manifold, bins=BINS).scores
    cost = {"seconds": time.process_time() - began, "memory": peak()}
    sys.stdout.write(json.dumps({"answers": table.height, **cost, "scores": scores.height}))


def run(way: str) -> dict[str, Any]:
    """Run one way in a process of its own."""
    done = subprocess.run([sys.executable, __file__, way], check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def main() -> None:
    """Compare, and refuse triplets that differ."""
    mine, naive, scored = run("triplets"), run("walk"), run("scores")
    if mine["found"] != naive["found"]:
        raise SystemExit("a walk gives other triplets")
    count = sum(map(len, mine["found"]))
    rows = [
        ["triplets", f"{count:,}", f"{mine['seconds']:.1f}", f"{mine['memory']:.2f}", "as the walk"],
        ["a walk", f"{count:,}", f"{naive['seconds']:.1f}", f"{naive['memory']:.2f}", "-"],
        ["ratio", "", f"{naive['seconds'] / mine['seconds']:.1f}x", "", ""],
        ["score task1, three extractors", f"{scored['answers']:,}", f"{scored['seconds']:.1f}",
         f"{scored['memory']:.2f}", f"{scored['scores']} scores"],
    ]  # fmt: skip
    record(
        "inclusion_study",
        title="Triplets of the study's size, vectors of 2,048, and scores of three answers to each; goals: 60 s, 1 GB",
        command="python benchmarks/inclusion_study.py", table=[["", "rows", "CPU s", "peak memory, GB", "held"], *rows],
    )  # fmt: skip


if __name__ == "__main__":
    if len(sys.argv) > 1:
        scoring() if sys.argv[1] == "scores" else child(sys.argv[1])
    else:
        main()
