"""Kill a run with SIGKILL at random moments, resume it each time, and compare the result with an undisturbed run.

`python -m tests.faults.kill_and_resume recipes/cube.yaml --kills 30` prints each kill and ends with 0 when every
file but the run records is byte-identical.
"""

import argparse
import hashlib
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.killing import killed_after


@dataclass
class Result:
    """What came of it."""

    kills: list[tuple[float, str]] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


def content(root: Path) -> dict[str, str]:
    """Hash every file below a folder but the run records."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "run.json"]
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run_command(recipe: Path, workdir: Path, stated: Sequence[str] = ()) -> list[str]:
    """The command that is killed."""
    words = [sys.executable, "-m", "culturekit", "run", str(recipe), "--workdir", str(workdir), "--workers", "2"]
    return [*words, *(word for text in stated for word in ("--set", text))]


def kill_once(command: Sequence[str], workdir: Path, after: float, *, group: bool) -> str | None:
    """Start a run, its workers in a process group of their own, and kill it; say which stage was at work.

    None when the run had ended before.
    """
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
    if not killed_after(process, after, group=group):
        return None
    return ", ".join(sorted(path.name for path in workdir.glob(".*.partial"))) or "between stages"


def kill_and_resume(
    recipe: Path, scratch: Path, *, kills: int, seed: int, longest: float, stated: Sequence[str] = ()
) -> Result:
    """Kill and resume until enough kills hit a run at work, then let it end and compare."""
    chance = random.Random(seed)
    undisturbed, workdir = scratch / "undisturbed", scratch / "killed"
    subprocess.run(run_command(recipe, undisturbed, stated), check=True, capture_output=True)
    expected = content(undisturbed)
    result = Result()
    rounds = 0
    while len(result.kills) < kills:
        after = chance.uniform(0.2, longest)
        hit = kill_once(run_command(recipe, workdir, stated), workdir, after, group=chance.random() < 0.5)
        if hit is not None:
            result.kills.append((after, hit))
            continue
        result.different += differences(expected, content(workdir), f"round {rounds}")
        rounds += 1
        workdir = scratch / f"killed-{rounds}"
    subprocess.run(run_command(recipe, workdir, stated), check=True, capture_output=True)
    result.different += differences(expected, content(workdir), "at the end")
    return result


def differences(expected: dict[str, str], found: dict[str, str], when: str) -> list[str]:
    """Name the files that are not the same."""
    names = sorted(expected.keys() | found.keys())
    return [f"{when}: {name}" for name in names if expected.get(name) != found.get(name)]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=5.0, help="seconds until a kill, at most")
    parser.add_argument("--set", action="append", default=[], help="a value of the recipe: key=value")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_resume(
            arguments.recipe, Path(folder), kills=arguments.kills, seed=arguments.seed, longest=arguments.longest,
            stated=arguments.set,
        )  # fmt: skip
    for number, (after, stage) in enumerate(result.kills, start=1):
        sys.stdout.write(f"kill {number:>3} after {after:.2f} s: {stage}\n")
    for name in result.different:
        sys.stdout.write(f"DIFFERENT {name}\n")
    sys.stdout.write(f"{len(result.kills)} kills, {len(result.different)} files different\n")
    return 1 if result.different else 0


if __name__ == "__main__":
    sys.exit(main())
