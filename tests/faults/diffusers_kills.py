"""Kill `generate --backend diffusers:` with SIGKILL at random moments, resume it, and count what was made.

`python -m tests.faults.diffusers_kills --kills 200 --images 2000` makes a tiny pipeline, prints how it went, and ends
with 0 when every file of the finished folder is that of an undisturbed run and no slot was made again but those that
were in flight at a kill.

torch, diffusers and the weights are loaded once: a run is a fork of this process that is killed as any other, for it
has nothing to load. This process itself never computes, for a fork has none of its threads; a
fork makes the pipeline and the prompts, too. Every `--whole`-th run is an interpreter of its own instead, which loads
everything from its files, and is killed on the way as well.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from culturekit.generation.backend import ImageReply, ImageRequest
from culturekit.registry import parse_spec
from culturekit.storage.digests import digest_file
from tests.generation.diffusion.tiny_pipelines import prompts_of, tiny

UNCOMPARED = {"run.json"}

# The share of kills whose clock begins with the first images of a run; that of the others with the process.
AT_WORK = 0.75


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
    """What came of it: kills, those of whole interpreters and those after an image was made; images made, and again."""

    kills: int = 0
    whole: int = 0
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


def grew(run: Run, before: int) -> bool:
    """Tell whether images were made since."""
    return made_so_far(run) > before


def alive() -> bool:
    """Tell that a process has begun."""
    return True


def generate_logged(run: Run, out: Path) -> None:
    """Run the command in this process, and log every slot that the pipeline has made."""
    from culturekit.cli.app import app
    from culturekit.generation.diffusion.diffusers_backend import DiffusersLane

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


def lay_ready(run: Run) -> None:
    """Import all that a run needs and load its weights, for forks to have them; nothing is computed here."""
    from culturekit.cli import app, stages  # noqa: F401
    from culturekit.generation.runner import backend_of
    from culturekit.pipeline.steps import generate_stage  # noqa: F401
    from culturekit.stages import run as run_stage  # noqa: F401

    backend: Any = backend_of(str(parse_spec(run.backend)), None)
    with backend.lanes(run.workers):
        pass


def forked(do: Callable[[], None], *, errors: Path) -> int:
    """Do something in a process of its own; give its id."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        do()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def interpreter(run: Run, out: Path, *, errors: Path) -> int:
    """Start the same run in an interpreter of its own; give its id."""
    with errors.open("wb") as told:
        return subprocess.Popen(
            [sys.executable, "-m", __spec__.name, "--run", *map(str, (run.backend, run.prompts, run.log, out)),
             "--workers", str(run.workers)],
            stdout=subprocess.DEVNULL, stderr=told,
        ).pid  # fmt: skip


def ended(child: int, *, after: float | None = None, begun: Callable[[], bool] = lambda: True, errors: Path) -> bool:
    """Wait for a process, and kill it a while after it has begun; tell whether it came to its end before that."""
    since: float | None = None
    while (found := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if after is not None and since is None and begun():
            since = time.monotonic()
        if after is not None and since is not None and time.monotonic() >= since + after:
            os.kill(child, signal.SIGKILL)
            found = os.waitpid(child, 0)
            break
        time.sleep(0.002)
    if os.WIFSIGNALED(found[1]):
        return False
    if os.waitstatus_to_exitcode(found[1]) != 0:
        raise RuntimeError(errors.read_text(encoding="utf-8", errors="replace")[-3000:])
    return True


def files_of(out: Path) -> dict[str, str]:
    """Hash every file of a finished folder."""
    files = sorted(path for path in out.rglob("*") if path.is_file() and path.name not in UNCOMPARED)
    return {path.relative_to(out).as_posix(): digest_file(path) for path in files}


def kill_and_count(folder: Path, run: Run, *, kills: int, seed: int, longest: float, whole: int = 0) -> DiffusersKills:
    """Kill and resume until there were enough kills; each `whole`-th run is an interpreter of its own."""
    chance, result, errors = random.Random(seed), DiffusersKills(), folder / "errors"
    ended(forked(partial(generate_logged, run, folder / "undisturbed"), errors=errors), errors=errors)
    expected, once = files_of(folder / "undisturbed"), set(logged(run))
    runs = 0
    while result.kills < kills:
        run.log.unlink()
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        done = False
        while not done:
            runs += 1
            before, alone = made_so_far(run), bool(whole) and runs % whole == 0
            after = chance.uniform(0, longest) if result.kills < kills else None
            begun = partial(grew, run, before) if chance.random() < AT_WORK else alive
            child = (
                interpreter(run, out, errors=errors) if alone
                else forked(partial(generate_logged, run, out), errors=errors)
            )  # fmt: skip
            done = ended(child, after=after, begun=begun, errors=errors)
            result.kills += not done
            result.whole += not done and alone
            if not done and made_so_far(run) > before:
                result.hits += 1
                result.most_again += run.in_flight
        compare(run, out, expected, once, result)
    return result


def compare(run: Run, out: Path, expected: dict[str, str], once: set[str], result: DiffusersKills) -> None:
    """Count what a finished round made twice, and where its folder is not that of the undisturbed run."""
    made = logged(run)
    result.made += made.total()
    result.again += made.total() - len(made)
    found = files_of(out)
    result.different += sorted(name for name in expected | found if found.get(name) != expected.get(name))
    if set(made) != once:
        result.different.append("which slots were made")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=1.0, help="seconds to a kill, at most")
    parser.add_argument("--whole", type=int, default=20, help="each so-manieth run is an interpreter of its own")
    parser.add_argument("--run", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        backend, prompts, log, out = given.run
        generate_logged(Run(backend, Path(prompts), Path(log), given.workers, 0), Path(out))
        return 0
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        errors = folder / "errors"
        ended(forked(partial(prepare, folder, given.images), errors=errors), errors=errors)
        backend = f"diffusers:{folder / 'sdxl'}?steps=2&device=cpu&batch={given.batch}"
        run = Run(backend, folder / "prompts.parquet", folder / "log", given.workers, given.batch)
        lay_ready(run)
        result = kill_and_count(
            folder, run, kills=given.kills, seed=given.seed, longest=given.longest, whole=given.whole
        )
    sys.stdout.write(
        f"{result.kills} kills, {result.hits} of them after images were made and {result.whole} of whole interpreters, "
        f"in {result.rounds} rounds of {given.images:,} images: {result.made:,} made, {result.again:,} of them again, "
        f"at most {result.most_again:,} were in flight; {len(result.different)} files different; "
        f"{time.monotonic() - began:.0f} s\n"
    )
    return 0 if result.fine else 1


if __name__ == "__main__":
    sys.exit(main())
