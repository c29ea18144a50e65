"""What the runner adds to a pipeline: files, hashes, rows and a journal, against a bare loop of the same calls.

Both make the same pictures at the same batch size in one process, in pairs of which every other begins with the runner,
so that what else the machine does falls on both. Time of the processor and of the clock are told apart: the first is
what the runner costs, the second what it delays. The pipeline is a tiny one with random weights; a real one is slower,
and the share of the runner smaller. On a GPU, `--device cuda` names it in the record.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
import polars as pl
from tiny_pipeline import save_pipeline

from culturekit.core.schemas import PROMPTS
from culturekit.core.stage import Work
from culturekit.core.torch_places import same_bits
from culturekit.generation.backend import ImageRequest, Picture
from culturekit.generation.diffusion.diffusers_backend import DiffusersBackend, Sources
from culturekit.generation.diffusion.diffusers_folder import Options, find_pipeline
from culturekit.generation.picture_store import Maker
from culturekit.generation.runner import ImagePlan, held_shards, list_requests, make_held

__all__ = ["Contest"]

LIMIT = 1.05

BUSY = 0.5
"""A load for each core above which the machine is called busy."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of the processor, all threads together, and of the clock."""

    processor: float
    clock: float


class Contest:
    """One pipeline, called by the runner and by a bare loop."""

    def __init__(
        self, folder: Path, *, images: int, batch: int, steps: int, device: str, size: str, saved: Path | None = None
    ) -> None:
        """Load the weights of a saved pipeline, or of a tiny one, and warm up."""
        pipeline = saved or save_pipeline(folder / "pipeline", "sdxl")
        options = Options(steps=steps, batch=batch, device=device)
        self.backend = DiffusersBackend(Sources(find_pipeline(str(pipeline), asked_by="contest"), None, ()), options)
        rows = [
            {"prompt_id": f"p{n:05d}", "text": f"dish {n}", "benchmark": "b", "kind": "cube", "language": "en",
             "template_id": "t"} for n in range(images)
        ]  # fmt: skip
        prompts = pl.DataFrame(rows, schema=PROMPTS.schema)
        self.requests = list_requests(prompts, ImagePlan(size=size), 0)
        self.folder, self.batch = folder, batch
        self.bare(self.requests[:batch])

    def bare(self, requests: Sequence[ImageRequest]) -> Taken:
        """Call the pipeline alone, batch by batch."""
        with self.backend.lanes(1) as lanes:
            call = lanes[0].call
            lanes[0].generate(requests[:1])
            began = now()
            for start in range(0, len(requests), self.batch):
                with same_bits():
                    call.numbers(requests[start : start + self.batch])
            return since(began)

    def run(self, number: int) -> Taken:
        """Let the runner make the same pictures as files and rows."""
        out, scratch = self.folder / f"out-{number}", self.folder / f"scratch-{number}"
        out.mkdir()
        scratch.mkdir()
        work = Work({}, out, scratch, OneWorker(), Silent())
        began = now()
        shards = held_shards(work, Maker("tiny", "diffusers"), "png", self.requests, self.backend)
        made = sum(make_held(lambda shard: 0, shards, backend=self.backend, work=work))
        if made != len(self.requests):
            raise RuntimeError(f"{made} images made")
        return since(began)

    def alone(self, number: int) -> Taken:
        """Let the runner keep pictures that cost nothing to make, for what it costs by itself."""
        drawn = self.backend
        self.backend = Free(self.requests, drawn.batch_size)  # type: ignore[assignment]
        try:
            return self.run(number)
        finally:
            self.backend = drawn

    def pair(self, number: int) -> tuple[Taken, Taken]:
        """Let both make the pictures, the runner first in every other pair; give the bare loop's and the runner's."""
        if number % 2:
            run = self.run(number)
            return self.bare(self.requests), run
        return self.bare(self.requests), self.run(number)


