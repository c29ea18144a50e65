"""Kill the filter with SIGKILL at random moments while it asks a server, resume it, and count what was bought.

`python -m tests.faults.filter_kills --kills 50` prints each round and ends with 0 when no kill made more requests be
bought twice than were under way, and every table is the one of an undisturbed run.
"""

import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from culturekit.records.schemas import CANDIDATES
from culturekit.storage.digests import digest_file
from culturekit.storage.tables import write_table
from tests.builders.spaces import candidates
from tests.faults.killing import Kills, kill_asking
from tests.llm.server import Fault, Rule, RunningServer, Script
from tests.llm.server.running import server_process

__all__ = [
    "PRICE", "ROOT", "SLOW", "dishes", "environment", "filter_command", "kill_and_count", "tables",
]  # fmt: skip

PRICE = "0.15/0.60"
ROOT = Path(__file__).parents[2]
SLOW = Script(rules=(Rule(then=Fault("stall", delay=0.02)),))


def dishes(folder: Path, rows: int) -> Path:
    """Write a table of candidates."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [
        {
            "qid": f"Q{number}", "label": f"dish {number}", "description": f"stew of the region {number % 7}",
            "concept": "cuisine", "country_qids": ["Q155", "Q17"][: 1 + number % 2], "roots": ["Q746549"],
            "p31": ["Q746549"], "path": ["Q746549", f"Q{number}"],
        }
        for number in range(1, rows + 1)
    ]  # fmt: skip
    return write_table(folder, CANDIDATES, candidates(*made))


def filter_command(table: Path, out: Path, server: RunningServer, *more: str, concurrency: int) -> list[str]:
    """The command that is killed."""
    spec = f"openai:judge-1?base_url={server.openai_url}&price={PRICE}"
    command = [sys.executable, "-m", "culturekit", "cspace", "filter", "--candidates", str(table), "--roots", "cuisine"]
    return [*command, "--llm", spec, "--out", str(out), "--concurrency", str(concurrency), *more]


def environment() -> dict[str, str]:
    """Give the child a key, and our own packages."""
    return {**os.environ, "OPENAI_API_KEY": "sk-of-nobody", "PYTHONPATH": str(ROOT)}


def tables(out: Path) -> dict[str, str]:
    """Hash the tables of a finished folder."""
    return {path.name: digest_file(path) for path in sorted(out.glob("*.parquet"))}


def kill_and_count(folder: Path, *, kills: int, rows: int, concurrency: int, seed: int, longest: float) -> Kills:
    """Kill and resume until enough kills hit a run at work; a round ends when its run does."""
    chance = random.Random(seed)
    table = dishes(folder / "candidates", rows)
    with server_process(SLOW) as server:
        command = filter_command(table, folder / "undisturbed", server, concurrency=concurrency)
        subprocess.run(command, check=True, capture_output=True, env=environment(), cwd=ROOT)
    expected = tables(folder / "undisturbed")
    result = Kills()
    while result.kills < kills:
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        with server_process(SLOW) as server:
            command = filter_command(table, out, server, concurrency=concurrency)
            kill_asking(
                command, server, result, chance=chance, kills=kills, concurrency=concurrency, longest=longest,
                environment=environment(),
            )  # fmt: skip
        result.different += [name for name in expected if tables(out).get(name) != expected[name]]
    return result


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rows", type=int, default=600)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=4.0, help="seconds until a kill, at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(
            Path(folder), kills=given.kills, rows=given.rows, concurrency=given.concurrency, seed=given.seed,
            longest=given.longest,
        )  # fmt: skip
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds: {result.bought_twice} bought twice, at most "
        f"{result.most_twice} were under way; {len(result.different)} tables different\n"
    )
    return 1 if result.different or result.bought_twice > result.most_twice else 0


if __name__ == "__main__":
    sys.exit(main())
