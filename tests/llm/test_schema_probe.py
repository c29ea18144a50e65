import asyncio
from typing import Any

import pytest

from culturekit.llm.client import Failure
from culturekit.llm.schema_probe import needs_probe, probe
from tests.llm.questions import client
from tests.llm.server import Fault, Rule, Script, running_server


def warning(script: Script) -> tuple[str, int]:
    with running_server(script) as server:
        asked = client(f"openai:qwen?base_url={server.openai_url}&schema=vllm")

        async def once() -> str:
            try:
                outgoing, raw, text = await probe(asked)
                assert outgoing.body
                assert raw or text
                return text
            finally:
                await asked.close()

        return asyncio.run(once()), len(server.records())


def test_a_server_that_enforces_schemas_is_not_warned_of() -> None:
    assert warning(Script()) == ("", 1)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (Script(ignores_schema=True), "without holding the model qwen to the schema"),
        (Script(rules=(Rule(Fault("says", text='{"id":"Q0","verdict":"keep"}')),)), "without holding"),
        (Script(rules=(Rule(Fault("white-space")),)), "white space up to the limit"),
        (Script(rules=(Rule(Fault("server-error")),)), "gave no reply that tells: HTTP 500"),
        (Script(rules=(Rule(Fault("broken-json")),)), "gave no reply that tells: unreadable"),
    ],
)
def test_a_server_that_does_not_is_warned_of_after_one_request(script: Script, said: str) -> None:
    text, requests = warning(script)
    assert said in text
    assert requests == 1


def test_what_no_waiting_mends_is_said_at_once() -> None:
    with pytest.raises(Failure) as caught:
        warning(Script(rules=(Rule(Fault("unauthorized")),)))
    assert caught.value.kind == "fatal"


def test_only_servers_of_ones_own_are_probed() -> None:
    asked: Any = ["openai:gpt-4o-mini", "google:gemini-2.5-flash", "openai:m?base_url=https://eu.api.openai.com/v1"]
    assert not any(needs_probe(client(spec)) for spec in asked)
    assert needs_probe(client("openai:m?base_url=http://127.0.0.1:8000/v1"))
