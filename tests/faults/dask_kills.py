"""Kill workers of a dask cluster with SIGKILL at random moments of a run, and compare with the local engine.

`python tests/faults/dask_kills.py recipes/cube.yaml --kills 20` starts a scheduler and workers on this machine, hands
runs to them, prints each kill, and ends with 0 when every file but the run records is byte-identical.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __package__ in {None, ""}:
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.faults.kill_and_resume import content, differences

__all__ = ["Result", "dask_kills"]


@dataclass
class Result:
    """What came of it."""

    kills: list[tuple[float, str]] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


def command(recipe: Path, workdir: Path, *options: str) -> list[str]:
    """The command that is run."""
    return [sys.executable, "-m", "culturekit", "run", str(recipe), "--workdir", str(workdir), *options]


def dask_kills(recipe: Path, scratch: Path, *, kills: int, seed: int, longest: float, workers: int) -> Result:
    """Run until enough workers were killed at work; every run ends by itself, and is compared."""
    from distributed import Client, LocalCluster

    expected = expected_content(recipe, scratch)
    chance, result, rounds = random.Random(seed), Result(), 0
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1", memory_limit=0,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0", "allowed_failures": kills},
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):  # fmt: skip
        while len(result.kills) < kills:
            revive(cluster, client, workers)
            workdir = scratch / f"dask-{rounds}"
            run = started(recipe, workdir, cluster.scheduler_address)
            while not ended(run, chance.uniform(0.2, longest)) and len(result.kills) < kills:
                pids = list(client.run(os.getpid, on_error="ignore").values())
                if len(pids) == workers:
                    result.kills.append(killed(pids, chance, workdir))
                else:
                    revive(cluster, client, workers)
            if run.wait() != 0:
                result.different.append(f"round {rounds}: the run ended with {run.returncode}")
            result.different += differences(expected, content(workdir), f"round {rounds}")
            rounds += 1
    return result


def revive(cluster: Any, client: Any, workers: int) -> None:
    """Wait until all workers are there again; where dask gives up on one that died at its birth, start it anew."""
    try:
        client.wait_for_workers(workers, timeout=20)
    except TimeoutError:
        cluster.scale(0)
        cluster.scale(workers)
        client.wait_for_workers(workers, timeout=60)


def started(recipe: Path, workdir: Path, address: str) -> "subprocess.Popen[bytes]":
    """Start a run that hands its shards to a cluster."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command(recipe, workdir, "--engine", address), stdout=quiet, stderr=quiet)


def expected_content(recipe: Path, scratch: Path) -> dict[str, str]:
    """What the local engine makes, undisturbed."""
    workdir = scratch / "local"
    subprocess.run(command(recipe, workdir, "--workers", "2"), check=True, capture_output=True)
    return content(workdir)


def ended(run: "subprocess.Popen[bytes]", after: float) -> bool:
    """Wait a while; tell whether the run ended meanwhile."""
    try:
        run.wait(after)
    except subprocess.TimeoutExpired:
        return False
    return True


def killed(pids: Sequence[int], chance: random.Random, workdir: Path) -> tuple[float, str]:
    """Kill a worker; say which, and what was at work."""
    pid = chance.choice(pids)
    os.kill(pid, signal.SIGKILL)
    at_work = ", ".join(sorted(path.name for path in workdir.glob(".*.partial"))) if workdir.is_dir() else ""
    return float(pid), at_work or "between stages"


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=4.0, help="seconds between kills, at most")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = dask_kills(
            arguments.recipe, Path(folder), kills=arguments.kills, seed=arguments.seed, longest=arguments.longest,
            workers=arguments.workers,
        )  # fmt: skip
    for number, (pid, stage) in enumerate(result.kills, start=1):
        sys.stdout.write(f"kill {number:>3} of process {pid:.0f}: {stage}\n")
    for name in result.different:
        sys.stdout.write(f"DIFFERENT {name}\n")
    sys.stdout.write(f"{len(result.kills)} kills, {len(result.different)} files different\n")
    return 1 if result.different else 0


if __name__ == "__main__":
    sys.exit(main())
