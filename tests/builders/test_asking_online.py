"""Commands that ask a model, against a server that speaks the protocol, in another process."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from unittest import mock

import msgspec
import polars as pl
import pytest

from culturekit.builders.activities.extracting import AT_MOST, section_request
from culturekit.builders.asking import bounded
from culturekit.builders.captions.expanding import SAMPLED, Question, culture_file, load_culture
from culturekit.builders.descriptors.proposing import ActivityDimension, proposal_request, stereotype_request
from culturekit.llm.client import Request
from culturekit.llm.reply_schema import TARGETS, Target, schema_of
from culturekit.recipes.linguistic.dialects import PER_QUESTION, DialectOptions, pair_requests
from tests.command_line import culturekit
from tests.faults.asking_commands import (
    COMPLETING,
    Command,
    asking_command,
    collection,
    completion_words,
    dishes,
    filter_words,
    tables,
)
from tests.faults.kill_and_resume import ROOT, environment
from tests.faults.proposing_model import proposes
from tests.llm.server import Fault, Rule, RunningServer, Script, When, running_server
from tests.llm.server.running import server_process

ROWS, CELLS = 300, 8
MODELS = "tests.llm.server.model_of_a_test"
REFUSED = Rule(then=Fault("refusal"), when=When(row_matches="^Q[0-9]*7$"))
ODD_ONCE = Rule(then=Fault("prose"), when=When(row_matches="^Q[0-9]*3$", attempts=(1, 1)))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dishes(tmp_path_factory.mktemp("dishes"), ROWS)


@pytest.fixture(scope="module")
def incomplete(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return collection(tmp_path_factory.mktemp("collection"), 40)


@pytest.fixture
def server() -> Iterator[RunningServer]:
    with server_process(Script(rules=(REFUSED, ODD_ONCE))) as running:
        yield running


@pytest.fixture
def completing() -> Iterator[RunningServer]:
    with server_process(model=COMPLETING) as running:
        yield running


PROBE = 1  # Requests of a run that are about no candidate: whether the server enforces schemas


def ran(command: Command, *, key: bool = True) -> "subprocess.CompletedProcess[str]":
    program, _, name, *words = command
    assert (program, name) == (sys.executable, "culturekit")
    with mock.patch.dict(os.environ, environment()):
        if not key:
            del os.environ["OPENAI_API_KEY"]
        return culturekit(*words, cwd=ROOT)


def test_plan_pilot_budget_run_and_log_of_a_filter(table: Path, server: RunningServer, tmp_path: Path) -> None:
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


def check_order_is_nothing(words: Command, server: RunningServer, folder: Path) -> list[str]:
    """Ask one by one, many at a time and in batches; give the tables, the same to the byte."""
    found = {}
    for concurrency, *more in ((1,), (256,), (8, "--batch")):
        out = folder / f"{concurrency}"
        done = ran(asking_command(words, out, server, *more, concurrency=concurrency))
        assert done.returncode == 1, done.stderr
        found[concurrency] = tables(out)
    assert found[1] == found[256] == found[8]
    return [name.removesuffix(".parquet") for name in found[1]]


@pytest.mark.endtoend
def test_concurrency_and_batches_change_no_byte(
    table: Path, incomplete: Path, server: RunningServer, completing: RunningServer, tmp_path: Path
) -> None:
    found = check_order_is_nothing(filter_words(table), server, tmp_path / "filter")
    assert found == ["drops", "kept", "removed", "verdicts"]
    found = check_order_is_nothing(completion_words(incomplete), completing, tmp_path / "completion")
    assert found == ["completed", "drops", "proposals", "rounds"]


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


def test_plan_pilot_budget_run_and_ledger_of_a_completion(
    incomplete: Path, completing: RunningServer, tmp_path: Path
) -> None:
    def completed(*more: str) -> "subprocess.CompletedProcess[str]":
        return ran(asking_command(completion_words(incomplete), tmp_path / "completion", completing, *more))

    before = json.loads(completed("--plan", "--json").stdout)
    assert (before["cells"], before["proposals"]["requests"]) == (CELLS, CELLS * 4)
    assert completing.stats()["requests"] == 0
    assert not list(tmp_path.iterdir())

    tried = completed("--pilot", "3", "--json")
    assert tried.returncode == 0, tried.stderr
    after = json.loads(tried.stdout)
    assert after["pilot"]["asked"] == 3
    assert after["proposals"]["bought"] == 3
    assert after["checks"]["bought"] == after["checks"]["pilot"] > 0

    stopped = completed("--budget", f"{completing.stats()['usd'] + 0.001:.6f}")
    assert stopped.returncode == 5, stopped.stderr
    assert not (tmp_path / "completion").exists()

    finished = completed("--budget", "5")
    assert finished.returncode == 1, finished.stderr
    sums = completing.stats()
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
    assert inventing.stats()["rows"] < 50, "20 rows of the pilots, 20 of the run, the probe, and what is under way"
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


@pytest.mark.endtoend
def test_a_budget_stops_the_rounds_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    def expanded(*more: str, code: int = 0) -> str:
        words = ("captions", "expand", "--culture", "chinese", "--captions", "60", "--llm", spec, "--out", "some")
        done = culturekit(*words, *more, cwd=tmp_path, env={"OPENAI_API_KEY": "sk-of-nobody"})
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


ROW = ActivityDimension("p1", "wedding", "rites", "JP", "objects")
SECTION = {
    "page_id": "a", "number": 1, "country": "JP", "title": "T", "section": "S", "text": "tea", "categories": ["rites"],
}  # fmt: skip

REQUESTS: dict[str, tuple[Request, str, int]] = {
    "mentions": (section_request(SECTION, instructions="words"), "activities", AT_MOST),
    "captions": (Question(1, 1, ()).request(load_culture(culture_file("chinese")), "words", 0), "captions", SAMPLED),
    "descriptors": (proposal_request(ROW, at_most=7, instructions="words"), "descriptors", 7),
    "stereotypes": (stereotype_request("JP", at_most=9, instructions="words"), "stereotypes", 9),
    "dialects": (list(pair_requests(DialectOptions(count=PER_QUESTION + 3)))[1], "pairs", 3),
}  # fmt: skip


class Named(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    names: Annotated[list[str], msgspec.Meta(max_length=200)]


@pytest.mark.parametrize("target", TARGETS)
def test_one_list_is_narrowed_and_all_else_stays(target: Target) -> None:
    wide, narrow = (schema_of(kind, target) for kind in (Named, bounded(Named, "names", 2)))
    assert (wide["properties"]["names"].pop("maxItems"), narrow["properties"]["names"].pop("maxItems")) == (200, 2)
    assert wide == narrow
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.json.decode(b'{"id": "1", "names": [], "more": 1}', type=bounded(Named, "names", 2))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_list_may_be_as_long_as_was_asked_for_and_what_is_longer_is_still_read(name: str) -> None:
    request, field, most = REQUESTS[name]
    asked: Any = schema_of(request.schema_type, "llamacpp")
    read: Any = schema_of(request.reply, "llamacpp")
    assert asked["properties"][field]["maxItems"] == most
    assert read["properties"][field]["maxItems"] > most