class Free:
    """A backend whose pictures, noise of the size asked for, are there at once."""

    knows_truth, version = False, "free"

    def __init__(self, requests: Sequence[ImageRequest], batch: int) -> None:
        """Draw one picture for all."""
        size = (requests[0].height or 64, requests[0].width or 64, 3)
        self.pixels = np.random.default_rng(0).integers(0, 256, size, np.uint8)
        self.batch_size = batch

    @contextmanager
    def lanes(self, workers: int) -> Iterator[Sequence["Free"]]:
        """Be the only lane."""
        yield [self]

    def generate(self, requests: Sequence[ImageRequest]) -> list[Picture]:
        """Answer at once."""
        return [Picture(self.pixels, seed_honoured=True) for _ in requests]


def now() -> Taken:
    """Read both clocks."""
    return Taken(time.process_time(), time.perf_counter())


def since(began: Taken) -> Taken:
    """Give what went by on both clocks."""
    ended = now()
    return Taken(ended.processor - began.processor, ended.clock - began.clock)


class OneWorker:
    """An engine that only says how many workers there are."""

    workers = 1

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Do nothing: the process that holds the weights does the work."""
        raise NotImplementedError


class Silent:
    """Progress that nobody hears."""

    def begin(self, total: int, unit: str) -> None:
        """Hear nothing."""

    def advance(self, done: int) -> None:
        """Hear nothing."""

    def tell(self, totals: str) -> None:
        """Hear nothing."""


def main() -> int:
    """Take turns, and record the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", default="64x64")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        contest = Contest(
            Path(made), images=given.images, batch=given.batch, steps=given.steps, device=given.device, size=given.size
        )
        load = os.getloadavg()[0] / (os.cpu_count() or 1)
        pairs = [contest.pair(number) for number in range(given.rounds)]
        alone = [contest.alone(given.rounds + number) for number in range(given.rounds)]
        device = contest.backend.places[0].name
    each = [(1e3 * one.processor / given.images, 1e3 * one.clock / given.images) for one in alone]
    ratio = tell(pairs, each, device, load, f"{given.images}, {given.batch}, {given.steps}, {given.size}")
    return 0 if ratio <= LIMIT else 1


def tell(
    pairs: Sequence[tuple[Taken, Taken]], alone: Sequence[tuple[float, float]], device: str, load: float, what: str
) -> float:
    """Record the pairs; give the ratio that counts, that of the processor."""
    from recording import record

    processor = [run.processor / bare.processor for bare, run in pairs]
    clock = [run.clock / bare.clock for bare, run in pairs]
    record(
        "generation_overhead",
        title="The runner against the pipeline called in a bare loop, same batches, in turns",
        command=" ".join(["OMP_NUM_THREADS=1 python benchmarks/generation_overhead.py", *sys.argv[1:]]),
        table=[
            ["what", "value"],
            ["device", device],
            ["images, batch, steps, size", what],
            ["pairs", f"{len(pairs)}"],
            ["the machine", f"{'busy with other work' if load > BUSY else 'at rest'}: load {load:.1f} for each core"],
            ["bare loop, seconds of the processor (median)", f"{median(bare.processor for bare, _ in pairs):.2f}"],
            ["runner, seconds of the processor (median)", f"{median(run.processor for _, run in pairs):.2f}"],
            ["runner / bare loop, processor (median of pairs; limit 1.05)", f"{median(processor):.3f}"],
            ["of the pairs, lowest to highest", f"{min(processor):.3f} to {max(processor):.3f}"],
            ["runner / bare loop, clock (median of pairs)", f"{median(clock):.3f}"],
            ["runner, pictures that cost nothing: ms of the processor an image", f"{median(a for a, _ in alone):.2f}"],
            ["the same by the clock: it waits for the disk", f"{median(b for _, b in alone):.2f}"],
        ],
    )
    return median(processor)


if __name__ == "__main__":
    sys.exit(main())
