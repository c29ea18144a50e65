"""Kill a process that asks in batches, with SIGKILL, resume it each time, and see what the server sold.

`python -m tests.faults.llm_batch_kills --provider openai --kills 100` prints each kill and what the server had just
been asked, and ends with 0 when nothing was bought twice and the answers are those of an undisturbed run.
"""

import argparse
import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import msgspec

from tests.llm.server import Fault, JobPlan, Rule, Script, When

__all__ = ["SCRIPT", "Kills", "kill_and_resume"]

ROWS = 60
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
"""Jobs that lose rows, say rows twice and under wrong names, and creations that take their time or are cut off."""


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


@contextlib.contextmanager
def server(script: Script, folder: Path, port: int) -> Iterator[str]:
    """Serve from another process; on the same port, keys and what is drawn by them are the same each time."""
    told = folder / "script.json"
    told.write_bytes(msgspec.json.encode(script))
    command = [sys.executable, "-m", "tests.llm.server", "--script", str(told), "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def stats(url: str) -> dict[str, Any]:
    """Ask the server what it counted."""
    with urllib.request.urlopen(f"{url}/stats", timeout=10) as reply:
        return cast(dict[str, Any], json.load(reply))


def start(provider: str, url: str, folder: Path) -> "subprocess.Popen[bytes]":
    """Start the process that asks."""
    command = [sys.executable, "-m", "tests.faults.llm_batch_asking", provider, url, str(folder), str(ROWS)]
    keys = {"OPENAI_API_KEY": "sk-loopback-0123456789", "GOOGLE_API_KEY": "AIza-loopback-0123456789"}
    return subprocess.Popen(command, env={**os.environ, **keys}, start_new_session=True)


def kill_once(provider: str, url: str, folder: Path, *, requests: int, created: bool, after: float) -> str | None:
    """Kill when the server has had so many more requests, or made a job; say what was asked last, None if it ended."""
    before = stats(url)
    process = start(provider, url, folder)
    while process.poll() is None:
        now = stats(url)
        reached = now["requests"] - before["requests"] >= requests
        if reached if not created else now["jobs_made"] > before["jobs_made"]:
            time.sleep(after)
            process.kill()
            process.wait()
            new = Counter(stats(url)["operations"])
            new.subtract(before["operations"])
            return ", ".join(f"{count} {name}" for name, count in sorted(new.items()) if count)
        time.sleep(0.002)
    assert process.returncode == 0, f"the asking process ended with {process.returncode}"
    return None


def kill_and_resume(provider: str, scratch: Path, *, kills: int, seed: int) -> Kills:
    """Kill and resume until there are enough kills, each round against a server of its own."""
    chance = random.Random(seed)
    port = free_port()
    expected, lines = undisturbed(provider, scratch / "undisturbed", port)
    result = Kills()
    while len(result.kills) < kills:
        folder = scratch / f"round-{result.rounds}"
        folder.mkdir()
        with server(SCRIPT, folder, port) as url:
            while True:
                if len(result.kills) >= kills:
                    assert start(provider, url, folder).wait() == 0
                    break
                created = chance.random() < 0.4
                after = 0.0 if created else chance.choice([0.0, chance.uniform(0.0, 0.05)])
                requests = chance.randint(1, 14)
                killed = kill_once(provider, url, folder, requests=requests, created=created, after=after)
                if killed is None:
                    break
                result.kills.append(killed)
                result.before_storing += created
            counted = stats(url)
        assert not counted["broken"], counted["broken"]
        result.rounds += 1
        result.bought += counted["bought"]
        result.bought_twice += counted["bought_twice"] + abs(counted["lines_made"] - lines)
        result.found_again += counted["operations"].get("batches.list", 0)
        result.unlike += (folder / "answers.json").read_bytes() != expected
    return result


def undisturbed(provider: str, folder: Path, port: int) -> tuple[bytes, int]:
    """Ask once without a kill; give the answers, and how many lines that took."""
    folder.mkdir()
    with server(SCRIPT, folder, port) as url:
        assert start(provider, url, folder).wait() == 0
        return (folder / "answers.json").read_bytes(), stats(url)["lines_made"]


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


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
