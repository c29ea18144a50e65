"""Captions from a real client: planned, budgeted, gone on with, whatever the wire does."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.builders.test_activities_online import asked, spec
from tests.faults.proposing_model import proposes
from tests.llm.server import running_server


@pytest.mark.endtoend
def test_a_budget_stops_the_rounds_and_a_larger_one_goes_on_to_the_same_captions(tmp_path: Path) -> None:
    with running_server(model=proposes) as server:
        words = ("captions", "expand", "--culture", "chinese", "--captions", "60", "--llm", spec(server, "openai"))
        plan = json.loads(asked(tmp_path, *words, "--out", "some", "--plan", "--json").stdout)
        assert (plan["units"], plan["requests"]) == (11, 11)
        assert server.stats()["requests"] == 0
        asked(tmp_path, *words, "--out", "some", "--budget", "0.003", "--concurrency", "1", code=5)
        spent = server.stats()
        assert 0 < spent["requests"] < 11
        assert spent["usd"] <= 0.003
        left = json.loads(asked(tmp_path, *words, "--out", "some", "--plan", "--json").stdout)["requests"]
        assert left < 11
        asked(tmp_path, *words, "--out", "some", "--budget", "1")
        assert server.stats()["bought_twice"] == 0
        asked(tmp_path, *words, "--out", "other", "--concurrency", "3")
        stats = server.stats()
    assert stats["broken"] == []
    for table in ("captions", "caption_proposals", "drops"):
        assert (tmp_path / f"some/{table}.parquet").read_bytes() == (tmp_path / f"other/{table}.parquet").read_bytes()
    captions = pl.read_parquet(tmp_path / "some/captions.parquet")
    assert captions.height == 60
    assert set(pl.read_parquet(tmp_path / "some/drops.parquet")["reason"]) >= {"same as an earlier caption", "refused"}
