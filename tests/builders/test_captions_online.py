"""Rounds of captions from a server: what is left is planned, and a larger budget goes on where one ended."""

import json
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit
from tests.faults.proposing_model import proposes
from tests.llm.server import running_server

KEYS = {"OPENAI_API_KEY": "sk-of-nobody"}


@pytest.mark.endtoend
def test_a_budget_stops_the_rounds_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    def expanded(*more: str, code: int = 0) -> str:
        words = ("captions", "expand", "--culture", "chinese", "--captions", "60", "--llm", spec, "--out", "some")
        done = culturekit(*words, *more, cwd=tmp_path, env=KEYS)
        assert done.returncode == code, done.stderr
        return done.stdout

    with running_server(model=proposes) as server:
        spec = f"openai:gpt-1?base_url={server.openai_url}&price=0.15/0.60"
        plan = json.loads(expanded("--plan", "--json"))
        assert (plan["units"], plan["requests"], server.stats()["requests"]) == (11, 11, 0)
        expanded("--budget", "0.003", "--concurrency", "1", code=5)
        assert 0 < server.stats()["requests"] < 11
        assert server.stats()["usd"] <= 0.003
        assert json.loads(expanded("--plan", "--json"))["requests"] < 11
        expanded("--budget", "1")
        stats = server.stats()
    assert (stats["broken"], stats["bought_twice"]) == ([], 0)
    assert pl.read_parquet(tmp_path / "some/captions.parquet").height == 60
    drops = set(pl.read_parquet(tmp_path / "some/drops.parquet")["reason"])
    assert drops >= {"same as an earlier caption", "refused"}
