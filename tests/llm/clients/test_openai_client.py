import asyncio
import base64
import gzip
import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import canonical_json
from culturekit.core.errors import MissingDependency, UsageError
from culturekit.llm.client import Failure, Usage, for_storage
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import key_of
from culturekit.llm.ledger import latest_exchanges
from tests.llm.listening import Listening, listening
from tests.llm.questions import Verdict, client, picture, question, send, sent
from tests.llm.server import Fault, Rule, RunningServer, Script, running_server

CANARY = "sk-canary-4711-abcdef"


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with running_server(Script(thinking=7, cached=0.5)) as running:
        yield running


@pytest.fixture
def ears() -> Iterator[Listening]:
    with listening() as told:
        yield told


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def spec(server: RunningServer, more: str = "") -> str:
    return f"openai:gpt-4o-mini?base_url={server.openai_url}{more}"


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_server_answers_in_both_protocols_and_counts(server: RunningServer, api: str) -> None:
    reply = sent(spec(server, f"&api={api}"), question())
    assert (reply.stop, json.loads(reply.text)["id"]) == ("end", "Q1")
    record = server.records()[-1]
    assert record.problem == ""
    assert reply.usage.counted == "provider"
    assert (reply.usage.input_tokens, reply.usage.output_tokens) == (record.input_tokens, record.output_tokens)
    assert (reply.usage.thinking_tokens, reply.usage.cached_tokens) == (7, record.cached_tokens)
    assert record.cached_tokens > 0


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_what_leaves_is_what_was_composed_as_the_sdk_writes_it(ears: Listening, api: str) -> None:
    asked = client(f"openai:any?base_url={ears.url}/v1&api={api}&top_p=0.5")
    request = question("açaí 🫐 \u2028")
    send(asked, request)
    (heard,) = ears.heard
    assert json.loads(heard.body) == json.loads(asked.compose(request).body)
    assert heard.path == f"/v1{asked.identity.endpoint}"
    assert heard.headers["content-type"] == "application/json"
    assert heard.headers["authorization"] == "Bearer no-key"
    assert heard.headers["x-stainless-retry-count"] == "0"


def test_an_argument_that_only_other_servers_know_goes_beside_those_of_the_sdk(ears: Listening) -> None:
    asked = client(f"openai:any?base_url={ears.url}/v1")
    composed = asked.compose(question())
    own = {**json.loads(composed.body), "guided_decoding_backend": "xgrammar"}

    async def once() -> None:
        await asked.send(replace(composed, body=canonical_json(own)))
        await asked.close()

    asyncio.run(once())
    assert json.loads(ears.heard[0].body) == own


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("service", ["openai", "google"])
def test_a_reply_stands_byte_for_byte_in_the_journal(
    ears: Listening, service: str, packed: bool, tmp_path: Path
) -> None:
    said = json.dumps({"id": "Q1", "verdict": "keep"})
    whole = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "unknown\u2028": [1.50, "é"]}
    if service == "google":
        whole = {"candidates": [{"content": {"parts": [{"text": said}]}, "finishReason": "STOP"}], "x": 1e3}
    sent_by_server = b" \n" + json.dumps(whole, indent=3).encode() + b"\r\n"
    ears.body = gzip.compress(sent_by_server) if packed else sent_by_server
    ears.headers = {"content-encoding": "gzip"} if packed else {}
    asked = client(f"{service}:any?base_url={ears.url}&price=1/1")
    with Journal(tmp_path) as journal:
        journal.remember(f"probed:{asked.identity.base_url} {asked.model}", b"")
        (answered,) = AskEngine(asked, journal, AskOptions(), run="one").ask_all([question()])
        ((entry,),) = journal.found([key_of(asked.identity, asked.compose(question()))], run="one").values()
    assert answered.outcome == "ok"
    assert entry.raw == sent_by_server


