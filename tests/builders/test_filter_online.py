"""The filter's command against a server that speaks the protocol, in another process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import polars as pl
import pytest

from tests.command_line import culturekit
from tests.faults.asking_commands import asking_command, dishes, filter_words, tables
from tests.faults.kill_and_resume import environment
from tests.llm.server import Fault, Rule, RunningServer, Script, When
from tests.llm.server.running import server_process

ROOT = Path(__file__).parents[2]
ROWS = 300
REFUSED = Rule(then=Fault("refusal"), when=When(row_matches="^Q[0-9]*7$"))
ODD_ONCE = Rule(then=Fault("prose"), when=When(row_matches="^Q[0-9]*3$", attempts=(1, 1)))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dishes(tmp_path_factory.mktemp("dishes"), ROWS)


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with server_process(Script(rules=(REFUSED, ODD_ONCE))) as running:
        yield running


PROBE = 1  # Requests of a run that are about no candidate: whether the server enforces schemas


def ran(command: list[str], *, key: bool = True) -> "subprocess.CompletedProcess[str]":
    program, _, name, *words = command
    assert (program, name) == (sys.executable, "culturekit")
    with mock.patch.dict(os.environ, environment()):
        if not key:
            del os.environ["OPENAI_API_KEY"]
        return culturekit(*words, cwd=ROOT)


def test_plan_pilot_budget_run_and_log(table: Path, server: RunningServer, tmp_path: Path) -> None:
    def filtered(*more: str, key: bool = True) -> "subprocess.CompletedProcess[str]":
        return ran(asking_command(filter_words(table), tmp_path / "kept", server, *more, concurrency=16), key=key)

    planned = filtered("--plan", "--json", key=False)
    assert planned.returncode == 0, planned.stderr
    before = json.loads(planned.stdout)
    assert (before["candidates"], before["cost"]["requests"], before["cost"]["pilot"]) == (ROWS, ROWS, 0)
    assert server.stats()["requests"] == 0
    assert not list(tmp_path.iterdir())

    tried = filtered("--pilot", "60", "--json")
    assert tried.returncode == 0, tried.stderr
    after = json.loads(tried.stdout)
    assert after["pilot"]["asked"] == 60
    of_pilot = server.stats()
    assert of_pilot["rows"] == 60 + PROBE

    stopped = filtered("--budget", f"{server.stats()['usd'] + 0.003:.6f}")
    assert stopped.returncode == 5, stopped.stderr
    assert "budget" in stopped.stderr
    assert not (tmp_path / "kept").exists()

    finished = filtered("--budget", "5")
    assert finished.returncode == 1, finished.stderr
    assert "30 refused" in finished.stderr
    sums = server.stats()
    assert (sums["rows"], sums["bought_twice"]) == (ROWS + PROBE, 0)
    used = sums["online"]
    rest_in = used["input_tokens"] - of_pilot["online"]["input_tokens"]
    assert after["cost"]["input_tokens"] == pytest.approx(rest_in, rel=0.05)
    assert after["cost"]["usd"] == pytest.approx(sums["usd"] - of_pilot["usd"], rel=0.15)

    kept, drops = (pl.read_parquet(tmp_path / f"kept/{name}.parquet") for name in ("kept", "drops"))
    assert kept.height + drops.height == ROWS
    refused = kept.filter(pl.col("reason") == "judge judge-1: refused")
    assert sorted(refused["qid"]) == sorted(f"Q{number}" for number in range(1, ROWS + 1) if number % 10 == 7)
    assert set(refused["verdict"]) == {"review"}
    assert set(drops["reason"]) == {"judge judge-1"}

    ledger = ran([sys.executable, "-m", "culturekit", "llm", "cost", str(tmp_path / "kept"), "--json"])
    total = json.loads(ledger.stdout)["total"]
    assert (total["input_tokens"], total["output_tokens"]) == (used["input_tokens"], used["output_tokens"])

    again = filtered()
    assert again.returncode == 1
    assert "reused" in again.stdout
    fresh = filtered("--fresh")
    assert fresh.returncode == 1
    assert server.stats()["requests"] == sums["requests"] + 30


@pytest.mark.endtoend
def test_concurrency_and_batches_change_no_byte(table: Path, server: RunningServer, tmp_path: Path) -> None:
    ways: dict[str, tuple[int, list[str]]] = {"one": (1, []), "many": (256, []), "batch": (16, ["--batch"])}
    found = {}
    for name, (concurrency, more) in ways.items():
        done = ran(asking_command(filter_words(table), tmp_path / name, server, *more, concurrency=concurrency))
        assert done.returncode == 1, done.stderr
        found[name] = tables(tmp_path / name)
    assert list(found["one"]) == ["drops.parquet", "kept.parquet", "removed.parquet", "verdicts.parquet"]
    assert found["one"] == found["many"] == found["batch"]


def test_an_unknown_price_is_refused_before_anything_is_sent(
    table: Path, server: RunningServer, tmp_path: Path
) -> None:
    command = asking_command(filter_words(table), tmp_path / "kept", server, "--budget", "1", concurrency=4)
    done = ran([word.removesuffix("&price=0.15/0.60") for word in command])
    assert done.returncode == 2
    assert "price" in done.stderr
    assert server.stats()["requests"] == 0


def test_a_wrong_key_ends_the_run_with_what_to_do(table: Path, tmp_path: Path) -> None:
    with server_process(Script(rules=(Rule(then=Fault("unauthorized")),))) as server:
        done = ran(asking_command(filter_words(table), tmp_path / "kept", server, concurrency=4))
    assert done.returncode == 2
    assert "key" in done.stderr
    assert "Traceback" not in done.stderr
    assert "sk-of-nobody" not in done.stderr + done.stdout


@pytest.mark.endtoend
def test_ctrl_c_leaves_soon_and_the_same_command_goes_on(table: Path, tmp_path: Path) -> None:
    slowly = Script(rules=(Rule(then=Fault("stall", delay=1.0), when=When(requests=(20, None))),))
    with server_process(slowly) as server:
        command = asking_command(filter_words(table), tmp_path / "kept", server, concurrency=4)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(), cwd=ROOT)
        while server.stats()["requests"] < 20:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()
        assert process.returncode == 130, said
        assert "the same command goes on from there" in said
        assert "Traceback" not in said
        server.follow(Script())
        assert ran(command).returncode == 0
        assert server.stats()["bought_twice"] == 0
