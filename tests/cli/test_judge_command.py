"""`culturekit judge`: questions of a file, put to images, and what is refused of them."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.builders.judging.test_image_judge import png, table
from tests.cli.test_question_commands import planned
from tests.command_line import culturekit


def replayed(folder: Path, task: str, reply: dict[str, str]) -> str:
    (folder / "said.jsonl").write_text(json.dumps({"task": task, "reply": reply}), encoding="utf-8")
    return f"replay:{folder}/said.jsonl?miss=default"


def test_phrases_are_extracted_planned_and_reused(tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png(), "b": b"broken"})
    spec = replayed(tmp_path, "image.extract", {"descriptors": "samovar, rug"})
    words: list[str | Path] = ["judge", "extract", "--images", images, "--llm", spec, "--out", tmp_path / "extracted"]
    assert planned(*words)["requests"] == 5
    assert json.loads(culturekit(*words, "--json", ends=0).stdout)["drops"] == {"picture format not read": 1}
    assert set(pl.read_parquet(tmp_path / "extracted/judgments.parquet")["item"]) == {"rug", "samovar"}
    assert json.loads(culturekit(*words, "--json").stdout)["state"] == "reused"


QUESTIONS = """
questions:
  - {task: inclusion, item: region, question: "Is the country right?", answers: [yes, no]}
  - {task: likert, item: beauty, question: "How fair?", answers: [1, 2, 3]}
"""


@pytest.fixture
def words(tmp_path: Path) -> list[str | Path]:
    images = table(tmp_path / "images", {"a": png(), "b": b"broken"})
    lines = [{"task": f"image.{task}", "reply": {"id": "${id}", "choice": choice}}
            for task, choice in (("inclusion", "yes"), ("likert", "2"))]  # fmt: skip
    (tmp_path / "said.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "questions.yaml").write_text(QUESTIONS, encoding="utf-8")
    spec = f"replay:{tmp_path}/said.jsonl?miss=default"
    return ["judge", "--images", images, "--questions", tmp_path / "questions.yaml", "--llm", spec, "--out",
            tmp_path / "judged"]  # fmt: skip


def test_each_question_is_a_row_of_each_image_that_can_be_shown(words: list[str | Path], tmp_path: Path) -> None:
    assert planned(*words)["requests"] == 2
    assert json.loads(culturekit(*words, "--json", ends=0).stdout)["drops"] == {"picture format not read": 1}
    rows = pl.read_parquet(tmp_path / "judged/judgments.parquet").select("image_id", "task", "item", "value", "choice")
    assert rows.rows() == [("a", "inclusion", "region", None, "yes"), ("a", "likert", "beauty", 2.0, "2")]
    assert json.loads(culturekit(*words, "--json").stdout)["state"] == "reused"


@pytest.mark.parametrize(("changed", "spoken"), [
    ("questions: []", "no question is asked"),
    (QUESTIONS.replace("answers", "answer", 1), "questions.yaml:3"),
    (QUESTIONS.replace("answers: [yes, no]", "between: [1, 1]"), "from the smaller to the larger"),
    (QUESTIONS.replace("answers: [yes, no]", "dimension: sky"), "some answers or a range"),
])  # fmt: skip
def test_impossible_questions_are_refused(words: list[str | Path], tmp_path: Path, changed: str, spoken: str) -> None:
    (tmp_path / "questions.yaml").write_text(changed, encoding="utf-8")
    assert spoken in culturekit(*words, ends=2).stderr
