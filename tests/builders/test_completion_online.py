"""The completion's command against a server that speaks the protocol, in another process."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.command_line import culturekit
from tests.faults.asking_commands import COMPLETING, asking_command, collection, completion_words, tables
from tests.faults.kill_and_resume import ROOT, environment
from tests.llm.server import RunningServer
from tests.llm.server.running import server_process

CELLS = 8


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collection(tmp_path_factory.mktemp("collection"), 40)


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with server_process(model=COMPLETING) as running:
        yield running


def ran(command: list[str]) -> "subprocess.CompletedProcess[str]":
    program, _, name, *words = command
    assert (program, name) == (sys.executable, "culturekit")
    return culturekit(*words, cwd=ROOT, env=environment())


def test_plan_pilot_budget_run_and_ledger(given: Path, server: RunningServer, tmp_path: Path) -> None:
    def completed(*more: str) -> "subprocess.CompletedProcess[str]":
        return ran(asking_command(completion_words(given), tmp_path / "completion", server, *more))

    before = json.loads(completed("--plan", "--json").stdout)
    assert (before["cells"], before["proposals"]["requests"]) == (CELLS, CELLS * 4)
    assert server.stats()["requests"] == 0
    assert not list(tmp_path.iterdir())

    tried = completed("--pilot", "3", "--json")
    assert tried.returncode == 0, tried.stderr
    after = json.loads(tried.stdout)
    assert after["pilot"]["asked"] == 3
    assert after["proposals"]["bought"] == 3
    assert after["checks"]["bought"] == after["checks"]["pilot"] > 0

    stopped = completed("--budget", f"{server.stats()['usd'] + 0.001:.6f}")
    assert stopped.returncode == 5, stopped.stderr
    assert not (tmp_path / "completion").exists()

    finished = completed("--budget", "5")
    assert finished.returncode == 1, finished.stderr
    sums = server.stats()
    assert sums["bought_twice"] == 0
    assert sums["requests"] <= before["requests"]
    assert sums["usd"] < before["usd"] < before["most"]

    drops = pl.read_parquet(tmp_path / "completion/drops.parquet")
    assert {"malformed name", "taken back by the proposer", "verified: not of the country"} <= set(drops["reason"])
    table = pl.read_parquet(tmp_path / "completion/completed.parquet")
    assert {"Q9001", "Q9100"} <= set(table["qid"])
    seven = table.filter(pl.col("qid") == "Q7").row(0, named=True)
    assert len(seven["country_qids"]) == len(set(seven["country_qids"])) == 1 + len(seven["gained"])
    rounds = pl.read_parquet(tmp_path / "completion/rounds.parquet")
    assert set(rounds["ended"].drop_nulls()) == {"dry"}

    ledger = ran([sys.executable, "-m", "culturekit", "llm", "cost", str(tmp_path / "completion"), "--json"])
    total = json.loads(ledger.stdout)["total"]
    assert total["usd"] == pytest.approx(sums["usd"], abs=1e-9)
    assert "reused" in completed().stdout


@pytest.mark.endtoend
def test_concurrency_and_batches_change_no_byte(given: Path, server: RunningServer, tmp_path: Path) -> None:
    ways: dict[str, tuple[int, list[str]]] = {"one": (1, []), "many": (64, []), "batch": (8, ["--batch"])}
    found = {}
    for name, (concurrency, more) in ways.items():
        done = ran(asking_command(completion_words(given), tmp_path / name, server, *more, concurrency=concurrency))
        assert done.returncode == 1, done.stderr
        found[name] = tables(tmp_path / name)
    assert sorted(found["one"]) == ["completed.parquet", "drops.parquet", "proposals.parquet", "rounds.parquet"]
    assert found["one"] == found["many"] == found["batch"]
