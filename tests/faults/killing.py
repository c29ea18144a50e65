"""Killing a process with SIGKILL, and knowing whether it was the kill that ended it."""

import os
import random
import signal
import subprocess
from dataclasses import dataclass, field
from typing import Any

from tests.llm.server.running import RunningServer

# How much longer the next process may live: on a busy machine starting alone may take longer than expected.
SLOWER = 1.3


@dataclass
class Kills:
    """What came of it: kills that hit a run at work, replies bought twice and at most under way, tables that differ."""

    kills: int = 0
    rounds: int = 0
    bought_twice: int = 0
    most_twice: int = 0
    different: list[str] = field(default_factory=list)


def killed_after(
    process: "subprocess.Popen[Any]", seconds: float | None, *, fine: tuple[int, ...] = (0,), group: bool = False
) -> bool:
    """Kill a process after some seconds, or never; False when it had ended well before the kill was delivered."""
    try:
        code = process.wait(seconds)
    except subprocess.TimeoutExpired:
        if group:
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        code = process.wait()
    if code == -signal.SIGKILL:
        return True
    if code not in fine:
        raise RuntimeError(f"the process ended with {code}")
    return False


def kill_asking(
    command: list[str], server: RunningServer, result: Kills, *, chance: random.Random, kills: int, concurrency: int,
    longest: float, environment: dict[str, str], fine: tuple[int, ...] = (0,),
) -> None:  # fmt: skip
    """Run a command that asks a server to its end, with kills on the way until there were enough.

    A kill may cost what the server had under way for the killed process and sold: never more than `concurrency`, and
    never more than was sold to it. What is sold is counted when the server has settled.
    """
    seen, quiet = 0, subprocess.DEVNULL
    while True:
        after = chance.uniform(0.5, longest) if result.kills < kills else None
        process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
        killed = killed_after(process, after, fine=fine)
        stats = server.settled()
        if not killed:
            result.bought_twice += stats["bought_twice"]
            return
        sold = stats["online"]["replies"]
        result.kills += 1
        result.most_twice += min(concurrency, sold - seen)
        seen, longest = sold, longest * SLOWER
