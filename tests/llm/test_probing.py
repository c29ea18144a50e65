import logging
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.errors import UsageError
from culturekit.llm.dispatch import DurableHold
from culturekit.llm.journal import FILE, Journal
from culturekit.llm.ledger import spent_in_run
from culturekit.llm.probing import needs_probe, probe_once
from culturekit.llm.purse import Purse
from culturekit.llm.usage import Budget
from tests.llm.questions import client
from tests.llm.server import Fault, Rule, Script, running_server


def probed(folder: Path, script: Script, *, times: int = 1) -> tuple[int, float]:
    """Probe; give the number of requests that the server saw, and how long it asks to be left alone."""
    with running_server(script) as server, Journal(folder) as journal:
        asked = client(f"openai:qwen?base_url={server.openai_url}&schema=vllm&price=1/2")
        hold = DurableHold(journal, asked.identity, 900.0)
        for _ in range(times):
            probe_once(asked, journal, Purse(asked.rate, asked.identity, Budget(1.0)), hold, run="r")
        return len(server.records()), hold.left()


def test_a_server_that_enforces_schemas_is_asked_once_and_not_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert probed(tmp_path, Script(), times=3) == (1, 0.0)
    assert not caplog.records


def test_a_reply_that_a_kill_left_unread_is_read_and_not_bought_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with running_server(Script(ignores_schema=True)) as server:
        asked = client(f"openai:qwen?base_url={server.openai_url}&schema=vllm&price=1/2")

        def probe() -> float | None:
            purse = Purse(asked.rate, asked.identity, Budget(1.0))
            with Journal(tmp_path) as journal:
                probe_once(asked, journal, purse, DurableHold(journal, asked.identity, 900.0), run="r")
            return purse.paid

        with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
            patched.setattr(Journal, "note", killed)
            probe()
        assert not caplog.records
        paid = probe()
        assert paid
        assert paid == pytest.approx(spent_in_run(tmp_path / FILE, "r"))
        assert "without holding the model qwen to the schema" in caplog.text
        assert len(server.records()) == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (Script(ignores_schema=True), "without holding the model qwen to the schema"),
        (Script(rules=(Rule(Fault("says", text='{"verdict":"keep"}')),)), "without holding"),
        (Script(rules=(Rule(Fault("white-space")),)), "white space up to the limit"),
        (Script(rules=(Rule(Fault("broken-json")),)), "gave no reply that tells: unreadable"),
    ],
)
def test_a_server_that_does_not_is_warned_of_after_one_request(
    script: Script, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert probed(tmp_path, script, times=2)[0] == 1
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert said in caplog.text


def test_a_server_that_is_busy_is_asked_again_later_and_left_alone_as_long_as_it_wants(tmp_path: Path) -> None:
    busy = Script(rules=(Rule(Fault("busy", hint="retry-after", wait=60.0)),))
    requests, left = probed(tmp_path, busy, times=2)
    assert requests == 1
    assert 50 < left <= 60


def test_what_no_waiting_mends_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="key"):
        probed(tmp_path, Script(rules=(Rule(Fault("unauthorized")),)))


def test_only_servers_of_ones_own_are_probed() -> None:
    asked: Any = ["openai:gpt-4o-mini", "google:gemini-2.5-flash", "openai:m?base_url=https://eu.api.openai.com/v1"]
    assert not any(needs_probe(client(spec)) for spec in asked)
    assert needs_probe(client("openai:m?base_url=http://127.0.0.1:8000/v1"))
