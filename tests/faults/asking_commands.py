"""Commands that ask a model over HTTP, and the files that they need."""

import sys
from pathlib import Path

from culturekit.core.digests import digest_file
from culturekit.core.schemas import CANDIDATES
from culturekit.core.tables import write_table
from tests.builders.completion_world import BRAZIL, DISH, JAPAN, dish, world
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts, questions
from tests.builders.spaces import candidates
from tests.llm.server import RunningServer

PRICE = "0.15/0.60"
COMPLETING = "tests.builders.completing_model:answer"
COUNTRIES = ("BR", "FR", "IN", "IT", "JP", "NG", "TR", "US")

Command = list[str]


def dishes(folder: Path, rows: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "qid": f"Q{number}", "label": f"dish {number}", "description": f"stew of the region {number % 7}",
            "concept": "cuisine", "country_qids": ["Q155"], "roots": ["Q746549"],
            "p31": ["Q746549"], "path": ["Q746549", f"Q{number}"],
        }
        for number in range(1, rows + 1)
    ]  # fmt: skip
    return write_table(folder, CANDIDATES, candidates(*lines))


def collection(folder: Path, rows: int) -> Path:
    """Write a collection, with candidates that were dropped and a graph that knows more."""
    kept = [dish(number, f"dish {number}", BRAZIL if number % 2 else JAPAN) for number in range(1, rows + 1)]
    dropped = [(dish(9001, "specialty 1.0 of Brazil"), "judge x")]
    items = [{"qid": "Q9100", "label": "Specialty 2.1 of Japan", "aliases": [], "P31": [DISH], "P17": [BRAZIL]}]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "roots.yaml").write_text(
        f"concept: cuisine\nhops: 3\nroots:\n  - {{qid: {DISH}, label: dish}}\ncountries: [{', '.join(COUNTRIES)}]\n",
        encoding="utf-8",
    )
    world(folder, kept, dropped, items)
    return folder


def filter_words(candidates_table: Path) -> Command:
    return ["cspace", "filter", "--candidates", str(candidates_table), "--roots", "cuisine"]


def completion_words(given: Path) -> Command:
    files = {"kept": "kept.parquet", "candidates": "candidates.parquet", "graph": "graph", "roots": "roots.yaml"}
    return ["cspace", "complete", *(word for name, file in files.items() for word in (f"--{name}", str(given / file)))]


def asking_words(folder: Path, images: int) -> Command:
    texts = {"p1": [f"Is thing {number} shown?" for number in range(1, 6)]}
    mine = questions(folder / "questions", texts)
    return ["questions", "ask", "--images", str(pictures(folder, images)), "--questions", str(mine)]


def weighing_words(folder: Path, images: int) -> Command:
    mine = prompts(folder / "prompts", {"p1": "A plain square"})
    return ["vqascore", "--images", str(pictures(folder, images)), "--prompts", str(mine)]


def expanding_words(captions: int) -> Command:
    """Expand captions; each round needs the ones before."""
    return ["captions", "expand", "--culture", "chinese", "--encoder", "letters", "--captions", str(captions)]


def pictures(folder: Path, images: int) -> Path:
    return table(folder / "images", {f"image-{number}": png(f"#{number * 7 % 4096:03x}") for number in range(images)})


def asking_command(
    words: Command, out: Path, server: RunningServer | str, *more: str, concurrency: int = 8
) -> Command:  # fmt: skip
    """Add to a command whom it asks, where it writes, and how many requests may be under way."""
    url = server if isinstance(server, str) else server.openai_url
    command = [sys.executable, "-m", "culturekit", *words, "--llm", f"openai:judge-1?base_url={url}&price={PRICE}"]
    return [*command, "--out", str(out), "--concurrency", str(concurrency), *more]


def tables(out: Path) -> dict[str, str]:
    return {path.name: digest_file(path) for path in sorted(out.glob("*.parquet"))}
