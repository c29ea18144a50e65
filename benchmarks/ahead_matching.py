"""AHEaD matching after encoding: 19,000 images, 50 predictions against 30 references each, beside a loop over pairs.

The loop takes one pair of phrases at a time, as a direct reading of the paper does. It runs on a part of the images,
because all of them take it minutes; its time per image does not depend on how many there are. Both start from
the same vectors and must agree.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from numpy.typing import NDArray
from recording import record

from culturekit.metrics import BestMatches, PhraseLists, best_matches

IMAGES, PROMPTS, PREDICTIONS, REFERENCES = 19_000, 576, 50, 30
PHRASES, WIDTH = 40_000, 384
CASES = ((1, 400), (5, 400), (1, 10_000))
"""Dimensions, and how many distinct phrases the images of a prompt draw their predictions from; from the largest pool
hardly two images of a prompt draw the same."""

TAU = 0.1
PART = 100
"""Images that the loop is timed on."""

REPEATS = 3


@dataclass(frozen=True)
class Task:
    """The phrases of images and prompts, in one dimension or in five."""

    vectors: NDArray[np.float32]
    references: PhraseLists
    predictions: PhraseLists
    groups: NDArray[np.int64]
    dimensions: int

    @property
    def images(self) -> int:
        """How many images there are."""
        return len(self.groups) // self.dimensions

    def first(self, images: int) -> "Task":
        """Keep the first images only."""
        cells = images * self.dimensions
        starts = self.predictions.starts[: cells + 1]
        fewer = PhraseLists(self.predictions.phrases[: starts[-1]], starts)
        return Task(self.vectors, self.references, fewer, self.groups[:cells], self.dimensions)


def draw(images: int, *, dimensions: int, pool: int) -> Task:
    """Draw a task of unit vectors; cells are ordered by image, then dimension."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(PHRASES, WIDTH)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    n_ref, n_pred = REFERENCES // dimensions, PREDICTIONS // dimensions
    groups = PROMPTS * dimensions
    references = rng.integers(0, PHRASES, (groups, n_ref))
    pools = rng.integers(0, PHRASES, (groups, pool // dimensions))
    prompt = np.arange(images) % PROMPTS
    of_cell = (prompt[:, None] * dimensions + np.arange(dimensions)).ravel()
    places = rng.integers(0, pool // dimensions, (len(of_cell), n_pred))
    predictions = pools[of_cell[:, None], places]
    return Task(vectors, even(references), even(predictions), of_cell, dimensions)


def even(table: NDArray[np.int64]) -> PhraseLists:
    """Put lists of one length into flat arrays."""
    return PhraseLists(table.ravel(), np.arange(len(table) + 1) * table.shape[1])


def grouped(task: Task) -> BestMatches:
    """Match all images by one product per prompt and dimension."""
    return best_matches(task.vectors, references=task.references, predictions=task.predictions, groups=task.groups)


def pair_by_pair(task: Task) -> tuple[list[int], list[int]]:
    """Count what each cell covers and what it invents, one dot product at a time."""
    covered, wrong = [], []
    for cell, group in enumerate(task.groups):
        said = task.predictions.phrases[task.predictions.starts[cell] : task.predictions.starts[cell + 1]]
        asked = task.references.phrases[task.references.starts[group] : task.references.starts[group + 1]]
        best_of_reference, best_of_prediction = [-1.0] * len(asked), [-1.0] * len(said)
        for i, prediction in enumerate(said):
            for j, reference in enumerate(asked):
                similarity = float(np.dot(task.vectors[prediction], task.vectors[reference]))
                best_of_reference[j] = max(best_of_reference[j], similarity)
                best_of_prediction[i] = max(best_of_prediction[i], similarity)
        covered.append(sum(best >= TAU for best in best_of_reference))
        wrong.append(sum(best < TAU for best in best_of_prediction))
    return covered, wrong


def check(task: Task) -> None:
    """Make sure that both count the same."""
    found = grouped(task)
    covered, wrong = pair_by_pair(task)
    below = np.add.reduceat(found.of_prediction < TAU, task.predictions.starts[:-1])
    if found.covered(TAU).tolist() != covered or below.tolist() != wrong:
        raise SystemExit("the two ways disagree")


def seconds(work: Callable[[Task], object], task: Task) -> float:
    """Give the CPU time of the fastest of some runs."""
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        work(task)
        times.append(time.process_time() - started)
    return min(times)


def main() -> None:
    """Time both on one dimension and on five, and the growth when images double."""
    rows = []
    for dimensions, pool in CASES:
        task = draw(IMAGES, dimensions=dimensions, pool=pool)
        part = task.first(PART)
        check(part)
        loop = seconds(pair_by_pair, part) * IMAGES / PART
        ours = seconds(grouped, task)
        growth = seconds(grouped, draw(2 * IMAGES, dimensions=dimensions, pool=pool)) / ours
        pairs = IMAGES * PREDICTIONS * REFERENCES // dimensions
        rows.append(
            [
                str(dimensions),
                f"{pool:,}",
                f"{pairs:,}",
                f"{loop:.1f}",
                f"{ours:.2f}",
                f"{loop / ours:.0f}x",
                f"{growth:.2f}x",
            ]
        )
    head = [
        "dimensions",
        "phrases per prompt",
        "pairs",
        "loop, CPU s (scaled)",
        "grouped, CPU s",
        "loop / grouped",
        "twice the images",
    ]
    record(
        "ahead_matching",
        title=f"AHEaD matching of {IMAGES:,} images, {PREDICTIONS} predictions x {REFERENCES} references, "
        f"{PHRASES:,} distinct phrases; the loop ran on {PART} images",
        command="python benchmarks/ahead_matching.py",
        table=[head, *rows],
    )


if __name__ == "__main__":
    main()
