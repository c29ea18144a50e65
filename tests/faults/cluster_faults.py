"""Kill workers and the scheduler of a dask cluster, and pull network cables, at random moments of runs.

Runs are handed to the cluster, on this machine or on several in network namespaces of it; one that ends for want of
it must say so in culturekit's words, and is begun again. Every finished run must have the bytes that the local engine
makes, and a task is done again only if the worker that had done it is gone.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.kill_and_resume import content, differences

BRIDGE, NETWORK = "ckbr0", "10.77.0"


@dataclass(frozen=True, slots=True)
class Machine:
    """Where programs run: behind `address`, begun with `prefix`; without a `cable` it is this machine itself."""

    address: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    cable: str = ""

    def plug(self, how: str) -> None:
        ip("link", "set", self.cable, how)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@contextmanager
def machines(names: Sequence[str]) -> Iterator[list[Machine]]:
    """Make machines that see each other and nothing else: a network namespace each, on one bridge; or one for all."""
    with ExitStack() as undo:
        ip("link", "add", BRIDGE, "type", "bridge")
        undo.callback(ip, "link", "del", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        ready = []
        for number, name in enumerate(names, start=2):
            space, cable = f"ck-{name}", f"ck-{name}0"
            ip("netns", "add", space)
            undo.callback(ip, "netns", "del", space)
            ip("link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", space)
            ip("link", "set", cable, "master", BRIDGE, "up")
            inside = ("-n", space)
            ip(*inside, "addr", "add", f"{NETWORK}.{number}/24", "dev", "eth0")
            ip(*inside, "link", "set", "eth0", "up")
            ip(*inside, "link", "set", "lo", "up")
            ready.append(Machine(f"{NETWORK}.{number}", ("ip", "netns", "exec", space), cable))
        yield ready


PORT = 8799
STUCK = 900.0  # Seconds after which a command without a fault that could hold it up has lost its way

UNAVAILABLE = 3
GIVEN_UP = 12  # Seconds after which a silent connection is given up; dask takes no fewer

AT_ONCE = 30  # So many runs may end early one after the other without a fault: a scheduler takes some seconds to start

# Connections are given up early, so that a pulled cable shows; tasks are not given up, however many workers die.
# Processes look at themselves as seldom as the page on engines says.
QUICK = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{GIVEN_UP}s", "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "5s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1000", "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms", "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "10s",
    "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1",
}  # fmt: skip


@dataclass
class Result:
    """What came of it: `stages` were at work when faults came, `plain` counts the tasks of an undisturbed run."""

    plain: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    stages: Counter[str] = field(default_factory=Counter)
    rounds: int = 0
    ended_early: Counter[str] = field(default_factory=Counter)
    done: int = 0
    again: int = 0
    wrong: list[str] = field(default_factory=list)


class Cluster:
    def __init__(self, scheduler: Machine, hosts: Sequence[Machine], scratch: Path, workers: int) -> None:
        self.scheduler, self.scratch = scheduler, scratch
        self.hosts = [host for host in hosts for _ in range(workers)]
        self.watch = scratch / "watch.jsonl"
        self.watch.touch()
        self.head = self.start_scheduler()
        self.nannies = [self.start_worker(number) for number in range(len(self.hosts))]

    @property
    def address(self) -> str:
        return f"tcp://{self.scheduler.address}:{PORT}"

    def start(self, machine: Machine, *words: str) -> "subprocess.Popen[bytes]":
        quiet = subprocess.DEVNULL
        environment = {**os.environ, **QUICK, "CLUSTER_WATCH": str(self.watch)}
        command = [*machine.prefix, sys.executable, "-m", *words]
        return subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment, cwd=Path.cwd())

    def start_scheduler(self) -> "subprocess.Popen[bytes]":
        return self.start(
            self.scheduler, "distributed.cli.dask_scheduler", "--host", self.scheduler.address, "--port", str(PORT),
            "--no-dashboard", "--preload", str(Path(__file__).with_name("cluster_watch.py")),
        )  # fmt: skip

    def start_worker(self, number: int) -> "subprocess.Popen[bytes]":
        """Start a worker with a nanny that starts it anew; one nanny of several in a process can leave unseen."""
        host = self.hosts[number]
        return self.start(
            host, "distributed.cli.dask_worker", self.address, "--host", host.address, "--nthreads", "1",
            "--no-dashboard", "--memory-limit", "0",
            "--local-directory", str(self.scratch / f"local-{number}"),
        )  # fmt: skip

    def mend(self) -> None:
        """Start what has ended, as the service manager of a machine does: nannies leave when their scheduler does."""
        for number, nanny in enumerate(self.nannies):
            if nanny.poll() is not None:
                self.nannies[number] = self.start_worker(number)

    def watched(self) -> list[str]:
        return self.watch.read_text(encoding="utf-8").splitlines()

    def born(self) -> list[int]:
        return [pid for nanny in self.nannies if nanny.poll() is None for pid in children(nanny.pid)]

    def whole(self) -> bool:
        return len(self.born()) == len(self.hosts)

    def kill_worker(self, chance: random.Random) -> bool:
        born = self.born()
        return bool(born) and killed(chance.choice(born))

    def kill_scheduler(self, chance: random.Random) -> bool:
        killed(self.head.pid)
        self.head.wait()
        time.sleep(chance.uniform(0, 3))
        self.head = self.start_scheduler()
        return True

    def stop(self) -> None:
        """End all; a nanny whose worker looks for a scheduler that is gone may wait for ever, and is killed."""
        processes = (*self.nannies, self.head)
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(GIVEN_UP)
            except subprocess.TimeoutExpired:
                for pid in (*children(process.pid), process.pid):
                    killed(pid)
                process.wait()


def children(pid: int) -> list[int]:
    """List the workers that a nanny's threads have started; what keeps count of its resources is none."""
    started = [read(thread).decode("ascii").split() for thread in Path(f"/proc/{pid}/task").glob("*/children")]
    every = [child for some in started for child in some]
    return sorted(int(child) for child in every if b"spawn_main" in read(Path(f"/proc/{child}/cmdline")))


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def killed(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def pull(machine: Machine, chance: random.Random) -> bool:
    """Pull a cable for a while: short enough for nobody to notice, or too long."""
    machine.plug("down")
    time.sleep(chance.choice([chance.uniform(0.2, 2), chance.uniform(GIVEN_UP, GIVEN_UP + 8)]))
    machine.plug("up")
    return True


@contextmanager
def world(*, alone: bool) -> Iterator[tuple[Machine, Machine, list[Machine]]]:
    if alone:
        yield Machine(), Machine(), [Machine()]
        return
    with machines(["asks", "heads", "works", "helps"]) as (asks, heads, *works):
        yield asks, heads, works


def cluster_faults(
    words: Sequence[str], scratch: Path, *, faults: int, seed: int, longest: float, workers: int, alone: bool
) -> Result:
    """Run what culturekit is told by words, a folder after them, until there were enough faults.

    Every run goes on until it is done, and is compared.
    """
    local = scratch / "local"
    words = [sys.executable, "-m", "culturekit", *words]
    subprocess.run([*words, str(local), "--workers", "2"], check=True, capture_output=True)
    expected, chance, result = content(local), random.Random(seed), Result()
    with world(alone=alone) as (asks, heads, works), ExitStack() as stack:
        cluster = Cluster(heads, works, scratch, workers)
        stack.callback(cluster.stop)
        while not cluster.whole():
            time.sleep(0.5)
        calm = [*asks.prefix, *words, str(scratch / "calm"), "--engine", cluster.address]
        subprocess.run(calm, check=True, capture_output=True)
        result.wrong += differences(expected, content(scratch / "calm"), "undisturbed")
        before_faults = cluster.watched()
        result.plain = done_again(before_faults)[0]
        while sum(result.faults.values()) < faults:
            workdir = scratch / f"round-{result.rounds}"
            command = [*asks.prefix, *words, str(workdir), "--engine", f"{cluster.address}?wait=60"]
            early, before = 0, 0
            while not attempt(command, workdir, cluster, asks, chance, result, faults=faults, longest=longest):
                early, before = early + 1 if sum(result.faults.values()) == before else 0, sum(result.faults.values())
                if early > AT_ONCE:
                    raise RuntimeError(f"no run gets anywhere: {said_of(workdir).read_text(encoding='utf-8')}")
                cluster.mend()
                time.sleep(1)
            result.wrong += differences(expected, content(workdir), f"round {result.rounds}")
            result.rounds += 1
            tell(f"{result.rounds} runs finished, {len(result.wrong)} things wrong")
    result.done, result.again, wrong = done_again(cluster.watched()[len(before_faults) :])
    result.wrong += wrong
    return result


def attempt(
    command: Sequence[str], workdir: Path, cluster: Cluster, asks: Machine, chance: random.Random, result: Result,
    *, faults: int, longest: float,
) -> bool:  # fmt: skip
    """Begin or go on with a run, and disturb it; tell whether it came to its end."""
    log = said_of(workdir)
    with log.open("w", encoding="utf-8") as errors:
        run = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)
    began = time.monotonic()
    while not ended(run, chance.uniform(0.2, longest)):
        cluster.mend()
        if sum(result.faults.values()) < faults and cluster.whole():
            result.stages[at_work(workdir)] += 1
            fault = disturbed(cluster, asks, chance)
            result.faults[fault] += 1
            tell(f"fault {sum(result.faults.values())} in round {result.rounds}: {fault}")
            began = time.monotonic()
        elif time.monotonic() - began > STUCK:  # also where the cluster does not get up again
            run.kill()
            run.wait()
            result.wrong.append(f"round {result.rounds}: the run waited {STUCK:.0f} seconds for nothing")
            return True
    if run.returncode == 0:
        return True
    text = log.read_text(encoding="utf-8")
    reason = next((line for line in text.splitlines() if line.startswith("error: ")), "")
    if run.returncode != UNAVAILABLE or "Traceback" in text or not reason:
        result.wrong.append(f"round {result.rounds}: the run ended with {run.returncode}: {text[-2000:]}")
        return True
    result.ended_early[reason.removeprefix("error: ").partition(";")[0][:70]] += 1
    tell(f"ended early: {reason}")
    return False


