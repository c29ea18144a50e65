"""Kill `questions ask` and `vqascore` with SIGKILL while a vision model answers over HTTP, and resume them.

`python -m tests.faults.question_kills --kills 40` prints what came of it and ends with 0 when no kill made more
requests be bought twice than were under way, and every table is the one of an undisturbed run.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_answers import questions
from tests.builders.judging.test_question_graph import prompts
from tests.faults.filter_kills import PRICE, ROOT, SLOW, environment, tables
from tests.faults.killing import Kills, kill_asking
from tests.llm.server import RunningServer
from tests.llm.server.running import server_process

__all__ = ["kill_and_count"]

MODEL = "tests.faults.seeing_model:sees"
SET_ASIDE = (0, 1)
"""How the commands end: now and then the model declines, and such rows wait for a person."""

Command = list[str]


def commands(folder: Path, images: int) -> dict[str, Command]:
    """Write pictures, a prompt and its questions, and the commands that ask about them."""
    colours = {f"image-{number}": png(f"#{number * 7 % 4096:03x}") for number in range(images)}
    pictures = table(folder / "images", colours)
    asked = questions(folder / "questions", {"p1": [f"Is thing {number} shown?" for number in range(1, 6)]})
    own = prompts(folder / "prompts", {"p1": "A plain square"})
    python = [sys.executable, "-m", "culturekit"]
    return {
        "ask": [*python, "questions", "ask", "--images", str(pictures), "--questions", str(asked)],
        "weigh": [*python, "vqascore", "--images", str(pictures), "--prompts", str(own)],
    }


def finished(command: Command, server: RunningServer, out: Path, *, concurrency: int) -> Command:
    """Add to a command whom it asks, where it writes, and how many requests may be under way."""
    spec = f"openai:seer-1?base_url={server.openai_url}&price={PRICE}"
    return [*command, "--llm", spec, "--out", str(out), "--concurrency", str(concurrency)]


def kill_and_count(folder: Path, *, kills: int, images: int, concurrency: int, seed: int, longest: float) -> Kills:
    """Kill and resume until enough kills hit a run at work; after the last one each run goes to its end."""
    chance = random.Random(seed)
    result = Kills()
    for name, command in commands(folder, images).items():
        with server_process(SLOW, model=MODEL) as server:
            whole = finished(command, server, folder / name / "undisturbed", concurrency=concurrency)
            done = subprocess.run(whole, capture_output=True, env=environment(), cwd=ROOT, check=False)
            if done.returncode not in SET_ASIDE:
                raise RuntimeError(done.stderr.decode())
        expected = tables(folder / name / "undisturbed")
        before = result.kills
        while result.kills < before + kills:
            result.rounds += 1
            out = folder / name / f"round-{result.rounds}"
            with server_process(SLOW, model=MODEL) as server:
                kill_asking(
                    finished(command, server, out, concurrency=concurrency), server, result, chance=chance,
                    kills=before + kills, concurrency=concurrency, longest=longest, environment=environment(),
                    fine=SET_ASIDE,
                )  # fmt: skip
            result.different += [table for table in expected if tables(out).get(table) != expected[table]]
    return result


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=40, help="of each of the two commands")
    parser.add_argument("--images", type=int, default=120)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--longest", type=float, default=4.0, help="seconds until a kill, at most")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        result = kill_and_count(
            Path(folder), kills=given.kills, images=given.images, concurrency=given.concurrency, seed=given.seed,
            longest=given.longest,
        )  # fmt: skip
    sys.stdout.write(
        f"{result.kills} kills in {result.rounds} rounds: {result.bought_twice} bought twice, at most "
        f"{result.most_twice} were under way; {len(result.different)} tables different\n"
    )
    return 1 if result.different or result.bought_twice > result.most_twice else 0


if __name__ == "__main__":
    sys.exit(main())
