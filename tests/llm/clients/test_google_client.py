import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.llm.client import Failure
from culturekit.llm.clients import google_client
from culturekit.llm.clients.client_options import GoogleOptions
from tests.llm.listening import Listening, listening
from tests.llm.questions import client, picture, question, send, sent
from tests.llm.server import Fault, Rule, RunningServer, Script, running_server

CANARY = "AIza-canary-4711"
USUAL = Script(thinking=7, cached=0.5)


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(USUAL) as running:
        yield running


@pytest.fixture
def ears() -> Iterator[Listening]:
    with listening() as told:
        yield told


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def spec(server: RunningServer, more: str = "") -> str:
    return f"google:gemini-2.5-flash?base_url={server.google_url}{more}"


def test_a_server_answers_and_thoughts_count_as_output(server: RunningServer) -> None:
    reply = sent(spec(server, "&thinking_budget=64"), question())
    assert (reply.stop, json.loads(reply.text)["id"]) == ("end", "Q1")
    record = server.records()[-1]
    assert record.problem == ""
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (record.input_tokens, record.output_tokens)
    assert (reply.usage.thinking_tokens, reply.usage.cached_tokens) == (7, record.cached_tokens)


def test_what_leaves_is_what_was_composed_as_the_sdk_writes_it(ears: Listening) -> None:
    asked = client(f"google:gemini-2.5-flash?base_url={ears.url}&seed=3")
    request = question("açaí 🫐")
    send(asked, request)
    (heard,) = ears.heard
    assert in_json_names(heard.body) == json.loads(asked.compose(request).body)
    assert heard.path == asked.identity.endpoint == "/v1beta/models/gemini-2.5-flash:generateContent"
    assert heard.headers["content-type"] == "application/json"
    assert heard.headers["x-server-timeout"] == "120"


def in_json_names(body: bytes) -> Any:
    """Read a body of the SDK, which calls some fields by their proto names and writes base64 as URLs do."""
    written = body.decode()
    for snake, camel in (("mime_type", "mimeType"), ("thinking_budget", "thinkingBudget")):
        written = written.replace(f'"{snake}"', f'"{camel}"')
    value = json.loads(written)
    for part in value["contents"][0]["parts"]:
        if "inlineData" in part:
            part["inlineData"]["data"] = part["inlineData"]["data"].replace("-", "+").replace("_", "/")
    return value


def test_images_leave_inside_and_are_named_by_hash_before(ears: Listening, server: RunningServer) -> None:
    request = question(images=(picture("red"), picture("blue")))
    asked = client(f"google:gemini-2.5-flash?base_url={ears.url}")
    composed = asked.compose(request).body.decode()
    send(asked, request)
    whole = json.dumps(in_json_names(ears.heard[0].body))
    for image in request.images:
        inside = base64.b64encode(image.content).decode()
        assert inside not in composed
        whole = whole.replace(f'"{inside}"', f'"sha256:{image.sha256}"')
    assert json.loads(whole) == json.loads(composed)
    assert sent(spec(server), request).stop == "end"
    assert server.records()[-1].problem == ""


@pytest.mark.parametrize("name", ["GOOGLE_API_KEY", "GEMINI_API_KEY", "MINE"])
def test_the_key_is_found_and_sent_in_its_header(ears: Listening, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, CANARY)
    more = "&api_key=${MINE}" if name == "MINE" else ""
    asked = client(f"google:gemini-2.5-flash?base_url={ears.url}{more}")
    send(asked, question())
    assert ears.heard[0].headers["x-goog-api-key"] == CANARY
    assert CANARY not in repr(asked) + str(asked.options)


def test_without_a_key_the_real_service_is_not_asked() -> None:
    with pytest.raises(MissingDependency, match=r"Set GOOGLE_API_KEY or GEMINI_API_KEY\."):
        send(client("google:gemini-2.5-flash"), question())


