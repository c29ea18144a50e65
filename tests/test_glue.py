"""What a stranger has to write around what is his own, counted: lines of plugins, and of YAML."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from culturekit.builders.filtering.cspace_filter import FilterReply
from culturekit.core.recipe_plugins import use_plugins
from culturekit.generation.backend import BACKENDS, ImageRequest
from culturekit.index.encoder import ENCODERS
from culturekit.index.raters.quality import SCORERS
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from tests.command_line import culturekit
from tests.test_examples import matches
from tests.test_extend_page import blocks

OWN = "# own"  # Ends a line that does what the stranger came for; every other line is glue

FILES = {
    "encoder": """
import numpy as np  # own
from culturekit.index.encoder import EncoderIdentity
class Mean:
    identity = EncoderIdentity("mean", "none", "1", "mean colours", "float32", 4)
    caveat, batch_size = "", 8
    def prepare(self, picture):
        return np.append(picture.mean((0, 1)), 1).astype(np.float32)  # own
    def encode_prepared(self, pictures):
        return np.stack([each / np.linalg.norm(each) for each in pictures])  # own
    def encode_images(self, pictures):
        return self.encode_prepared([self.prepare(picture) for picture in pictures])
def make(spec):
    return Mean()
""",
    "backend": """
import numpy as np  # own
from culturekit.generation.backend import Picture
class Flat:
    version, knows_truth = "flat 1", False
    def generate(self, requests):
        return [Picture(np.full((each.height, each.width, 3), each.seed, np.uint8), True) for each in requests]  # own
def make(spec):
    return Flat()
""",
    "judge": """
import json  # own
from culturekit.llm.client import Reply
class Echo:
    model, caveat = "echo 1", ""
    def ask(self, request):
        return Reply(json.dumps({"id": request.data["id"], "verdict": "keep"}))  # own
def make(spec):
    return Echo()
""",
    "quality": """
import numpy as np  # own
class Light:
    name, caveat, needs_prompts, parameters, batch_size = "light", "", False, {"version": 1}, 8
    def prepare(self, picture):
        return picture.mean()  # own
    def score_prepared(self, pictures, prompts=()):
        return np.array(pictures, np.float64)
    def score(self, pictures, prompts=()):
        return self.score_prepared([self.prepare(picture) for picture in pictures])
def make(spec):
    return Light()
""",
    "metric": '''
from typing import Annotated
from pydantic import Field
from culturekit.core.inputs import Files
from culturekit.scores.family import scores
from culturekit.scores.catalog import Metric
from culturekit.scores.score_rows import Scored, scored, statistic_row
from culturekit.metrics.statistics.intervals import interval
from culturekit.core.schemas import MATCHES
SURE = Metric("sure", "Sure images", "mean of not abstained", 0, 1, "higher", "share", "mine", ("matches",), ())  # own
@scores("sure", SURE, example="--matches matches.parquet --out sure")
def sure(matches: Annotated[Files, Field(description="Matches.")]) -> Scored:
    """Score how often the mapping is sure."""  # own
    images = matches.together(MATCHES).filter(rank=1)  # own
    answer = interval(~images["abstained"], prompts=images["image_id"], repeats=images["repeat"])  # own
    place = {"metric": SURE.name, "model": images["model"][0], "benchmark": "mine", "concept": None}
    return scored([statistic_row(**place, answer=answer, params={}, unit=SURE.unit)], [])
''',
}

PICTURES = [np.full((8, 8, 3), shade, np.uint8) for shade in (10, 200)]
QUESTION = Request("judge", "Keep?", {"id": "Q1"}, FilterReply)
ASKED: dict[str, Callable[[], Any]] = {
    "encoder": lambda: ENCODERS.make("mine").encode_images(PICTURES),  # type: ignore[attr-defined]
    "backend": lambda: BACKENDS.make("mine").generate(
        [ImageRequest("p", "a flag", None, 1, 0, 0, None, None, None, width=16, height=8)]
    ),
    "judge": lambda: CLIENTS.make("mine").ask(QUESTION),  # type: ignore[union-attr]
    "quality": lambda: SCORERS.make("mine").score(PICTURES),
}
# Ten lines were wanted of each; a metric has more: it says what it reads, and how it is run, listed and reported
GLUE = {"encoder": 10, "backend": 6, "judge": 6, "quality": 9, "metric": 12}


def glue(text: str) -> int:
    """Count the lines that are no part of what a stranger came for."""
    return sum(bool(line.strip()) and not line.endswith(OWN) for line in text.splitlines())


def test_a_plugin_is_ten_lines_and_what_it_does(tmp_path: Path) -> None:
    for kind, ask in ASKED.items():
        path = tmp_path / f"my_{kind}.py"
        path.write_text(FILES[kind], encoding="utf-8")
        use_plugins({f"{kind}.mine": f"{path}:make"})
        assert len(ask().text if kind == "judge" else ask())
    use_plugins({})
    assert {kind: glue(text) for kind, text in FILES.items()} == GLUE


@pytest.mark.endtoend
def test_a_metric_is_a_dozen_lines_and_what_it_does(tmp_path: Path) -> None:
    (tmp_path / "sure.py").write_text(FILES["metric"], encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("plugins: {metric.sure: sure.py:sure}\n", encoding="utf-8")
    table = matches(tmp_path / "m", {"a": [["FR", "IT"]]})
    words = ("--plugins", "mine.yaml", "score", "sure", "--matches", table, "--out", "scores")
    answer = culturekit(*words, cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert pl.read_parquet(tmp_path / "scores/scores.parquet")["metric"].to_list() == ["sure"]


def test_the_page_about_lists_asks_for_a_few_lines() -> None:
    """The words of one concept, those of a list, and a whole recipe of two models."""
    counted = {name: glue(text) for name, kind, text in blocks() if kind == "yaml"}
    assert counted == {"": 5, "words.yaml": 8, "things.yaml": 9}


def test_a_metric_that_does_not_describe_what_it_reads_is_named(tmp_path: Path) -> None:
    text = FILES["metric"].replace('Annotated[Files, Field(description="Matches.")]', "Files")
    (tmp_path / "sure.py").write_text(text, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text("plugins: {metric.sure: sure.py:sure}\n", encoding="utf-8")
    answer = culturekit("--plugins", "mine.yaml", "score", "sure", "--help", cwd=tmp_path)
    assert answer.returncode == 2
    assert "the metric sure of the file sure.py answers what it reads with something else" in answer.stderr
    assert "expected Annotated[..., Field(description=...)] of each, found sure.matches without" in answer.stderr
