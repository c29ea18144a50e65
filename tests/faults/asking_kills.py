"""Kill commands that ask a model over HTTP with SIGKILL at random moments, resume them, and count what was bought.

No kill may make more requests be bought twice than were under way, and every table is that of an undisturbed run.
"""

import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from culturekit.core.digests import digest_file
from culturekit.core.schemas import CANDIDATES
from culturekit.core.tables import write_table
from tests.builders.completion_world import BRAZIL, DISH, JAPAN, dish, world
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts, questions
from tests.builders.spaces import candidates
from tests.faults.killing import Kills, kill_asking
from tests.llm.server import Fault, Rule, RunningServer, Script
from tests.llm.server.running import server_process

PRICE = "0.15/0.60"
ROOT = Path(__file__).parents[2]
SLOW = Script(rules=(Rule(then=Fault("stall", delay=0.02)),))
COMPLETING = "tests.builders.completing_model:answer"
COUNTRIES = ("BR", "FR", "IN", "IT", "JP", "NG", "TR", "US")

Command = list[str]


def dishes(folder: Path, rows: int) -> Path:
    """Write a table of candidates."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [
        {
            "qid": f"Q{number}", "label": f"dish {number}", "description": f"stew of the region {number % 7}",
            "concept": "cuisine", "country_qids": ["Q155"], "roots": ["Q746549"],
            "p31": ["Q746549"], "path": ["Q746549", f"Q{number}"],
        }
        for number in range(1, rows + 1)
    ]  # fmt: skip
    return write_table(folder, CANDIDATES, candidates(*made))


def collection(folder: Path, rows: int) -> Path:
    """Write a collection, with candidates that were dropped and a graph that knows more."""
    kept = [dish(number, f"dish {number}", BRAZIL if number % 2 else JAPAN) for number in range(1, rows + 1)]
    dropped = [(dish(number, f"specialty 1.0 of {name}"), "judge x") for number, name in ((9001, "Brazil"),)]
    items = [{"qid": "Q9100", "label": "Specialty 2.1 of Japan", "aliases": [], "P31": [DISH], "P17": [BRAZIL]}]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "roots.yaml").write_text(
        f"concept: cuisine\nhops: 3\nroots:\n  - {{qid: {DISH}, label: dish}}\ncountries: [{', '.join(COUNTRIES)}]\n",
        encoding="utf-8",
    )
    world(folder, kept, dropped, items)
    return folder


def filter_words(candidates_table: Path) -> Command:
    """Say how candidates are filter_words."""
    return ["cspace", "filter", "--candidates", str(candidates_table), "--roots", "cuisine"]


def completion_words(given: Path) -> Command:
    """Say how a collection is completion_words."""
    files = {"kept": "kept.parquet", "candidates": "candidates.parquet", "graph": "graph", "roots": "roots.yaml"}
    return ["cspace", "complete", *(word for name, file in files.items() for word in (f"--{name}", str(given / file)))]


def asked(folder: Path, images: int) -> Command:
    """Write pictures, a prompt and its questions, and say how they are answered."""
    texts = {"p1": [f"Is thing {number} shown?" for number in range(1, 6)]}
    own = questions(folder / "questions", texts)
    return ["questions", "ask", "--images", str(pictures(folder, images)), "--questions", str(own)]


def weighed(folder: Path, images: int) -> Command:
    """Write pictures and a prompt, and say how what they show is weighed."""
    own = prompts(folder / "prompts", {"p1": "A plain square"})
    return ["vqascore", "--images", str(pictures(folder, images)), "--prompts", str(own)]


def pictures(folder: Path, images: int) -> Path:
    """Write pictures, each of another colour."""
    return table(folder / "images", {f"image-{number}": png(f"#{number * 7 % 4096:03x}") for number in range(images)})


def expanded(_: Path, captions: int) -> Command:
    """Say how captions are expanded; each round needs the ones before."""
    return ["captions", "expand", "--culture", "chinese", "--encoder", "letters", "--captions", str(captions)]


@dataclass(frozen=True)
class Asking:
    """A command that asks: what writes its files, who answers, how much it is about, and how it is killed."""

    words: Callable[[Path, int], Command]
    model: str
    size: int
    kills: int
    longest: float


SEEING = "tests.faults.seeing_model:sees"
COMMANDS = {
    "filter": Asking(lambda folder, rows: filter_words(dishes(folder, rows)), "", 600, 50, 4.0),
    "complete": Asking(lambda folder, rows: completion_words(collection(folder, rows)), COMPLETING, 40, 30, 5.0),
    "ask": Asking(asked, SEEING, 120, 40, 4.0),
    "weigh": Asking(weighed, SEEING, 120, 40, 4.0),
    "expand": Asking(expanded, "tests.faults.proposing_model:proposes", 1_000, 30, 6.0),
}


def asking_command(words: Command, out: Path, server: RunningServer, *more: str, concurrency: int = 8) -> Command:
    """Add to a command whom it asks, where it writes, and how many requests may be under way."""
    spec = f"openai:judge-1?base_url={server.openai_url}&price={PRICE}"
    command = [sys.executable, "-m", "culturekit", *words, "--llm", spec, "--out", str(out)]
    return [*command, "--concurrency", str(concurrency), *more]


def environment() -> dict[str, str]:
    """Give the child a key, and our own packages."""
    return {**os.environ, "OPENAI_API_KEY": "sk-of-nobody", "PYTHONPATH": str(ROOT)}


def tables(out: Path) -> dict[str, str]:
    """Hash the tables of a finished folder."""
    return {path.name: digest_file(path) for path in sorted(out.glob("*.parquet"))}


def kill_and_count(
    folder: Path, name: str, *, kills: int, size: int, concurrency: int, seed: int, longest: float
) -> Kills:
    """Kill and resume until enough kills hit a run at work; a round ends when its run does.

    A command may end with 1: rows that a person has to look at are no failure here.
    """
    chance, result, model = random.Random(seed), Kills(), COMMANDS[name].model
    given = folder / "given"
    given.mkdir(parents=True, exist_ok=True)
    words = COMMANDS[name].words(given, size)
    with server_process(SLOW, model=model) as server:
        whole = asking_command(words, folder / "undisturbed", server, concurrency=concurrency)
        done = subprocess.run(whole, capture_output=True, text=True, env=environment(), cwd=ROOT, check=False)
        if done.returncode not in {0, 1}:
            raise RuntimeError(done.stderr)
    expected = tables(folder / "undisturbed")
    while result.kills < kills:
        result.rounds += 1
        out = folder / f"round-{result.rounds}"
        with server_process(SLOW, model=model) as server:
            kill_asking(
                asking_command(words, out, server, concurrency=concurrency), server, result, chance=chance, kills=kills,
                concurrency=concurrency, longest=longest, environment=environment(), fine=(0, 1),
            )  # fmt: skip
        result.different += [each for each in expected if tables(out).get(each) != expected[each]]
    return result
