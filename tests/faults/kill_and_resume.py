"""Kill a command with SIGKILL at random moments, resume it each time, and compare with an undisturbed run."""

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from tests.llm.server.running import RunningServer

ROOT = Path(__file__).parents[2]
POLL = 0.005

Due: TypeAlias = Callable[[], bool]  # Whether the moment has come to kill
Seller: TypeAlias = Callable[[], AbstractContextManager[RunningServer | None]]
Moment: TypeAlias = Callable[[random.Random, RunningServer | None], Due]


@dataclass
class Kills:
    """What came of it: kills that hit a run at work, runs that came to their end, files that differ.

    `bought_twice` counts replies that a seller sold again beyond those of an undisturbed run, `most_twice` those under
    way when a kill came; `sold` is what each seller counted in the end, that of the undisturbed run first.
    """

    kills: int = 0
    rounds: int = 0
    bought_twice: int = 0
    most_twice: int = 0
    sold: list[dict[str, Any]] = field(default_factory=list)
    different: list[str] = field(default_factory=list)


def content(root: Path) -> dict[str, str]:
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "run.json"]
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def without_journals(root: Path) -> dict[str, str]:
    """Leave out journals, in which replies stand in the order they came in, and what is hidden beside tables."""
    return {name: sha for name, sha in content(root).items() if "journal/" not in name and "/." not in f"/{name}"}


def differences(expected: dict[str, str], found: dict[str, str], when: str) -> list[str]:
    names = sorted(expected.keys() | found.keys())
    return [f"{when}: {name}" for name in names if expected.get(name) != found.get(name)]


def environment() -> dict[str, str]:
    """Give a child keys, one thread, and our own packages."""
    keys = {"OPENAI_API_KEY": "sk-of-nobody", "GOOGLE_API_KEY": "AIza-of-nobody"}
    return {**os.environ, **keys, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}


def run_command(recipe: Path, workdir: Path, stated: Sequence[str] = ()) -> list[str]:
    words = [sys.executable, "-m", "culturekit", "run", str(recipe), "--workdir", str(workdir), "--workers", "2"]
    return [*words, *(word for text in stated for word in ("--set", text))]


def after(seconds: float) -> Due:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def at_a_request(chance: random.Random, server: RunningServer, most: int) -> Due:
    until = server.stats()["requests"] + chance.randint(1, most)
    return lambda: server.stats()["requests"] >= until


def killed(command: Sequence[str], due: Due | None, *, fine: tuple[int, ...], group: bool = False) -> bool:
    """Start a command, its workers in a process group of their own, and kill it; False when it had ended before."""
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdout=quiet, stderr=quiet, start_new_session=True, env=environment(), cwd=ROOT
    )  # fmt: skip
    while due is not None and process.poll() is None:
        if due():
            if group:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            break
        time.sleep(POLL)
    code = process.wait()
    if code not in {*fine, -signal.SIGKILL}:
        raise RuntimeError(f"the process ended with {code}: {' '.join(command)}")
    return code == -signal.SIGKILL


def kill_and_resume(
    command: Callable[[Path], list[str]], scratch: Path, *, kills: int, seed: int, longest: float | None = None,
    moment: Moment | None = None, fine: tuple[int, ...] = (0,), compared: Callable[[Path], dict[str, str]] = content,
    ended: Callable[[int], None] = lambda hits: None, seller: Seller = nullcontext, under_way: int = 0,
) -> Kills:  # fmt: skip
    """Kill and resume until enough kills hit a run at work; a round ends, and is compared, when its run does.

    Half of the kills take the workers along. A kill comes at a `moment`, or at most `longest` seconds after the start,
    or any time that an undisturbed run takes; `ended` hears how many kills a round had, and before the first that there
    were none. Each round buys of a `seller` anew; a kill may cost what was sold to the killed process and was under
    way, never more than `under_way`. What is sold is counted when the seller has settled.
    """
    chance, started, result = random.Random(seed), time.monotonic(), Kills()
    with seller() as server:
        killed(command(scratch / "undisturbed"), None, fine=fine)
        calm = server.settled() if server else {}
    within = longest or time.monotonic() - started
    drawn = moment or (lambda chance, _: after(chance.uniform(0.2, within)))
    expected = compared(scratch / "undisturbed")
    result.sold.append(calm)
    ended(0)
    while result.kills < kills:
        out, hits, seen = scratch / f"killed-{result.rounds}", 0, 0
        with seller() as server:
            while killed(
                command(out), drawn(chance, server) if result.kills + hits < kills else None,
                fine=fine, group=chance.random() < 0.5,
            ):  # fmt: skip
                hits += 1
                sold = server.settled()["online"]["replies"] if server else 0
                result.most_twice += min(under_way, sold - seen)
                seen = sold
            if server:
                result.sold.append(server.settled())
                result.bought_twice += result.sold[-1]["bought_twice"] - calm["bought_twice"]
                result.different += result.sold[-1]["broken"]
        result.kills += hits
        result.rounds += 1
        result.different += differences(expected, compared(out), out.name)
        ended(hits)
    return result
