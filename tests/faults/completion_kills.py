"""Kill the completion with SIGKILL at random moments while it asks a server, resume it, and count what was bought.

`python -m tests.faults.completion_kills --kills 30` prints each round and ends with 0 when no kill made more requests
be bought twice than were under way, and every table is the one of an undisturbed run.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.builders.completion_world import BRAZIL, DISH, JAPAN, dish, world
from tests.faults.filter_kills import PRICE, ROOT, SLOW, environment, tables
from tests.faults.killing import Kills, kill_asking
from tests.llm.server import RunningServer
from tests.llm.server.running import server_process

__all__ = ["MODEL", "collection", "completion_command", "kill_and_count"]

MODEL = "tests.builders.completing_model:answer"
COUNTRIES = ("BR", "FR", "IN", "IT", "JP", "NG", "TR", "US")


def collection(folder: Path, rows: int) -> Path:
    """Write a collection, with candidates that were dropped and a graph that knows more."""
    kept = [dish(number, f"dish {number}", BRAZIL if number % 2 else JAPAN) for number in range(1, rows + 1)]
    dropped = [(dish(number, f"specialty 1.0 of {name}"), "judge x") for number, name in ((9001, "Brazil"),)]
    items = [{"qid": "Q9100", "label": "Specialty 2.1 of Japan", "aliases": [], "P31": [DISH], "P17": [BRAZIL]}]
    (folder / "roots.yaml").parent.mkdir(parents=True, exist_ok=True)
    (folder / "roots.yaml").write_text(
        f"concept: cuisine\nhops: 3\nroots:\n  - {{qid: {DISH}, label: dish}}\ncountries: [{', '.join(COUNTRIES)}]\n",
        encoding="utf-8",
    )
    world(folder, kept, dropped, items)
    return folder


def completion_command(given: Path, out: Path, server: RunningServer, *more: str, concurrency: int = 8) -> list[str]:
    """The command that is killed."""
    spec = f"openai:proposer-1?base_url={server.openai_url}&price={PRICE}"
    tables_of = ["--kept", str(given / "kept.parquet"), "--candidates", str(given / "candidates.parquet")]
    command = [sys.executable, "-m", "culturekit", "cspace", "complete", *tables_of, "--graph", str(given / "graph")]
    command += ["--roots", str(given / "roots.yaml"), "--llm", spec, "--out", str(out)]
    return [*command, "--concurrency", str(concurrency), *more]


def ended(command: list[str]) -> None:
    """Run to the end; rows that a person has to look at are no failure here."""
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment(), cwd=ROOT)
    if done.returncode not in {0, 1}:
        raise RuntimeError(done.stderr)


def kill_and_count(folder: Path, *, kills: int, concurrency: int, seed: int, longest: float) -> Kills:
    """Kill and resume until enough kills hit a run at work; a round ends when its run does."""
    chance = random.Random(seed)
    given = collection(folder / "given", 40)
    with server_process(SLOW, model=MODEL) as server:
        ended(completion_command(given, folder / "undisturbed", server, concurrency=concurrency))
    expected = tables(folder / "undisturbed")
    result = Kills()
    while result.kills < kills:
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        with server_process(SLOW, model=MODEL) as server:
            command = completion_command(given, out, server, concurrency=concurrency)
            kill_asking(
                command, server, result, chance=chance, kills=kills, concurrency=concurrency, longest=longest,
                environment=environment(), fine=(0, 1),
            )  # fmt: skip
        result.different += [name for name in expected if tables(out).get(name) != expected[name]]
    return result


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=5.0, help="seconds until a kill, at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(
            Path(folder), kills=given.kills, concurrency=given.concurrency, seed=given.seed, longest=given.longest
        )
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds: {result.bought_twice} bought twice, at most "
        f"{result.most_twice} were under way; {len(result.different)} tables different\n"
    )
    return 1 if result.different or result.bought_twice > result.most_twice else 0


if __name__ == "__main__":
    sys.exit(main())
