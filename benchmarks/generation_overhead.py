"""What the runner adds to a pipeline: files, hashes, rows and a journal, against a bare loop of the same calls.

Both make the same pictures at the same batch size, in turns, in one process; the pipeline is a tiny one with random
weights, at so many steps that a picture takes about as long as it can be waited for. The real thing is slower, and the
share of the runner smaller. On a GPU, `--device cuda` names it in the record.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import TypeVar

import polars as pl
from tiny_pipeline import save_pipeline

from culturekit.generation.backend import ImageRequest
from culturekit.generation.diffusers_backend import DiffusersBackend, Sources
from culturekit.generation.diffusers_folder import find_pipeline
from culturekit.generation.diffusers_options import Options
from culturekit.generation.held_runner import held_shards, make_held
from culturekit.generation.image_rows import Maker
from culturekit.generation.runner import ImagePlan, list_requests
from culturekit.records.schemas import PROMPTS
from culturekit.records.work import Work
from culturekit.torch_places import same_bits

__all__ = ["Contest"]

LIMIT = 1.05

Item = TypeVar("Item")
Result = TypeVar("Result")


class Contest:
    """One pipeline, called by the runner and by a bare loop."""

    def __init__(self, folder: Path, *, images: int, batch: int, steps: int, device: str, size: str) -> None:
        """Load the weights and warm up."""
        pipeline = save_pipeline(folder / "pipeline", "sdxl")
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

    def bare(self, requests: Sequence[ImageRequest]) -> float:
        """Call the pipeline alone, batch by batch; give the seconds."""
        with self.backend.lanes(1) as lanes:
            call = lanes[0].call
            lanes[0].generate(requests[:1])
            started = time.perf_counter()
            for start in range(0, len(requests), self.batch):
                with same_bits():
                    call.numbers(requests[start : start + self.batch])
            return time.perf_counter() - started

    def run(self, number: int) -> float:
        """Let the runner make the same pictures as files and rows; give the seconds."""
        out, scratch = self.folder / f"out-{number}", self.folder / f"scratch-{number}"
        out.mkdir()
        scratch.mkdir()
        work = Work({}, out, scratch, OneWorker(), Silent())
        started = time.perf_counter()
        shards = held_shards(work, Maker("tiny", "diffusers"), "png", self.requests, self.backend)
        made = sum(make_held(lambda shard: 0, shards, backend=self.backend, work=work))
        if made != len(self.requests):
            raise RuntimeError(f"{made} images made")
        return time.perf_counter() - started


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
    from recording import record

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
        pairs = [(contest.bare(contest.requests), contest.run(number)) for number in range(given.rounds)]
        device = contest.backend.places[0].name
    ratio = median(run / bare for bare, run in pairs)
    record(
        "generation_overhead",
        title="The runner against the pipeline called in a bare loop, same batches, in turns",
        command="python benchmarks/generation_overhead.py",
        table=[
            ["what", "value"],
            ["device", device],
            ["images, batch, steps, size", f"{given.images}, {given.batch}, {given.steps}, {given.size}"],
            ["bare loop, seconds (median)", f"{median(bare for bare, _ in pairs):.2f}"],
            ["runner, seconds (median)", f"{median(run for _, run in pairs):.2f}"],
            ["runner / bare loop (median of rounds; limit 1.05)", f"{ratio:.3f}"],
        ],
    )
    sys.stdout.write(f"runner / bare loop: {ratio:.3f} on {device}, rounds {[round(r / b, 3) for b, r in pairs]}\n")
    return 0 if ratio <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
