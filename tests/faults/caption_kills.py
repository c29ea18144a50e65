"""Kill `captions expand` with SIGKILL while a model proposes over HTTP, and resume it: a round needs the ones before.

`python -m tests.faults.caption_kills --kills 30` prints what came of it and ends with 0 when no kill made more
requests be bought twice than were under way, and every table is the one of an undisturbed run.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.filter_kills import PRICE, ROOT, SLOW, environment, tables
from tests.faults.killing import Kills, kill_asking
from tests.llm.server import RunningServer
from tests.llm.server.running import server_process

__all__ = ["kill_and_count"]

MODEL = "tests.faults.proposing_model:proposes"
SET_ASIDE = (0, 1)
"""How the command ends: now and then the model declines, and such questions wait for a person."""


def command(server: RunningServer, out: Path, *, captions: int, concurrency: int) -> list[str]:
    """The command that is killed."""
    spec = f"openai:proposer-1?base_url={server.openai_url}&price={PRICE}"
    words = ["captions", "expand", "--culture", "chinese", "--encoder", "letters", "--captions", str(captions)]
    told = ["--llm", spec, "--out", str(out), "--concurrency", str(concurrency)]
    return [sys.executable, "-m", "culturekit", *words, *told]


def kill_and_count(folder: Path, *, kills: int, captions: int, concurrency: int, seed: int, longest: float) -> Kills:
    """Kill and resume until enough kills hit a run at work; after the last one each run goes to its end."""
    chance, result = random.Random(seed), Kills()
    with server_process(SLOW, model=MODEL) as server:
        whole = command(server, folder / "undisturbed", captions=captions, concurrency=concurrency)
        done = subprocess.run(whole, capture_output=True, env=environment(), cwd=ROOT, check=False)
        if done.returncode not in SET_ASIDE:
            raise RuntimeError(done.stderr.decode())
    expected = tables(folder / "undisturbed")
    while result.kills < kills:
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        with server_process(SLOW, model=MODEL) as server:
            kill_asking(
                command(server, out, captions=captions, concurrency=concurrency), server, result, chance=chance,
                kills=kills, concurrency=concurrency, longest=longest, environment=environment(), fine=SET_ASIDE,
            )  # fmt: skip
        result.different += [table for table in expected if tables(out).get(table) != expected[table]]
    return result


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--captions", type=int, default=1_000)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(Path(folder), longest=6.0, **vars(asked))
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds: {result.bought_twice} bought twice, at most "
        f"{result.most_twice} were under way; {len(result.different)} tables different\n"
    )
    return int(bool(result.different) or result.bought_twice > result.most_twice)


if __name__ == "__main__":
    sys.exit(main())