@pytest.mark.parametrize("key", ["completion", "choices-", "verdict-"])
def test_a_key_that_is_a_word_of_the_protocol_changes_nothing_of_what_is_read(
    ears: Listening, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = json.dumps({"id": "Q1", "verdict": "keep"})
    usage = {"prompt_tokens": 90, "completion_tokens": 20}
    ears.body = json.dumps(
        {"choices": [{"message": {"content": said}, "finish_reason": "stop"}], "usage": usage}
    ).encode()
    asked = client(f"openai:any?base_url={ears.url}&price=1/1")
    with Journal(tmp_path) as journal:
        journal.remember(f"probed:{asked.identity.base_url} {asked.model}", b"")
        (answered,) = AskEngine(asked, journal, AskOptions(), run="one").ask_all([question()])
    assert (answered.outcome, answered.value) == ("ok", Verdict("Q1", "keep"))
    (exchange,) = latest_exchanges(journal.path, limit=9)
    assert key.encode() not in exchange.reply
    assert exchange.usage == Usage(90, 20)


def test_a_key_that_a_model_repeats_stands_neither_in_the_journal_nor_in_the_answer(
    ears: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    said = json.dumps({"id": CANARY, "verdict": "keep"})
    ears.body = json.dumps({"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}).encode()
    asked = client(f"openai:any?base_url={ears.url}&price=1/1")
    with Journal(tmp_path) as journal:
        journal.remember(f"probed:{asked.identity.base_url} {asked.model}", b"")
        (answered,) = AskEngine(asked, journal, AskOptions(), run="one").ask_all([question(allowed={})])
    assert answered.value == Verdict("[key]", "keep")
    assert CANARY not in answered.raw
    assert CANARY.encode() not in journal.path.read_bytes()


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_images_leave_as_data_urls_and_are_named_by_hash_before(ears: Listening, api: str) -> None:
    asked = client(f"openai:any?base_url={ears.url}/v1&api={api}")
    images = (picture("red"), picture("blue"))
    label = f"sha256:{images[0].sha256}"
    request = question(label, images=images)
    composed = asked.compose(request).body
    send(asked, request)
    whole = ears.heard[0].body.decode()
    for image in images:
        url = f"data:image/png;base64,{base64.b64encode(image.content).decode()}"
        assert whole.count(url) == 1
        assert url not in composed.decode()
        whole = whole.replace(f'"{url}"', f'"sha256:{image.sha256}"')
    assert json.loads(whole) == json.loads(composed)


def test_images_are_understood_by_a_server(server: RunningServer) -> None:
    for api in ("chat", "responses"):
        assert sent(spec(server, f"&api={api}"), question(images=(picture(),))).stop == "end"
        assert server.records()[-1].problem == ""


def test_the_key_goes_where_it_is_meant_to_go(ears: Listening, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("MINE", CANARY + "2")
    send(client(f"openai:any?base_url={ears.url}/v1"), question())
    send(client(f"openai:any?base_url={ears.url}/v1&api_key=${{MINE}}"), question())
    assert [heard.headers["authorization"] for heard in ears.heard] == [f"Bearer {CANARY}", f"Bearer {CANARY}2"]


def test_without_a_key_the_real_service_is_not_asked() -> None:
    asked = client("openai:gpt-4o-mini")
    assert asked.compose(question()).body
    for look in (asked.ready, lambda: send(asked, question())):  # type: ignore[attr-defined]
        with pytest.raises(MissingDependency, match=r"there is no key for .*Set OPENAI_API_KEY\.") as caught:
            look()
        assert "\n" not in str(caught.value)


def failure(spec_: str, request: Any = None) -> Failure:
    with pytest.raises(Failure) as caught:
        sent(spec_, request or question())
    return caught.value


FAULTS = {
    "busy": ("busy", 429),
    "insufficient-quota": ("fatal", 429),
    "server-error": ("server", 500),
    "bad-gateway": ("server", 502),
    "unavailable": ("server", 503),
    "gateway-timeout": ("timeout", 504),
    "unauthorized": ("fatal", 401),
    "forbidden": ("fatal", 403),
    "not-found": ("fatal", 404),
    "bad-request": ("rejected", 400),
    "context-length": ("rejected", 400),
    "content-policy": ("blocked", 400),
    "conflict": ("server", 409),
    "too-large": ("rejected", 413),
    "drop-before": ("connection", 0),
    "drop-inside": ("connection", 0),
    "drop-after": ("connection", 0),
    "stall": ("timeout", 0),
    "drip": ("timeout", 0),
    "error-in-200": ("server", 200),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_is_one_request_and_one_failure(server: RunningServer, kind: str) -> None:
    delay = {"stall": None, "drip": 30.0}.get(kind, 0.0)
    server.follow(Script(rules=(Rule(Fault(kind, delay=delay)),)))
    before = len(server.records())
    found = failure(spec(server, "&timeout=2" if kind in {"stall", "drip"} else "&timeout=600"))
    assert (found.kind, found.status) == FAULTS[kind]
    assert len(server.records()) == before + 1
    server.follow(Script(thinking=7, cached=0.5))


@pytest.mark.parametrize("hint", ["retry-after", "retry-after-ms", "retry-after-date"])
def test_the_hint_of_a_server_is_kept(server: RunningServer, hint: Any) -> None:
    server.follow(Script(rules=(Rule(Fault("busy", hint=hint, wait=300.0)),)))
    wait = failure(spec(server)).wait
    assert wait is not None
    assert 200 <= wait <= 301.1, "a date is nearer by the time that the reply took"
    server.follow(Script(thinking=7, cached=0.5))


STOPS = {
    "truncated": "length",
    "truncated-empty": "length",
    "refusal": "refusal",
    "content-filter": "blocked",
    "white-space": "length",
    "broken-json": "unreadable",
    "empty-body": "unreadable",
    "html-page": "unreadable",
    "no-choices": "unreadable",
    "no-usage": "end",
    "null-content": "end",
    "long-string": "end",
}


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("kind", STOPS)
def test_a_reply_tells_why_it_ended(server: RunningServer, kind: str, api: str) -> None:
    if (kind, api) in {("no-choices", "responses"), ("null-content", "responses")}:
        pytest.skip("the responses API has no such thing")
    server.follow(Script(rules=(Rule(Fault(kind, size=10_000_000 if kind == "long-string" else 0)),)))
    reply = sent(spec(server, f"&api={api}"), question(max_tokens=5_000_000 if kind == "long-string" else 64))
    assert reply.stop == STOPS[kind]
    if kind == "no-usage":
        assert reply.usage.counted == "here"
        assert reply.usage.output_tokens > 0
    server.follow(Script(thinking=7, cached=0.5))


@pytest.mark.parametrize("client", ["openai", "google"])
def test_no_server_is_a_connection_that_failed_and_nothing_was_sent(client: str) -> None:
    with listening() as gone:
        url = gone.url
    found = failure(f"{client}:any?base_url={url}")
    assert (found.kind, found.detail, found.sent, found.may_be_sold) == (
        "connection",
        "connection refused",
        False,
        False,
    )


@pytest.mark.parametrize(
    ("host", "more", "patience"), [("127.0.0.1", "", 60.0), ("localhost", "", 60.0), ("127.0.0.1", "&patience=7", None)]
)
def test_a_server_on_this_machine_that_is_not_there_is_worth_a_minute_unless_the_spec_says_more(
    host: str, more: str, patience: float | None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert failure(f"openai:any?base_url=http://{host}:{port}/v1{more}").patience == patience


def test_no_such_name_and_no_tls_were_not_sent_either(ears: Listening) -> None:
    unknown = failure("openai:any?base_url=http://nowhere.invalid/v1")
    assert (unknown.detail, unknown.sent) == ("the name of the server is not known", False)
    plain = failure(f"openai:any?base_url={ears.url.replace('http:', 'https:')}/v1")
    assert plain.detail.startswith("TLS: ")
    assert not plain.sent
    assert ears.heard == []


def test_a_connection_that_is_cut_after_the_request_may_have_been_sold() -> None:
    with socket.create_server(("127.0.0.1", 0)) as cutting:

        def cut() -> None:
            connection, _ = cutting.accept()
            connection.recv(65_536)
            connection.close()

        threading.Thread(target=cut, daemon=True).start()
        found = failure(f"openai:any?base_url=http://127.0.0.1:{cutting.getsockname()[1]}/v1")
    assert (found.kind, found.sent, found.may_be_sold) == ("connection", True, True)


def test_a_reply_that_never_comes_says_what_to_raise_and_may_have_been_sold() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        found = failure(f"openai:any?base_url=http://127.0.0.1:{mute.getsockname()[1]}/v1&timeout=0.3")
    assert (found.kind, found.may_be_sold) == ("timeout", True)
    assert "timed out after 0.3 s; raise timeout=" in found.detail


def test_a_redirect_is_not_followed(ears: Listening) -> None:
    ears.status, ears.headers = 307, {"Location": ears.url + "/elsewhere"}
    found = failure(f"openai:any?base_url={ears.url}/v1")
    assert (found.kind, len(ears.heard)) == ("fatal", 1)


@pytest.mark.parametrize("status", [200, 401])
def test_a_key_that_a_server_echoes_is_kept_nowhere(
    ears: Listening, status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    ears.status, ears.body = status, json.dumps({"error": {"message": f"bad key {CANARY}", "code": 429}}).encode()
    asked = client(f"openai:any?base_url={ears.url}/v1")
    with caplog.at_level(logging.DEBUG), pytest.raises(Failure) as caught:
        send(asked, question())
    assert caught.value.kind == ("busy" if status == 200 else "fatal")
    shown = [repr(asked), str(caught.value), caught.value.raw.decode(), str(asked.options), str(asked.identity)]
    assert not [text for text in shown if CANARY in text]


@pytest.mark.parametrize("escape", ["\\u{:04x}", "\\u{:04X}", "\\\\u{:04x}"])
@pytest.mark.parametrize("share", [1, 3])
def test_a_key_that_a_server_echoes_in_escapes_is_kept_nowhere(
    ears: Listening, escape: str, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    echoed = "".join(sign if place % share else escape.format(ord(sign)) for place, sign in enumerate(CANARY))
    ears.body = b'{"choices":[{"message":{"content":"%b \\u00e9"}}]}' % echoed.encode()
    asked = client(f"openai:any?base_url={ears.url}/v1")
    raw = send(asked, question())
    assert raw == ears.body
    assert for_storage(asked, raw) == b'{"choices":[{"message":{"content":"[key] \\u00e9"}}]}'


@pytest.mark.parametrize(
    "wrong",
    [
        "api_key=sk-canary",
        "api_key=${A}sk-canary",
        "base_url=http://sk-canary@127.0.0.1/v1",
        "base_url=http://127.0.0.1/v1%3Fkey=sk-canary",
        "api=responses&seed=1&api_key=sk-canary",
        "temperature=hot&api_key=sk-canary",
    ],
)
def test_secrets_in_a_spec_are_refused_and_not_repeated(wrong: str) -> None:
    with pytest.raises(UsageError) as caught:
        client(f"openai:m?{wrong}")
    assert "sk-canary" not in str(caught.value)


def test_a_client_lives_through_several_event_loops(server: RunningServer) -> None:
    asked = client(spec(server))
    for _ in range(3):
        assert asked.read(send(asked, question())).stop == "end"


def body(spec_: str, **parts: object) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(client(spec_).compose(question(**parts)).body)  # type: ignore[arg-type]
    return value


def test_what_is_sent_follows_from_the_model_and_its_address() -> None:
    plain = body("openai:gpt-4o-mini")
    assert (plain["max_completion_tokens"], plain["temperature"]) == (256, 0.0)
    thinking = body("openai:gpt-5-mini?reasoning_effort=low&thinking_budget=1000")
    assert thinking["max_completion_tokens"] == 1256
    assert thinking["reasoning_effort"] == "low"
    assert "temperature" not in thinking
    assert "temperature" not in body("openai:a-model-of-tomorrow")
    own = body("openai:qwen?base_url=http://127.0.0.1:8000/v1&seed=5&max_tokens=99", sample=2)
    assert (own["max_tokens"], own["temperature"], own["seed"]) == (99, 0.0, 7)
    assert "max_completion_tokens" not in own
    asked = body("openai:qwen?base_url=http://127.0.0.1:8000/v1&max_tokens_field=max_completion_tokens")
    assert asked["max_completion_tokens"] == 256
    assert plain["response_format"]["json_schema"]["strict"] is True
    assert client("openai:gpt-5-mini").compose(question()).max_tokens == 256 + 4096


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.integers(0, 3))
def test_a_body_cut_from_a_template_is_the_body_written_whole(label: str, sample: int) -> None:
    asked = client("openai:qwen?base_url=http://127.0.0.1:8000/v1&seed=5")
    first = asked.compose(question("something else", sample=sample))
    again = asked.compose(question(label, sample=sample))
    fresh = client("openai:qwen?base_url=http://127.0.0.1:8000/v1&seed=5").compose(question(label, sample=sample))
    assert again == fresh
    assert canonical_json(json.loads(again.body)) == again.body
    assert first.body != again.body or label == "something else"
