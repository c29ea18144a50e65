"""`questions build`, `questions ask` and `vqascore` against a server, and what `score questions` makes of them."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts
from tests.faults.seeing_model import sees
from tests.llm.server import running_server

PROBES = 3  # Each of the three commands asks once whether the server enforces schemas


def ran(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return getattr(result.exception, "exit_code", result.exit_code), result.output


def planned(*words: str | Path) -> dict[str, object]:
    code, said = ran(*words, "--plan", "--json")
    assert code == 0, said
    found: dict[str, object] = json.loads(said.splitlines()[-1])
    return found


def test_from_prompts_to_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    own = prompts(tmp_path / "prompts", {"p1": "A red square", "p2": "A red square", "p3": "A blue one"})
    images = table(tmp_path / "images", {f"i{n}": png(f"#{n}{n}{n}") for n in range(6)})
    with running_server(model=sees) as server:
        spec = f"openai:seer-1?base_url={server.openai_url}&price=0.15/0.60"
        build = ("questions", "build", "--prompts", own, "--llm", spec, "--out", tmp_path / "q")
        ask = ("questions", "ask", "--images", images, "--questions", tmp_path / "q/questions.parquet", "--llm", spec)
        weigh = ("vqascore", "--images", images, "--prompts", own, "--llm", spec, "--out", tmp_path / "v")

        assert planned(*build)["requests"] == 3
        assert ran(*build, "--budget", "0.00001")[0] == 5
        assert ran(*build)[0] == 0
        assert planned(*ask, "--out", tmp_path / "a")["requests"] == 6 * 4
        assert ran(*ask, "--out", tmp_path / "a")[0] in {0, 1}
        assert planned(*weigh)["requests"] == 6
        assert ran(*weigh)[0] == 0
        stats = server.stats()
        assert stats["broken"] == []
        assert stats["bought_twice"] == PROBES - 1, "and two prompts that say the same are asked about once"
        for again in (build, (*ask, "--out", tmp_path / "a"), weigh):
            ran(*again)
        assert server.stats()["requests"] == stats["requests"]
    code, said = ran(
        "score", "questions", "--images", images, "--judgments", tmp_path / "a/judgments.parquet", "--judgments",
        tmp_path / "v/judgments.parquet", "--questions", tmp_path / "q/questions.parquet", "--out", tmp_path / "s",
    )  # fmt: skip
    assert code == 0, said
    scores = pl.read_parquet(tmp_path / "s/scores.parquet")
    assert set(scores["metric"]) == {"dsg", "vqascore"}
    assert scores["value"].is_between(0, 1).all()
    code, said = ran("verify", tmp_path / "s")
    assert code == 0, said
    assert "2 verified" in said


def test_who_cannot_see_is_told_so(tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png()}, prompt_sent="A red square")
    code, said = ran("vqascore", "--images", images, "--llm", "rules", "--out", tmp_path / "v")
    assert code == 2
    code, said = ran("vqascore", "--images", images, "--llm", "google:gemini-2.5-flash", "--out", tmp_path / "v")
    assert code == 2, said
    assert not (tmp_path / "v").exists()
