"""`judge`, `questions` and `vqascore`: questions put to images, and what is refused of them."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts
from tests.command_line import culturekit
from tests.faults.seeing_model import sees
from tests.llm.server import running_server


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


PROBES = 3  # Each of the three commands asks once whether the server enforces schemas


def planned(*words: str | Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(culturekit(*words, "--plan", "--json", ends=0).stdout)
    return found


def test_from_prompts_to_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    mine = prompts(tmp_path / "prompts", {"p1": "A red square", "p2": "A red square", "p3": "A blue one"})
    images = table(tmp_path / "images", {f"i{n}": png(f"#{n}{n}{n}") for n in range(6)})
    with running_server(model=sees) as server:
        spec = f"openai:seer-1?base_url={server.openai_url}&price=0.15/0.60"
        build = ("questions", "build", "--prompts", mine, "--llm", spec, "--out", tmp_path / "q")
        ask = ("questions", "ask", "--images", images, "--questions", tmp_path / "q/questions.parquet", "--llm", spec)
        weigh = ("vqascore", "--images", images, "--prompts", mine, "--llm", spec, "--out", tmp_path / "v")

        assert planned(*build)["requests"] == 3
        culturekit(*build, "--budget", "0.00001", ends=5)
        culturekit(*build, ends=0)
        assert planned(*ask, "--out", tmp_path / "a")["requests"] == 6 * 4
        assert culturekit(*ask, "--out", tmp_path / "a").returncode in {0, 1}
        assert planned(*weigh)["requests"] == 6
        culturekit(*weigh, ends=0)
        stats = server.stats()
        assert stats["broken"] == []
        assert stats["bought_twice"] == PROBES - 1, "and two prompts that say the same are asked about once"
        for again in (build, (*ask, "--out", tmp_path / "a"), weigh):
            culturekit(*again)
        assert server.stats()["requests"] == stats["requests"]
    culturekit(
        "score", "questions", "--images", images, "--judgments", tmp_path / "a/judgments.parquet", "--judgments",
        tmp_path / "v/judgments.parquet", "--questions", tmp_path / "q/questions.parquet", "--out", tmp_path / "s",
        ends=0,
    )  # fmt: skip
    scores = pl.read_parquet(tmp_path / "s/scores.parquet")
    assert set(scores["metric"]) == {"dsg", "vqascore"}
    assert scores["value"].is_between(0, 1).all()
    assert "2 verified" in culturekit("verify", tmp_path / "s", ends=0).stdout


def test_who_cannot_see_is_told_so(tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png()}, prompt_sent="A red square")
    for spec in ("rules", "google:gemini-2.5-flash"):
        culturekit("vqascore", "--images", images, "--llm", spec, "--out", tmp_path / "v", ends=2)
    assert not (tmp_path / "v").exists()
