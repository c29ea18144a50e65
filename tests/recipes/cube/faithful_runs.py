"""A finished small run, run again with judges on a loopback server."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from culturekit.recipes.cube.keys import Recipe, load_recipe
from tests.conftest import SMALL
from tests.faults.seeing_model import sees
from tests.llm.server import RunningServer, running_server

FAITHFUL = """
faithfulness:
  questions: "{judge}"
  answers: "{judge}"
  vqascore: "{judge}"
  per_prompt: 6
llm: {{budget: {budget}}}
"""


def judge_of(server: RunningServer) -> str:
    """Name the model of a server."""
    return f"openai:seer-1?base_url={server.openai_url}&price=0.15/0.60"


@contextmanager
def judging_server() -> Iterator[RunningServer]:
    """Serve a model that sees."""
    with running_server(model=sees) as server:
        yield server


def faithful_recipe(folder: Path, judge: str, *, budget: float = 5.0) -> Recipe:
    """Write the small recipe with judges, and load it."""
    path = folder / "faithful.yaml"
    path.write_text(SMALL.read_text(encoding="utf-8") + FAITHFUL.format(judge=judge, budget=budget), encoding="utf-8")
    return load_recipe(path)


def with_faithfulness(small_run: Path, folder: Path) -> Path:
    """Copy a finished run, to go on from there."""
    return Path(shutil.copytree(small_run, folder))
