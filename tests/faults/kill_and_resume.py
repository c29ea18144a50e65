"""Kill a command with SIGKILL at random moments, resume it each time, and compare with an undisturbed run."""

import hashlib
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.killing import killed_after

ROOT = Path(__file__).parents[2]


@dataclass
class Result:
    """What came of it: kills that hit a run at work, runs that came to their end, files that differ."""

    kills: int = 0
    rounds: int = 0
    different: list[str] = field(default_factory=list)


def content(root: Path) -> dict[str, str]:
    """Hash every file below a folder but the run records."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "run.json"]
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def differences(expected: dict[str, str], found: dict[str, str], when: str) -> list[str]:
    """Name the files that are not the same."""
    names = sorted(expected.keys() | found.keys())
    return [f"{when}: {name}" for name in names if expected.get(name) != found.get(name)]


def run_command(recipe: Path, workdir: Path, stated: Sequence[str] = ()) -> list[str]:
    """Give the command that runs a recipe."""
    words = [sys.executable, "-m", "culturekit", "run", str(recipe), "--workdir", str(workdir), "--workers", "2"]
    return [*words, *(word for text in stated for word in ("--set", text))]


def killed(command: Sequence[str], after: float | None, *, fine: tuple[int, ...], group: bool) -> bool:
    """Start a command, its workers in a process group of their own, and kill it; False when it had ended before."""
    quiet, environment = subprocess.DEVNULL, {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        command, stdout=quiet, stderr=quiet, start_new_session=True, env=environment, cwd=ROOT
    )  # fmt: skip
    return killed_after(process, after, fine=fine, group=group)


def kill_and_resume(
    command: Callable[[Path], list[str]], scratch: Path, *, kills: int, seed: int, longest: float | None = None,
    fine: tuple[int, ...] = (0,), compared: Callable[[Path], dict[str, str]] = content,
    ended: Callable[[int], None] = lambda hits: None,
) -> Result:  # fmt: skip
    """Kill and resume until enough kills hit a run at work; a round ends, and is compared, when its run does.

    Half of the kills take the workers along. A kill comes at most `longest` seconds after the start, or any time that
    an undisturbed run takes; `ended` hears how many kills a round had, and before the first that there were none.
    """
    chance, started = random.Random(seed), time.monotonic()
    killed(command(scratch / "undisturbed"), None, fine=fine, group=False)
    longest = longest or time.monotonic() - started
    expected, result = compared(scratch / "undisturbed"), Result()
    ended(0)
    while result.kills < kills:
        out, hits = scratch / f"killed-{result.rounds}", 0
        while killed(
            command(out),
            chance.uniform(0.2, longest) if result.kills + hits < kills else None,
            fine=fine,
            group=chance.random() < 0.5,
        ):
            hits += 1
        result.kills += hits
        result.rounds += 1
        result.different += differences(expected, compared(out), out.name)
        ended(hits)
    return result
