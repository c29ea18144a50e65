"""Stages on a dask cluster beside the local engine, and what a hundred faults do to whole runs.

    PYTHONPATH=. python benchmarks/cluster.py                # a cluster on this machine
    PYTHONPATH=. python benchmarks/cluster.py --machines     # as root on Linux: machines in network namespaces
    PYTHONPATH=. python benchmarks/cluster.py --faults 100   # either of them disturbed

Four workers each: processes of the local engine, or two on each of two machines. Both ways run in turn, and what
counts is the middle of the ratios, pair by pair, of the seconds that processors worked (the command's and all
workers'): what a worker of the cluster gets done in a second of its processor, against one of the local engine.
Scheduler, nannies and workers also take time when they wait, the more the longer a busy machine makes all last: the
ratio is also given without what they took for as many seconds before the work. Seconds that passed stand beside; they
say nothing where workers are more than cores. Workers of a cluster are there, local ones begin with the command.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from dump_generator import generate_dump
from recording import record

from tests.faults.cluster_faults import Cluster, Machine, Result, cluster_faults, world
from tests.faults.kill_and_resume import content

GOAL = 0.85
WORKERS = 4
IDLE_SECONDS = 15.0
TICKS = os.sysconf("SC_CLK_TCK")
ROOT = Path(__file__).parent.parent
SMALL, CUBE = ROOT / "tests/fixtures/small.yaml", ROOT / "recipes/cube.yaml"


@dataclass(frozen=True, slots=True)
class Took:
    """What a command took: seconds that passed, seconds of all its processors, and those of a cluster that waits."""

    wall: float
    cpu: float
    idle: float = 0.0


def cpu_of(pids: list[int]) -> float:
    """Add up the processor seconds of processes that are there."""
    fields = [Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split() for pid in pids]
    return sum(int(words[11]) + int(words[12]) for words in fields) / TICKS


def idling(pids: list[int]) -> float:
    """Measure which share of a processor processes take that have nothing to do."""
    before, began = cpu_of(pids), time.perf_counter()
    time.sleep(IDLE_SECONDS)
    return (cpu_of(pids) - before) / (time.perf_counter() - began)


def took(command: list[str], pids: list[int], idle: float = 0.0) -> Took:
    """Run a command, and measure it and the processes that work for it."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    theirs = cpu_of(pids)
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Took(wall, own + cpu_of(pids) - theirs, idle * wall)


def stages(folder: Path, megabytes: int, repeats: int) -> dict[str, list[str]]:
    """Prepare a dump, an index and prompts; give the commands that are measured, without their output folders."""
    program = [sys.executable, "-m", "culturekit"]
    generate_dump(folder / "dump.json.gz", megabytes=megabytes, members=20)
    run = [*program, "run", str(SMALL), "--workdir", str(folder / "run"), "--until", "index"]
    subprocess.run(run, check=True, capture_output=True)
    images, prompts = folder / "images", folder / "run/prompts/prompts.parquet"
    make = [*program, "generate", "--backend", "simulated", "--prompts", str(prompts),
            "--repeats", str(repeats), "--slots", "8"]  # fmt: skip
    subprocess.run([*make, "--out", str(images)], check=True, capture_output=True)
    table = str(images / "images.parquet")
    return {
        "ingest": [*program, "kg", "ingest", str(folder / "dump.json.gz")],
        "generate, simulated": make,
        "embed": [*program, "index", "embed", "--encoder", "embedded", "--images", table],
        "map": [*program, "index", "map", "--index", str(folder / "run/index"), "--images", table],
        "score quality": [*program, "quality", "--scorer", "embedded", "--images", table],
    }


def compare(
    words: list[str], cluster: Cluster, asks: Machine, folder: Path, *, pairs: int, idle: float
) -> list[tuple[Took, Took]]:
    """Run a stage both ways in turn; the bytes must be the same."""
    found = []
    for number in range(pairs):
        local, spread = folder / f"local-{number}", folder / f"cluster-{number}"
        alone = took([*words, "--out", str(local), "--workers", str(WORKERS)], [])
        together = took([*asks.prefix, *words, "--out", str(spread), "--engine", cluster.address], hands(cluster), idle)
        if content(local) != content(spread):
            raise SystemExit(f"other bytes: {' '.join(words)}")
        found.append((alone, together))
    return found


def hands(cluster: Cluster) -> list[int]:
    """List the processes of a cluster."""
    return [cluster.head.pid, *(nanny.pid for nanny in cluster.nannies), *cluster.born()]


