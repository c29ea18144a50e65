"""Questions about images, put to a server by the real SDK."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.llm.clients.clients import CLIENTS
from culturekit.records.work import Work
from tests.builders.judging.asked import judge_images
from tests.builders.judging.test_image_judge import LIKERT, SHARE, YES_NO, png, table
from tests.llm.server import running_server


@pytest.mark.parametrize("provider", ["openai", "google"])
def test_pictures_reach_the_judge_and_their_answers_the_table(
    work: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    monkeypatch.setenv("GEMINI_API_KEY", "key-of-nobody")
    path = table(tmp_path / "images", {"a": png("red"), "b": png("blue"), "c": b"broken"})
    with running_server() as server:
        url = server.openai_url if provider == "openai" else server.google_url
        client = CLIENTS.make(f"{provider}:seer-1?base_url={url}&price=0.15/0.60")
        outcome = judge_images(work, path, [YES_NO, LIKERT, SHARE], client)
        first = server.stats()
        again = judge_images(work, path, [YES_NO, LIKERT, SHARE], client)
        assert server.stats()["requests"] == first["requests"] == 6 + 1, "one probes the server"
    assert first["broken"] == []
    rows = pl.read_parquet(work.out / "judgments.parquet")
    assert outcome.counts == again.counts == {"judgments": 6, "images": 3, "drops": 1}
    assert set(rows["outcome"]) == {"ok"}
    assert set(rows["judge"]) == {"seer-1"}
    assert set(rows.filter(pl.col("task") == "inclusion")["choice"]) <= {"yes", "no"}
    assert rows.filter(pl.col("task") == "exaggeration")["value"].is_between(0, 1).all()
