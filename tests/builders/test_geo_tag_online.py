"""The command `tag` against a server that speaks the protocols, pictures and all."""

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from culturekit.cli.app import app
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from tests.builders.judging.test_image_judge import png, table
from tests.builders.spaces import artifact, cspace
from tests.llm.server import Answer, Question, running_server

PROBE = 1  # Requests of a run that are about no image: whether the server enforces schemas


def ran(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return getattr(result.exception, "exit_code", result.exit_code), result.output


@pytest.fixture
def images(tmp_path: Path) -> Path:
    colours = ["red", "green", "blue", "black", "white", "red"]
    return table(tmp_path / "images", {f"Poland_bigos_{n}": png(colour) for n, colour in enumerate(colours)})


@pytest.fixture
def space(tmp_path: Path) -> Path:
    (tmp_path / "space").mkdir()
    return write_table(tmp_path / "space", CSPACE, cspace(artifact(1, name="Bigos", country="PL", continent="Europe")))


def names_bigos(question: Question) -> Answer | str:
    """Name the same for every image, unless the question gives away what its file is called."""
    if "bigos" in question.user + question.instructions:
        return "I have read it in the file's name."
    return json.dumps(
        {"id": question.row, "shown": "yes", "artifacts": [{"name": "bigos", "country": "Poland", "sure": 80}]}
    )


@pytest.mark.parametrize("provider", ["openai", "google"])
def test_plan_budget_run_and_again(
    images: Path, space: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-nobody")
    with running_server(model=names_bigos) as server:
        url = server.openai_url if provider == "openai" else server.google_url
        judge = f"{provider}:seer-1?base_url={url}&price=0.15/0.60"
        words = ("tag", "--images", images, "--llm", judge, "--cspace", space, "--out", tmp_path / "tags")

        code, said = ran(*words, "--plan", "--json")
        assert code == 0, said
        planned = json.loads(said.splitlines()[-1])
        assert (planned["images"], planned["unreadable"], planned["cost"]["requests"]) == (6, 0, 6)
        assert server.stats()["requests"] == 0

        assert ran(*words, "--budget", "0.00001")[0] == 5
        assert not (tmp_path / "tags").exists()

        code, said = ran(*words, "--budget", "5")
        assert code == 0, said
        stats = server.stats()
        assert (stats["broken"], stats["bought_twice"]) == ([], 0)
        assert stats["rows"] == 5 + PROBE, "two of the images are the same picture"
        assert ran(*words)[0] == 0
        assert server.stats()["requests"] == stats["requests"]
    rows = pl.read_parquet(tmp_path / "tags/matches.parquet")
    assert rows.select("artifact_id", "country", "method").unique().rows() == [("Q1", "PL", "vlm")]
    assert rows.height == 6
