"""Kill a process that asks in batches, with SIGKILL, resume it each time, and see what the server sold.

`python -m tests.faults.llm_batch_kills --provider openai --kills 100` prints each kill and what the server had just
been asked, and ends with 0 when nothing was bought twice and the answers are those of an undisturbed run.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.killing import killed_after
from tests.llm.server import Fault, JobPlan, Rule, RunningServer, Script, When
from tests.llm.server.running import kept_port, server_process

ROWS = 60
# Jobs that lose rows, say rows twice and under wrong names, and creations that take their time or are cut off.
SCRIPT = Script(
    job=JobPlan(polls=2, shuffled=True, missing=0.05, duplicated=0.1, misnamed=0.03, salt="kills"),
    rules=(
        Rule(Fault("stall", delay=0.4), When(operations=("batches.create",), requests=(1, None), every=2)),
        Rule(Fault("drop-after"), When(operations=("batches.create",), every=5)),
        Rule(Fault("prose"), When(modes=("batch",), share=0.15, salt="prose", attempts=(1, 1))),
        Rule(Fault("server-error"), When(modes=("batch",), share=0.1, salt="error", attempts=(1, 1))),
        Rule(Fault("refusal"), When(modes=("batch",), share=0.1, salt="refusal")),
    ),
)


@dataclass
class Kills:
    """What came of it."""

    kills: list[str] = field(default_factory=list)
    rounds: int = 0
    bought: int = 0
    bought_twice: int = 0
    unlike: int = 0
    found_again: int = 0
    before_storing: int = 0


def start(provider: str, url: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Start the process that asks."""
    command = [sys.executable, "-m", "tests.faults.llm_batch_asking", provider, url, str(folder), str(ROWS)]
    keys = {"OPENAI_API_KEY": "sk-loopback-0123456789", "GOOGLE_API_KEY": "AIza-loopback-0123456789"}
    return subprocess.Popen(command, env={**os.environ, **keys}, start_new_session=True)


def kill_once(
    provider: str, server: RunningServer, folder: Path, *, requests: int, created: bool, after: float
) -> str | None:
    """Kill when the server has had so many more requests, or made a job; say what was asked last, None if it ended.

    When this ends, the server has dealt with everything that the killed process had sent it.
    """
    before = server.stats()
    process = start(provider, server.url, folder)
    while process.poll() is None:
        now = server.stats()
        reached = now["requests"] - before["requests"] >= requests
        if reached if not created else now["jobs_made"] > before["jobs_made"]:
            break
        time.sleep(0.002)
    if not killed_after(process, after):
        return None
    new = Counter(server.settled()["operations"])
    new.subtract(before["operations"])
    return ", ".join(f"{count} {name}" for name, count in sorted(new.items()) if count)


def kill_and_resume(provider: str, scratch: Path, *, kills: int, seed: int) -> Kills:
    """Kill and resume until there are enough kills, each round against a server of its own.

    All servers have one port: keys and what is drawn by them are the same each time.
    """
    chance = random.Random(seed)
    result = Kills()
    with kept_port() as port:
        expected, lines = undisturbed(provider, scratch / "undisturbed", port)
        while len(result.kills) < kills:
            folder = scratch / f"round-{result.rounds}"
            folder.mkdir()
            with server_process(SCRIPT, port=port) as server:
                one_round(provider, server, folder, result, chance=chance, kills=kills)
                counted = server.settled()
            assert not counted["broken"], counted["broken"]
            result.rounds += 1
            result.bought += counted["bought"]
            result.bought_twice += counted["bought_twice"] + abs(counted["lines_made"] - lines)
            result.found_again += counted["operations"].get("batches.list", 0)
            result.unlike += (folder / "answers.json").read_bytes() != expected
    return result


def one_round(
    provider: str, server: RunningServer, folder: Path, result: Kills, *, chance: random.Random, kills: int
) -> None:
    """Ask to the end, with kills on the way until there were enough."""
    while len(result.kills) < kills:
        created = chance.random() < 0.4
        after = 0.0 if created else chance.choice([0.0, chance.uniform(0.0, 0.05)])
        requests = chance.randint(1, 14)
        killed = kill_once(provider, server, folder, requests=requests, created=created, after=after)
        if killed is None:
            return
        result.kills.append(killed)
        result.before_storing += created
    assert start(provider, server.url, folder).wait() == 0


def undisturbed(provider: str, folder: Path, port: int) -> tuple[bytes, int]:
    """Ask once without a kill; give the answers, and how many lines that took."""
    folder.mkdir()
    with server_process(SCRIPT, port=port) as server:
        assert start(provider, server.url, folder).wait() == 0
        return (folder / "answers.json").read_bytes(), server.settled()["lines_made"]


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--provider", choices=["openai", "google"], default="openai")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_resume(arguments.provider, Path(folder), kills=arguments.kills, seed=arguments.seed)
    for number, asked in enumerate(result.kills, start=1):
        sys.stdout.write(f"kill {number:>3} after {asked}\n")
    sys.stdout.write(
        f"{arguments.provider}: {len(result.kills)} kills in {result.rounds} rounds of {ROWS} rows, "
        f"{result.before_storing} of them aimed between a job's creation and the storing of its id, "
        f"{result.found_again} listings; {result.bought} replies bought, {result.bought_twice} twice; "
        f"{result.unlike} rounds with other answers\n"
    )
    return 1 if result.bought_twice or result.unlike else 0


if __name__ == "__main__":
    sys.exit(main())
