"""Kill `index embed` with SIGKILL at random moments, resume it, and count what was encoded.

`python -m tests.faults.embed_kills --kills 30 --images 10000` makes the images once, prints how it went, and ends with
0 when every table and vector is that of an undisturbed run and no picture was encoded again but those of the shards
that were in flight at a kill.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from culturekit.defaults import PICTURES_PER_SHARD
from culturekit.generation.simulated.render import DRAWING_NUMBERS, Subject, draw
from culturekit.records.schemas import IMAGES
from culturekit.storage.digests import digest_bytes, digest_file
from culturekit.storage.picture_files import encoded
from culturekit.storage.tables import write_table
from tests.builders.counting_encoder import logged
from tests.faults.killing import killed_after

ROOT = Path(__file__).parents[2]
SIDE = 64
DRAWN_AT_ONCE = 250
STARTED = 0.2  # seconds from the start of the command to the first moment of a kill


@dataclass
class EmbedKills:
    """What came of it: kills that hit a run at work, pictures encoded, again, and in flight at most; files apart."""

    kills: int = 0
    rounds: int = 0
    encoded: int = 0
    again: int = 0
    most_again: int = 0
    different: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        """Tell whether nothing was lost and nothing done again without need."""
        return not self.different and self.again <= self.most_again


def images_of(folder: Path, count: int) -> Path:
    """Draw images with the simulated backend's renderer, once, and list them in a table."""
    table = folder / "images.parquet"
    if table.exists():
        return table
    folder.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor() as pool:
        rows = [row for some in pool.map(partial(drawn, folder, count), range(0, count, DRAWN_AT_ONCE)) for row in some]
    return write_table(folder, IMAGES, pl.DataFrame(rows, schema=IMAGES.schema))


def drawn(folder: Path, count: int, start: int) -> list[dict[str, object]]:
    """Draw a run of images."""
    run = range(start, min(start + DRAWN_AT_ONCE, count))
    numbers = np.random.default_rng(start).random((len(run), DRAWING_NUMBERS))
    subjects = [Subject(f"Q{number % 997}", ("BR", "JP", "NG", "FR")[number % 4]) for number in run]
    return [
        image_row(folder, number, pixels)
        for number, pixels in zip(run, draw(subjects, numbers, size=SIDE, confusability=0.0), strict=True)
    ]


def image_row(
    folder: Path, number: int, pixels: "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]"
) -> dict[str, object]:
    """Save an image and describe it."""
    content = encoded(pixels)
    (folder / f"{number:06d}.png").write_bytes(content)
    return {
        "image_id": f"{number:06d}", "path": f"{number:06d}.png", "model": "simulated", "rewriter": "off",
        "provider_params": "{}", "sha256": digest_bytes(content), "width": SIDE, "height": SIDE, "status": "ok",
    }  # fmt: skip


def embed_command(images: Path, out: Path, log: Path, *, workers: int, slow: float, in_processes: bool) -> list[str]:
    """The command that is killed, in a process that knows the encoder that logs."""
    spec = f"counting?batch=32&slow={slow}&log={log}" + ("&weights=none" if in_processes else "")
    program = "import sys; from tests.faults.embed_kills import run; run(sys.argv[1:])"
    given = ["index", "embed", "--images", str(images), "--encoder", spec, "--out", str(out), "--workers", str(workers)]
    return [sys.executable, "-c", program, *given]


def run(arguments: Sequence[str]) -> None:
    """Run a command of culturekit with the encoder that logs."""
    from culturekit.cli.app import app
    from tests.builders.counting_encoder import register

    register()
    app(list(arguments))


def files_of(out: Path) -> dict[str, str]:
    """Hash the vectors and tables of a finished folder."""
    return {path.name: digest_file(path) for path in sorted(out.glob("*")) if path.suffix in {".npy", ".parquet"}}


def killed(command: list[str], after: float | None) -> bool:
    """Start a command and kill it after some seconds, or never; False when it had ended before."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return killed_after(subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment, cwd=ROOT), after)


def kill_and_count(
    folder: Path, images: Path, *, kills: int, workers: int, seed: int, slow: float, shards_in_flight: int
) -> EmbedKills:
    """Kill and resume until enough kills hit a run at work."""
    chance, log = random.Random(seed), folder / "log"
    command = partial(embed_command, images, log=log, workers=workers, slow=slow, in_processes=False)
    started = time.monotonic()
    killed(command(folder / "undisturbed"), None)
    longest = time.monotonic() - started
    expected, once = files_of(folder / "undisturbed"), len(logged(log))
    result = EmbedKills()
    while result.kills < kills:
        log.unlink()
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        hits = 0
        while killed(command(out), moment(chance, longest) if result.kills + hits < kills else None):
            hits += 1
        result.kills += hits
        result.most_again += hits * shards_in_flight * PICTURES_PER_SHARD
        result.encoded += len(logged(log))
        result.again += len(logged(log)) - once
        result.different += [name for name in expected if files_of(out).get(name) != expected[name]]
        if len(set(logged(log))) != once:
            result.different.append("which pictures were encoded")
    return result


def moment(chance: random.Random, longest: float) -> float:
    """Draw the seconds until a kill."""
    return STARTED + chance.uniform(0, longest)


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slow", type=float, default=0.05, help="seconds that the encoder takes per batch of 32")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        images = images_of(folder / "images", given.images)
        result = kill_and_count(
            folder, images, kills=given.kills, workers=given.workers, seed=given.seed, slow=given.slow,
            shards_in_flight=2,
        )  # fmt: skip
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds: {result.encoded:,} pictures encoded, {result.again:,} of "
        f"them again, at most {result.most_again:,} were in flight; {len(result.different)} files different\n"
    )
    return 0 if result.fine else 1


if __name__ == "__main__":
    sys.exit(main())
