"""`questions build`, `questions ask` and `vqascore` against a server, and what `score questions` makes of them."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts
from tests.command_line import culturekit
from tests.faults.seeing_model import sees
from tests.llm.server import running_server

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
