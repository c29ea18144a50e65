import json
import logging
from pathlib import Path

import pytest

from culturekit.llm.client import Failure, Identity
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.llm.fake_client import FakeClient, answer_for, questions

NEAR = Identity("openai", "http://127.0.0.1:9/v1", "/chat/completions", "fake-1")


def ask(client: FakeClient, folder: Path, run: str = "one") -> list[str]:
    with Journal(folder / "journal") as journal:
        asked = AskEngine(client, journal, AskOptions(), run=run).ask_all(questions(3)[1:])
        return [answered.outcome for answered in asked]


def test_a_server_that_ignores_the_schema_is_probed_once_in_a_run_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    client = FakeClient(identity=NEAR)
    with caplog.at_level(logging.WARNING):
        assert ask(client, tmp_path) == ["ok", "ok"]
    assert "without holding the model" in caplog.text
    assert client.asked == {"Q0": 1, "Q1": 1, "Q2": 1}
    client = FakeClient(identity=NEAR)
    assert ask(client, tmp_path) == ["ok", "ok"]
    assert client.asked == {}


def test_a_server_that_holds_the_schema_is_not_complained_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def behaviour(identifier: str, _: int) -> bytes:
        if identifier != "Q0":
            return answer_for(identifier)
        text = json.dumps({"id": "Q0", "verdict": "zq-7713-lantern"})
        return json.dumps({"text": text, "in": 5, "out": 5, "stop": "end"}).encode()

    with caplog.at_level(logging.WARNING):
        assert ask(FakeClient(behaviour, identity=NEAR), tmp_path) == ["ok", "ok"]
    assert "schema" not in caplog.text


def test_a_probe_that_fails_keeps_nobody_from_asking(tmp_path: Path) -> None:
    def behaviour(identifier: str, _: int) -> bytes | Failure:
        return Failure("server", "", status=500) if identifier == "Q0" else answer_for(identifier)

    assert ask(FakeClient(behaviour, identity=NEAR), tmp_path) == ["ok", "ok"]