HEAD = ["stage", "CPU-s, local", "cluster", "of them waiting", "local / cluster", "without waiting", "wall", "goal"]


def row(what: str, pairs: list[tuple[Took, Took]]) -> list[str]:
    """Write one stage."""
    ratios = [
        statistics.median(local.cpu / cluster.cpu for local, cluster in pairs),
        statistics.median(local.cpu / (cluster.cpu - cluster.idle) for local, cluster in pairs),
        statistics.median(local.wall / cluster.wall for local, cluster in pairs),
    ]
    middle = [statistics.median(one.cpu for one in ways) for ways in zip(*pairs, strict=True)]
    middle.append(statistics.median(cluster.idle for _, cluster in pairs))
    return [what, *(f"{seconds:.1f}" for seconds in middle), *(f"{ratio:.2f}" for ratio in ratios), f"{GOAL}"]


def throughput(folder: Path, given: argparse.Namespace) -> Iterator[list[list[str]]]:
    """Measure each stage both ways; give the table so far after each."""
    with world(alone=not given.machines) as (asks, heads, works), ExitStack() as stack:
        commands = stages(folder, given.megabytes, given.repeats)
        cluster = Cluster(heads, works, folder, WORKERS // len(works))
        stack.callback(cluster.stop)
        while not cluster.whole():
            time.sleep(0.5)
        time.sleep(IDLE_SECONDS)  # until they have found each other
        idle, rows = idling(hands(cluster)), []
        for what, words in commands.items():
            scratch = folder / what.replace(" ", "-")
            scratch.mkdir()
            rows.append(row(what, compare(words, cluster, asks, scratch, pairs=given.pairs, idle=idle)))
            yield [HEAD, *rows]


def disturbed(folder: Path, given: argparse.Namespace) -> list[list[str]]:
    """Run the cube recipe, and the ingest of a dump with a quarter as many faults; stop where anything is wrong."""
    dump = folder / "dump.json.gz"
    generate_dump(dump, megabytes=5 * given.megabytes, members=100)
    asked = {"cube recipe": (["run", str(CUBE), "--workdir"], given.faults),
             "ingest": (["kg", "ingest", str(dump), "--out"], given.faults // 4)}  # fmt: skip
    columns = []
    for what, (words, faults) in asked.items():
        scratch = folder / what.replace(" ", "-")
        scratch.mkdir()
        result = cluster_faults(
            words, scratch, faults=faults, seed=given.seed, longest=4.0,
            workers=WORKERS // 2 if given.machines else WORKERS, alone=not given.machines,
        )  # fmt: skip
        if result.wrong:
            raise SystemExit("\n".join(result.wrong))
        columns.append(counts_of(result))
    names = sorted(name for column in columns for name in column if name.startswith("faults"))
    rows = dict.fromkeys(names) | columns[0]
    return [["what", *asked], *([name, *(f"{column.get(name, 0):,}" for column in columns)] for name in rows)]


def counts_of(result: Result) -> dict[str, int]:
    """Say what faults did to runs of which nothing was wrong."""
    return {
        **{f"faults: {what}": count for what, count in sorted(result.faults.items())},
        **{f"faults while building: {what}": count for what, count in sorted(result.stages.items())},
        "runs finished": result.rounds,
        "runs finished, files with other bytes": 0,
        "runs that ended before, in culturekit's words, and were begun again": result.ended_early.total(),
        "shards of an undisturbed run": result.plain,
        "shards schedulers saw done (not those kept while one was dead; an ingest looks at them again)": result.done,
        "shards done again, the worker that held the result gone": result.again,
        "shards done again, the worker that held the result still there": 0,
    }


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--machines", action="store_true")
    parser.add_argument("--faults", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=20)
    given = parser.parse_args()
    where = "two machines in network namespaces" if given.machines else "this machine"
    name = "_machines" if given.machines else ""
    command = f"PYTHONPATH=. python benchmarks/cluster.py{' --machines' if given.machines else ''}"
    with tempfile.TemporaryDirectory() as scratch:
        if given.faults:
            table = disturbed(Path(scratch), given)
            record(
                f"cluster_faults{name}",
                title=f"Runs whose dask cluster of {WORKERS} workers on {where} is disturbed",
                command=f"{command} --faults {given.faults}",
                table=table,
            )
            return
        for table in throughput(Path(scratch), given):
            record(
                f"cluster{name}",
                title=f"{WORKERS} workers of dask on {where} beside {WORKERS} of the local engine, {given.pairs} pairs",
                command=command,
                table=table,
            )


if __name__ == "__main__":
    main()