FAULTS = {
    "busy": ("busy", 429),
    "insufficient-quota": ("busy", 429),
    "server-error": ("server", 500),
    "unavailable": ("server", 503),
    "gateway-timeout": ("timeout", 504),
    "unauthorized": ("fatal", None),
    "forbidden": ("fatal", 403),
    "not-found": ("fatal", 404),
    "bad-request": ("rejected", 400),
    "context-length": ("rejected", 400),
    "drop-before": ("connection", 0),
    "drop-inside": ("connection", 0),
    "drop-after": ("connection", 0),
    "stall": ("timeout", 0),
    "error-in-200": ("server", 200),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_one_request_and_one_failure(server: RunningServer, kind: str) -> None:
    server.follow(Script(rules=(Rule(Fault(kind, delay=None if kind == "stall" else 0.0)),)))
    before = len(server.records())
    with pytest.raises(Failure) as caught:
        sent(spec(server, "&timeout=2" if kind == "stall" else "&timeout=600"), question())
    expected, status = FAULTS[kind]
    assert caught.value.kind == expected
    assert status in (None, caught.value.status)
    assert len(server.records()) == before + 1
    server.follow(USUAL)


def test_the_hint_in_the_details_of_an_error_is_kept(server: RunningServer) -> None:
    server.follow(Script(rules=(Rule(Fault("busy", hint="retry-info", wait=2.5)),)))
    with pytest.raises(Failure) as caught:
        sent(spec(server), question())
    assert caught.value.wait == pytest.approx(2.5)
    server.follow(USUAL)


STOPS = {
    "truncated": ("length", "cut off"),
    "truncated-empty": ("length", "nothing was said"),
    "content-filter": ("blocked", "SAFETY"),
    "recitation": ("blocked", "RECITATION"),
    "prohibited": ("blocked", "PROHIBITED_CONTENT"),
    "prompt-blocked": ("blocked", "prompt: "),
    "no-candidates": ("unreadable", "no candidates"),
    "no-choices": ("unreadable", "no candidates"),
    "white-space": ("length", "white space"),
    "broken-json": ("unreadable", "not a JSON object"),
    "empty-body": ("unreadable", "not a JSON object"),
    "html-page": ("unreadable", "not a JSON object"),
}


@pytest.mark.parametrize("kind", STOPS)
def test_a_reply_that_is_no_answer_tells_why(server: RunningServer, kind: str) -> None:
    server.follow(Script(rules=(Rule(Fault(kind)),)))
    reply = sent(spec(server), question(max_tokens=64))
    stop, begins = STOPS[kind]
    assert reply.stop == stop
    assert reply.detail.startswith(begins)
    server.follow(USUAL)


def reply_of(finish: str | None, parts: list[dict[str, object]]) -> bytes:
    candidate: dict[str, object] = {"content": {"role": "model", "parts": parts}}
    return msgspec.json.encode({"candidates": [candidate | ({"finishReason": finish} if finish else {})]})


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "BLOCKLIST", "SPII", "OTHER", "LANGUAGE", "NEW_ONE"])
def test_every_reason_but_the_normal_ones_is_a_filters(reason: str) -> None:
    read = google_client.read(reply_of(reason, [{"text": "half an ans"}]))
    assert (read.stop, read.detail) == ("blocked", reason)


def test_thoughts_are_left_out_of_the_text() -> None:
    read = google_client.read(reply_of("STOP", [{"text": "hm", "thought": True}, {"text": '{"a"'}, {"text": ":1}"}]))
    assert (read.text, read.stop, read.usage.counted) == ('{"a":1}', "end", "here")
    assert google_client.read(reply_of(None, [{"text": "x"}])).stop == "end"
    assert google_client.read(reply_of(None, [])).stop == "unreadable"


def generation(spec_: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(client(spec_).compose(question()).body)["generationConfig"]
    return value


def test_models_that_think_get_room_for_it_or_are_asked_not_to() -> None:
    flash = generation("google:gemini-2.5-flash")
    assert (flash["maxOutputTokens"], flash["thinkingConfig"]) == (256, {"thinkingBudget": 0})
    assert generation("google:gemini-2.5-pro")["maxOutputTokens"] == 256 + 4096
    assert generation("google:gemini-3-flash?thinking_level=low")["thinkingConfig"] == {"thinkingLevel": "low"}
    assert "thinkingConfig" not in generation("google:gemini-2.0-flash")
    assert generation("google:gemini-2.5-pro?thinking_budget=128")["maxOutputTokens"] == 256 + 128


def test_the_version_of_the_api_is_pinned_and_checked() -> None:
    assert client("google:models/x?api_version=v1").identity.endpoint == "/v1/models/x:generateContent"
    with pytest.raises(UsageError):
        client("google:x?api_version=../v1")
    assert GoogleOptions().api_version == "v1beta"


def test_many_questions_at_once_keep_their_own_replies(server: RunningServer) -> None:
    asked = client(spec(server))

    async def all_at_once() -> list[str]:
        requests = [asked.compose(question(data={"id": f"Q{n}"}, allowed={})) for n in range(200)]
        try:
            return [asked.read(raw).text for raw in await asyncio.gather(*map(asked.send, requests))]
        finally:
            await asked.close()

    assert [json.loads(text)["id"] for text in asyncio.run(all_at_once())] == [f"Q{n}" for n in range(200)]
