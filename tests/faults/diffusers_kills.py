"""Kill `generate --backend diffusers:` with SIGKILL at random moments, resume it, and count what was made.

`python -m tests.faults.diffusers_kills --kills 200 --images 2000` makes a tiny pipeline, prints how it went, and ends
with 0 when every file of the finished folder is that of an undisturbed run and no slot was made again but those that
were in flight at a kill. torch and diffusers are imported once: each run is a fork that is killed as a process of its
own is. This process itself starts no thread, for a fork has none of them: a fork makes the pipeline and the prompts,
too.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from culturekit.generation.backend import ImageReply, ImageRequest
from culturekit.storage.digests import digest_file
from tests.generation.tiny_pipelines import prompts_of, tiny

__all__ = ["DiffusersKills", "Run", "kill_and_count"]

UNCOMPARED = {"run.json"}


@dataclass(frozen=True, slots=True)
class Run:
    """What is run: so many lanes, each with batches of one length."""

    backend: str
    prompts: Path
    log: Path
    workers: int
    batch: int

    @property
    def in_flight(self) -> int:
        """How many images a kill can cost: each lane has a batch at work and one that waits; one is being kept."""
        return (2 * self.workers + 1) * self.batch


@dataclass
class DiffusersKills:
    """What came of it: kills, those after an image was made, images made, again, in flight at most; files apart."""

    kills: int = 0
    hits: int = 0
    rounds: int = 0
    made: int = 0
    again: int = 0
    most_again: int = 0
    different: list[str] = field(default_factory=list)

    @property
    def fine(self) -> bool:
        """Tell whether nothing was lost and nothing made again without need."""
        return not self.different and self.again <= self.most_again


def logged(run: Run) -> Counter[str]:
    """Count how often each slot was made."""
    return Counter(run.log.read_text(encoding="ascii").splitlines())


def made_so_far(run: Run) -> int:
    """Measure the log."""
    return run.log.stat().st_size if run.log.exists() else 0


def generate_logged(run: Run, out: Path) -> None:
    """Run the command in this process, and log every slot that the pipeline has made."""
    from culturekit.cli.app import app
    from culturekit.generation.diffusers_lane import DiffusersLane

    make = DiffusersLane.generate

    def logging(self: DiffusersLane, requests: Sequence[ImageRequest]) -> list[ImageReply]:
        replies = make(self, requests)
        lines = "".join(f"{one.prompt_id}/{one.repeat}/{one.slot}\n" for one in requests)
        with run.log.open("a", encoding="ascii") as file:
            file.write(lines)
        return replies

    DiffusersLane.generate = logging  # type: ignore[method-assign]
    arguments = ["generate", "--backend", run.backend, "--prompts", run.prompts, "--out", out, "--size", "16x16"]
    app([*map(str, arguments), "--workers", str(run.workers), "--json"], standalone_mode=False)


def prepare(folder: Path, images: int) -> None:
    """Make the pipeline and the prompts."""
    tiny(folder)
    prompts_of(folder, images)


def forked(do: Callable[[], None], *, after: float | None = None) -> bool:
    """Do something in a process of its own and kill it after a while; tell whether it was killed before its end."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            do()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    if after is not None:
        ends = time.monotonic() + after
        while time.monotonic() < ends:
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                return False
            time.sleep(0.002)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    if os.waitstatus_to_exitcode(status) != 0:
        raise RuntimeError(f"the run ended with {os.waitstatus_to_exitcode(status)}")
    return False


def files_of(out: Path) -> dict[str, str]:
    """Hash every file of a finished folder."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name not in UNCOMPARED)
    return {path.relative_to(out).as_posix(): digest_file(path) for path in files}


def kill_and_count(folder: Path, run: Run, *, kills: int, seed: int, longest: float) -> DiffusersKills:
    """Kill and resume until enough kills hit a run at work."""
    chance, result = random.Random(seed), DiffusersKills()
    forked(partial(generate_logged, run, folder / "undisturbed"))
    expected, once = files_of(folder / "undisturbed"), set(logged(run))
    while result.kills < kills:
        run.log.unlink()
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        going = True
        while going:
            before = made_so_far(run)
            after = chance.uniform(0, longest) if result.kills < kills else None
            going = forked(partial(generate_logged, run, out), after=after)
            result.kills += going
            if going and made_so_far(run) > before:
                result.hits += 1
                result.most_again += run.in_flight
        made = logged(run)
        result.made += made.total()
        result.again += made.total() - len(made)
        found = files_of(out)
        result.different += sorted(name for name in expected | found if found.get(name) != expected.get(name))
        if set(made) != once:
            result.different.append("which slots were made")
    return result


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=4.0, help="seconds to a kill, at most")
    given = parser.parse_args()
    import diffusers

    for part in ("StableDiffusionXLPipeline", "AutoencoderKL", "UNet2DConditionModel", "EulerDiscreteScheduler"):
        getattr(diffusers, part)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        forked(partial(prepare, folder, given.images))
        backend = f"diffusers:{folder / 'sdxl'}?steps=2&device=cpu&batch={given.batch}"
        run = Run(backend, folder / "prompts.parquet", folder / "log", given.workers, given.batch)
        result = kill_and_count(folder, run, kills=given.kills, seed=given.seed, longest=given.longest)
    sys.stdout.write(
        f"{result.kills} kills, {result.hits} of them while images were made, in {result.rounds} rounds "
        f"(diffusers {diffusers.__version__}): {result.made:,} images made, {result.again:,} of them again, at most "
        f"{result.most_again:,} were in flight; {len(result.different)} files different\n"
    )
    return 0 if result.fine else 1


if __name__ == "__main__":
    sys.exit(main())