def said_of(workdir: Path) -> Path:
    return workdir.with_suffix(".said")


def at_work(workdir: Path) -> str:
    names = sorted(path.name for path in workdir.glob(".*.partial"))
    return names[0].split(".")[1].partition("-")[0] if names else "no stage of a run"


def tell(what: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {what}\n")
    sys.stderr.flush()


def disturbed(cluster: Cluster, asks: Machine, chance: random.Random) -> str:
    cables: Mapping[str, Machine] = {"the asker's cable": asks, "the scheduler's cable": cluster.scheduler}
    while True:
        what = chance.choice(["worker"] * 4 + ["scheduler", "a worker's cable", "a worker's cable", *cables])
        machine = cables.get(what, chance.choice(cluster.hosts))
        if what == "worker" and cluster.kill_worker(chance):
            return "worker killed"
        if what == "scheduler" and cluster.kill_scheduler(chance):
            return "scheduler killed"
        if machine.cable and what.endswith("cable") and pull(machine, chance):
            return f"{what} pulled"
        time.sleep(0.1)


def ended(run: "subprocess.Popen[bytes]", after: float) -> bool:
    try:
        run.wait(after)
    except subprocess.TimeoutExpired:
        return False
    return True


def done_again(lines: Sequence[str]) -> tuple[int, int, list[str]]:
    """Count the tasks that were done, and those done again; name those whose first worker was still there."""
    held: dict[str, str] = {}
    done, again, wrong = 0, 0, []
    for line in lines:
        what, *words = json.loads(line)
        if what == "gone":
            held = {key: "" if worker == words[0] else worker for key, worker in held.items()}
            continue
        key, worker = words
        if not key.startswith("culturekit-") or key.startswith("culturekit-ready-"):
            continue
        done += 1
        if key in held:
            again += 1
            if held[key]:
                wrong.append(f"{key} was done again while {held[key]}, which had done it, was there")
        held[key] = worker
    return done, again, wrong
