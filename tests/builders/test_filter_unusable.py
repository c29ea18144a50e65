"""The filter's command and models whose replies are of no use, or stand in code fences."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from tests.builders.test_filter_online import ran
from tests.faults.asking_commands import asking_command, dishes, filter_words
from tests.llm.server import RunningServer
from tests.llm.server.running import server_process

ROWS = 200
MODELS = "tests.llm.server.model_of_a_test"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dishes(tmp_path_factory.mktemp("dishes"), ROWS)


@pytest.fixture
def inventing() -> Iterator[RunningServer]:
    with server_process(model=f"{MODELS}:invent") as running:
        yield running


def test_a_pilot_of_invented_ids_shows_them_and_the_run_stops_and_asks(
    table: Path, inventing: RunningServer, tmp_path: Path
) -> None:
    def filtered(*more: str) -> "subprocess.CompletedProcess[str]":
        return ran(asking_command(filter_words(table), tmp_path / "kept", inventing, *more, concurrency=4))

    tried = filtered("--pilot", "10")
    assert tried.returncode == 1, tried.stderr
    for said in ("10 invalid", "verdicts: none", "unknown-id: An id is not among those", "Q999999"):
        assert said in tried.stdout
    assert "10 of 10 replies are no answers" in tried.stderr

    larger = filtered("--pilot", "100", "--json")
    assert larger.returncode == 1
    pilot = json.loads(larger.stdout)["pilot"]
    assert pilot["asked"] == 20
    assert pilot["replies"]["stopped"]

    stopped = filtered()
    assert stopped.returncode == 3
    assert "--go-on" in stopped.stderr
    assert "Traceback" not in stopped.stderr
    assert inventing.stats()["rows"] < 45, "20 rows of the pilots, 20 of the run, and the probe"
    assert not (tmp_path / "kept").exists()

    went_on = filtered("--go-on")
    assert went_on.returncode == 1, went_on.stderr
    sums = inventing.stats()
    assert sums["bought_twice"] == 0
    assert set(pl.read_parquet(tmp_path / "kept/kept.parquet")["verdict"]) == {"review"}


def test_fences_are_taken_off_and_the_manifest_says_so(table: Path, tmp_path: Path) -> None:
    with server_process(model=f"{MODELS}:fence") as server:
        tried = ran(asking_command(filter_words(table), tmp_path / "kept", server, "--pilot", "10", concurrency=4))
        assert tried.returncode == 0, tried.stderr
        assert "10 in a code fence" in tried.stdout
        done = ran(asking_command(filter_words(table), tmp_path / "kept", server, concurrency=4))
        assert done.returncode == 0, done.stderr
        assert server.stats()["requests"] <= ROWS + 1
    notes = json.loads((tmp_path / "kept/manifest.json").read_text(encoding="utf-8"))["notes"]
    assert (notes["outcomes"], notes["fenced"]) == ({"ok": ROWS}, ROWS)
