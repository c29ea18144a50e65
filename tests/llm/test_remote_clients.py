"""The clients of far services, held to the same promises: through the real SDKs, against a server on loopback."""

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

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import canonical_json
from culturekit.core.errors import ConfigError, IntegrityError, MissingDependency, UsageError
from culturekit.llm.client import Client, Failure, FreeClient, Reply, Request, Usage, for_storage
from culturekit.llm.clients import google_client
from culturekit.llm.clients.client_options import GoogleOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.rules_client import RulesClient
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Entry, Journal, Reading, key_of
from culturekit.llm.ledger import latest_exchanges
from culturekit.llm.rows import Answered
from tests.llm.fake_client import Listening, Verdict, client, listening, picture, question, send, sent
from tests.llm.server import Fault, Rule, RunningServer, Script, running_server

CANARY = "sk-canary-4711-abcdef"
USUAL = Script(thinking=7, cached=0.5)
WAYS = ("chat", "responses", "google")
SAID = json.dumps({"id": "Q1", "verdict": "keep"})


@pytest.fixture(scope="module")
def running() -> Iterator[RunningServer]:
    with running_server(USUAL) as server:
        yield server


@pytest.fixture
def server(running: RunningServer) -> RunningServer:
    running.follow(USUAL)
    return running


@pytest.fixture
def ears() -> Iterator[Listening]:
    with listening() as told:
        yield told


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def spec(way: str, server: RunningServer | Listening, more: str = "") -> str:
    if way == "google":
        url = server.google_url if isinstance(server, RunningServer) else server.url
        return f"google:gemini-2.5-flash?base_url={url}{more}"
    url = server.openai_url if isinstance(server, RunningServer) else f"{server.url}/v1"
    return f"openai:gpt-4o-mini?base_url={url}&api={way}{more}"


def failure(spec_: str, request: Request | None = None) -> Failure:
    with pytest.raises(Failure) as caught:
        sent(spec_, request or question())
    return caught.value


def completion(text: str, **more: object) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **more}).encode()


def asked_once(asked: Client, folder: Path, request: Request) -> tuple[Answered, Entry, Path]:
    with Journal(folder) as journal:
        journal.remember(f"probed:{asked.identity.base_url} {asked.model}", b"")
        (answered,) = AskEngine(asked, journal, AskOptions(), run="one").ask_all([request])
        ((entry,),) = journal.found([key_of(asked.identity, asked.compose(request))], run="one").values()
    return answered, entry, journal.path


@pytest.mark.parametrize("way", WAYS)
def test_a_server_answers_and_counts_thoughts_as_output(server: RunningServer, way: str) -> None:
    reply = sent(spec(way, server, "&thinking_budget=64"), question())
    assert (reply.stop, json.loads(reply.text)["id"]) == ("end", "Q1")
    record = server.records()[-1]
    assert record.problem == ""
    assert reply.usage == Usage(record.input_tokens, record.output_tokens, 7, record.cached_tokens)
    assert record.cached_tokens > 0


def in_json_names(body: bytes) -> Any:
    """Read a body of Google's SDK, which calls some fields by their proto names and writes base64 as URLs do."""
    written = body.decode()
    for snake, camel in (("mime_type", "mimeType"), ("thinking_budget", "thinkingBudget")):
        written = written.replace(f'"{snake}"', f'"{camel}"')
    value = json.loads(written)
    for part in value["contents"][0]["parts"] if "contents" in value else ():
        if "inlineData" in part:
            part["inlineData"]["data"] = part["inlineData"]["data"].replace("-", "+").replace("_", "/")
    return value


@pytest.mark.parametrize("way", WAYS)
def test_what_leaves_is_what_was_composed_as_the_sdk_writes_it(ears: Listening, way: str) -> None:
    asked = client(spec(way, ears, "&top_p=0.5"))
    request = question("açaí 🫐 \u2028")
    send(asked, request)
    (heard,) = ears.heard
    assert in_json_names(heard.body) == json.loads(asked.compose(request).body)
    assert heard.path == ("" if way == "google" else "/v1") + asked.identity.endpoint
    assert heard.headers["content-type"] == "application/json"
    if way == "google":
        assert heard.headers["x-server-timeout"] == "120"
    else:
        assert heard.headers["authorization"] == "Bearer no-key"
        assert heard.headers["x-stainless-retry-count"] == "0"


@pytest.mark.parametrize("way", WAYS)
def test_images_leave_inside_and_are_named_by_hash_before(ears: Listening, server: RunningServer, way: str) -> None:
    images = (picture("red"), picture("blue"))
    request = question(f"sha256:{images[0].sha256}", images=images)
    asked = client(spec(way, ears))
    composed = asked.compose(request).body.decode()
    send(asked, request)
    whole = json.dumps(in_json_names(ears.heard[0].body), ensure_ascii=False)
    for image in images:
        inside = base64.b64encode(image.content).decode()
        inside = inside if way == "google" else f"data:image/png;base64,{inside}"
        assert whole.count(inside) == 1 and inside not in composed
        whole = whole.replace(f'"{inside}"', f'"sha256:{image.sha256}"')
    assert json.loads(whole) == json.loads(composed)
    assert sent(spec(way, server), request).stop == "end"
    assert server.records()[-1].problem == ""


def test_an_argument_that_only_other_servers_know_goes_beside_those_of_the_sdk(ears: Listening) -> None:
    asked = client(spec("chat", ears))
    composed = asked.compose(question())
    own = {**json.loads(composed.body), "guided_decoding_backend": "xgrammar"}

    async def once() -> None:
        await asked.send(replace(composed, body=canonical_json(own)))
        await asked.close()

    asyncio.run(once())
    assert json.loads(ears.heard[0].body) == own


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("way", ["chat", "google"])
def test_a_reply_stands_byte_for_byte_in_the_journal(ears: Listening, way: str, packed: bool, tmp_path: Path) -> None:
    whole = json.loads(completion(SAID)) | {"unknown\u2028": [1.50, "é"]}
    if way == "google":
        whole = {"candidates": [{"content": {"parts": [{"text": SAID}]}, "finishReason": "STOP"}], "x": 1e3}
    sent_by_server = b" \n" + json.dumps(whole, indent=3).encode() + b"\r\n"
    ears.body = gzip.compress(sent_by_server) if packed else sent_by_server
    ears.headers = {"content-encoding": "gzip"} if packed else {}
    answered, entry, _ = asked_once(client(spec(way, ears, "&price=1/1")), tmp_path, question())
    assert answered.outcome == "ok"
    assert entry.raw == sent_by_server


@pytest.mark.parametrize("key", ["completion", "choices-", "verdict-"])
def test_a_key_that_is_a_word_of_the_protocol_changes_nothing_of_what_is_read(
    ears: Listening, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    ears.body = completion(SAID, usage={"prompt_tokens": 90, "completion_tokens": 20})
    answered, _, path = asked_once(client(spec("chat", ears, "&price=1/1")), tmp_path, question())
    assert (answered.outcome, answered.value) == ("ok", Verdict("Q1", "keep"))
    (exchange,) = latest_exchanges(path, limit=9)
    assert key.encode() not in exchange.reply
    assert exchange.usage == Usage(90, 20)


def test_a_key_that_a_model_repeats_stands_neither_in_the_journal_nor_in_the_answer(
    ears: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    ears.body = completion(json.dumps({"id": CANARY, "verdict": "keep"}))
    answered, _, path = asked_once(client(spec("chat", ears, "&price=1/1")), tmp_path, question(allowed={}))
    assert answered.value == Verdict("[key]", "keep")
    assert CANARY not in answered.raw
    assert CANARY.encode() not in path.read_bytes()


@pytest.mark.parametrize("status", [200, 401])
def test_a_key_that_a_server_echoes_is_kept_nowhere(
    ears: Listening, status: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    ears.status, ears.body = status, json.dumps({"error": {"message": f"bad key {CANARY}", "code": 429}}).encode()
    asked = client(spec("chat", ears))
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
    asked = client(spec("chat", ears))
    raw = send(asked, question())
    assert raw == ears.body
    assert for_storage(asked, raw) == b'{"choices":[{"message":{"content":"[key] \\u00e9"}}]}'


NAMES = [("chat", "OPENAI_API_KEY"), ("chat", "MINE"), ("google", "MINE")]


@pytest.mark.parametrize(("way", "name"), [*NAMES, ("google", "GOOGLE_API_KEY"), ("google", "GEMINI_API_KEY")])
def test_the_key_goes_where_it_is_meant_to_go(
    ears: Listening, way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, CANARY)
    asked = client(spec(way, ears, "&api_key=${MINE}" if name == "MINE" else ""))
    send(asked, question())
    headers = ears.heard[0].headers
    assert headers["x-goog-api-key" if way == "google" else "authorization"].removeprefix("Bearer ") == CANARY
    assert CANARY not in repr(asked) + str(asked.options)


@pytest.mark.parametrize(
    ("spec_", "names"),
    [("openai:gpt-4o-mini", "OPENAI_API_KEY"), ("google:gemini-2.5-flash", "GOOGLE_API_KEY or GEMINI_API_KEY")],
)
def test_without_a_key_the_real_service_is_not_asked(spec_: str, names: str) -> None:
    asked = client(spec_)
    assert asked.compose(question()).body
    for look in (asked.ready, lambda: send(asked, question())):  # type: ignore[attr-defined]
        with pytest.raises(MissingDependency, match=rf"there is no key for .*Set {names}\.") as caught:
            look()
        assert "\n" not in str(caught.value)


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


# What becomes of a fault at OpenAI's protocol and at Google's; None where that has no such thing.
FAULTS: dict[str, tuple[tuple[str, int] | None, tuple[str, int] | None]] = {
    "busy": (("busy", 429),) * 2,
    "insufficient-quota": (("fatal", 429), ("busy", 429)),
    "server-error": (("server", 500),) * 2,
    "unavailable": (("server", 503),) * 2,
    "gateway-timeout": (("timeout", 504),) * 2,
    "unauthorized": (("fatal", 401),) * 2,
    "forbidden": (("fatal", 403),) * 2,
    "bad-request": (("rejected", 400),) * 2,
    "drop-before": (("connection", 0),) * 2,
    "drop-inside": (("connection", 0),) * 2,
    "drop-after": (("connection", 0),) * 2,
    "stall": (("timeout", 0),) * 2,
    "drip": (("timeout", 0), None),
    "error-in-200": (("server", 200),) * 2,
}
FAULTS_OF = [
    pytest.param(way, kind, expected, id=f"{way}-{kind}")
    for kind, both in FAULTS.items()
    for way, expected in zip(("chat", "google"), both, strict=True)
    if expected is not None
]


@pytest.mark.parametrize(("way", "kind", "expected"), FAULTS_OF)
def test_a_fault_is_one_request_and_one_failure(
    server: RunningServer, way: str, kind: str, expected: tuple[str, int]
) -> None:
    delay = {"stall": None, "drip": 30.0}.get(kind, 0.0)
    server.follow(Script(rules=(Rule(Fault(kind, delay=delay)),)))
    before = len(server.records())
    found = failure(spec(way, server, "&timeout=2" if kind in {"stall", "drip"} else "&timeout=600"))
    assert (found.kind, found.status) == expected
    assert len(server.records()) == before + 1


@pytest.mark.parametrize(
    ("way", "hint"),
    [("chat", "retry-after"), ("chat", "retry-after-ms"), ("chat", "retry-after-date"), ("google", "retry-info")],
)
def test_the_hint_of_a_server_is_kept(server: RunningServer, way: str, hint: Any) -> None:
    server.follow(Script(rules=(Rule(Fault("busy", hint=hint, wait=300.0)),)))
    wait = failure(spec(way, server)).wait
    assert wait is not None
    assert 200 <= wait <= 301.1, "a date is nearer by the time that the reply took"


# Why a reply ended, by the way it came, and how the detail begins at Google; absent where there is no such thing.
STOPS: dict[str, tuple[str, str]] = {
    "truncated": ("length", "cut off"),
    "truncated-empty": ("length", "nothing was said"),
    "content-filter": ("blocked", "SAFETY"),
    "white-space": ("length", "white space"),
    "broken-json": ("unreadable", "not a JSON object"),
    "empty-body": ("unreadable", "not a JSON object"),
    "html-page": ("unreadable", "not a JSON object"),
    "no-choices": ("unreadable", "no candidates"),
    "refusal": ("refusal", ""),
    "no-usage": ("end", ""),
    "null-content": ("end", ""),
    "long-string": ("end", ""),
    "recitation": ("blocked", "RECITATION"),
    "prohibited": ("blocked", "PROHIBITED_CONTENT"),
    "prompt-blocked": ("blocked", "prompt: "),
    "no-candidates": ("unreadable", "no candidates"),
}
ABSENT = {("no-choices", "responses"), ("no-candidates", "responses"), ("null-content", "responses")}
ABSENT |= {(kind, "google") for kind in ("refusal", "no-usage", "null-content", "long-string")}


@pytest.mark.parametrize(("kind", "way"), [(kind, way) for kind in STOPS for way in WAYS if (kind, way) not in ABSENT])
def test_a_reply_tells_why_it_ended(server: RunningServer, kind: str, way: str) -> None:
    large = kind == "long-string"
    server.follow(Script(rules=(Rule(Fault(kind, size=10_000_000 if large else 0)),)))
    reply = sent(spec(way, server), question(max_tokens=5_000_000 if large else 64))
    stop, begins = STOPS[kind]
    assert reply.stop == stop
    if way == "google":
        assert reply.detail.startswith(begins)
    if kind == "no-usage":
        assert reply.usage.counted == "here" and reply.usage.output_tokens > 0


@pytest.mark.parametrize("way", ["chat", "google"])
def test_no_server_is_a_connection_that_failed_and_nothing_was_sent(way: str) -> None:
    with listening() as gone:
        where = replace(gone)
    found = failure(spec(way, where))
    assert (found.kind, found.detail) == ("connection", "connection refused")
    assert not found.sent and not found.may_be_sold


def test_no_such_name_no_tls_and_no_other_address_are_asked(ears: Listening) -> None:
    unknown = failure("openai:any?base_url=http://nowhere.invalid/v1")
    assert (unknown.detail, unknown.sent) == ("the name of the server is not known", False)
    plain = failure(f"openai:any?base_url={ears.url.replace('http:', 'https:')}/v1")
    assert plain.detail.startswith("TLS: ") and not plain.sent
    assert ears.heard == []
    ears.status, ears.headers = 307, {"Location": ears.url + "/elsewhere"}
    assert (failure(spec("chat", ears)).kind, len(ears.heard)) == ("fatal", 1)


@pytest.mark.parametrize(("cuts", "kind"), [(True, "connection"), (False, "timeout")])
def test_a_request_that_was_cut_or_never_answered_may_have_been_sold(cuts: bool, kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def cut() -> None:
            connection, _ = server.accept()
            connection.recv(65_536)
            connection.close()

        if cuts:
            threading.Thread(target=cut, daemon=True).start()
        found = failure(
            f"openai:any?base_url=http://127.0.0.1:{server.getsockname()[1]}/v1&timeout={30 if cuts else 0.3}"
        )
    assert (found.kind, found.sent, found.may_be_sold) == (kind, True, True)
    assert cuts or "timed out after 0.3 s; raise timeout=" in found.detail


@pytest.mark.parametrize(
    ("host", "more", "patience"), [("127.0.0.1", "", 60.0), ("localhost", "", 60.0), ("127.0.0.1", "&patience=7", None)]
)
def test_a_server_on_this_machine_that_is_not_there_is_worth_a_minute_unless_the_spec_says_more(
    host: str, more: str, patience: float | None
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    assert failure(f"openai:any?base_url=http://{host}:{port}/v1{more}").patience == patience


def test_many_questions_at_once_keep_their_own_replies(server: RunningServer) -> None:
    asked = client(spec("google", server))
    assert asked.read(send(asked, question())).stop == "end", "it lives through several event loops"

    async def all_at_once() -> list[str]:
        requests = [asked.compose(question(data={"id": f"Q{n}"}, allowed={})) for n in range(200)]
        try:
            return [asked.read(raw).text for raw in await asyncio.gather(*map(asked.send, requests))]
        finally:
            await asked.close()

    assert [json.loads(text)["id"] for text in asyncio.run(all_at_once())] == [f"Q{n}" for n in range(200)]


def body(spec_: str, **parts: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(client(spec_).compose(question(**parts)).body)
    return value


def test_what_is_sent_to_openai_follows_from_the_model_and_its_address() -> None:
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


def reply_of(finish: str | None, *parts: dict[str, object]) -> bytes:
    candidate: dict[str, object] = {"content": {"role": "model", "parts": parts}}
    return msgspec.json.encode({"candidates": [candidate | ({"finishReason": finish} if finish else {})]})


@pytest.mark.parametrize("reason", ["SAFETY", "RECITATION", "BLOCKLIST", "SPII", "OTHER", "LANGUAGE", "NEW_ONE"])
def test_every_reason_of_gemini_but_the_normal_ones_is_a_filters(reason: str) -> None:
    read = google_client.read(reply_of(reason, {"text": "half an ans"}))
    assert (read.stop, read.detail) == ("blocked", reason)


def test_thoughts_of_gemini_are_left_out_of_the_text() -> None:
    read = google_client.read(reply_of("STOP", {"text": "hm", "thought": True}, {"text": '{"a"'}, {"text": ":1}"}))
    assert (read.text, read.stop, read.usage.counted) == ('{"a":1}', "end", "here")
    assert google_client.read(reply_of(None, {"text": "x"})).stop == "end"
    assert google_client.read(reply_of(None)).stop == "unreadable"


def test_gemini_models_that_think_get_room_for_it_or_are_asked_not_to() -> None:
    def generation(spec_: str) -> Any:
        return body(spec_)["generationConfig"]

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


FAR = "openai:gpt-4o-mini"


def replay(spec: str) -> FreeClient:
    made = CLIENTS.make(spec)
    assert isinstance(made, FreeClient)
    return made


def script(folder: Path, *lines: object) -> Path:
    path = folder / "replies.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines), "utf-8")
    return path


def row(number: str, sample: int = 0) -> Request:
    return question(data={"id": number, "label": "x"}, allowed={}, sample=sample)


def test_a_line_answers_its_row_and_its_sample(tmp_path: Path) -> None:
    path = script(
        tmp_path,
        {"task": "cspace.filter", "id": "Q1", "text": "as it came"},
        "",
        {"task": "cspace.filter", "id": "Q1", "sample": 1, "reply": {"id": "${id}", "verdict": "keep"}},
        {"task": "cspace.filter", "id": "Q2", "text": "", "stop": "refusal", "detail": "no"},
        {"task": "cspace.filter", "reply": {"id": "${id}", "verdict": "remove"}},
    )
    strict, lenient = replay(f"replay:{path}"), replay(f"replay:{path}?miss=default")
    assert strict.ask(row("Q1")) == Reply("as it came")
    assert strict.ask(row("Q1", 1)).text == '{"id":"Q1","verdict":"keep"}'
    assert strict.ask(row("Q2")) == Reply("", stop="refusal", detail="no")
    with pytest.raises(UsageError, match=r"no recorded reply to cspace\.filter, row Q9, sample 0"):
        strict.ask(row("Q9"))
    assert lenient.ask(row("Q9")).text == '{"id":"Q9","verdict":"remove"}'
    with pytest.raises(UsageError):
        lenient.ask(question(task="another.task"))
    assert strict.model == lenient.model
    assert strict.model.startswith("replay-")
    assert "no model was asked" in strict.caveat


def test_a_line_answers_the_request_with_its_key(tmp_path: Path) -> None:
    far = client(FAR)
    key = key_of(far.identity, far.compose(row("Q1"))).hex()
    path = script(tmp_path, {"key": key, "text": "bought"})
    assert replay(f"replay:{path}?client={FAR}").ask(row("Q1")).text == "bought"
    for name, more in (("Q2", ""), ("Q1", "%3Fseed=1")):
        with pytest.raises(UsageError, match="no recorded reply"):
            replay(f"replay:{path}?client={FAR}{more}").ask(row(name))
    with pytest.raises(ConfigError, match="client=SPEC"):
        replay(f"replay:{path}")


def test_all_lines_that_cannot_be_read_are_listed(tmp_path: Path) -> None:
    path = script(
        tmp_path, {"task": "t", "id": "Q1", "text": "a"}, {"task": "t", "id": "Q1", "text": "b"}, "{broken",
        {"task": "t"}, {"task": "t", "text": "a", "reply": {}}, {"task": "t", "text": "a", "unknown": 1}, {"text": "a"},
    )  # fmt: skip
    with pytest.raises(ConfigError) as caught:
        replay(f"replay:{path}")
    assert [problem.line for problem in caught.value.problems] == [2, 3, 4, 5, 6, 7]


def test_paths_that_hold_nothing_are_refused(tmp_path: Path) -> None:
    for wrong in ("replay", f"replay:{tmp_path / 'absent'}", f"replay:{tmp_path}", f"replay:{tmp_path}?client={FAR}"):
        with pytest.raises(UsageError):
            replay(wrong)
    (tmp_path / "replies.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(IntegrityError):
        replay(f"replay:{tmp_path}?client={FAR}")


def chat(text: str) -> bytes:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()


def test_a_journal_is_replayed_through_the_client_that_wrote_it(tmp_path: Path) -> None:
    far = client(FAR)

    def entry(name: str, text: str, run: str = "one", kind: str = "reply") -> Entry:
        outgoing = far.compose(row(name))
        return Entry(key_of(far.identity, outgoing), run, 1, "online", 200, kind, chat(text), outgoing.body)

    with Journal(tmp_path / "journal") as journal:
        said = [entry("Q1", "first"), entry("Q1", "later, no answer", "two"), entry("Q2", "raw", kind="busy")]
        numbers = journal.append_all([*said, entry("Q3", "not an answer")])
        for number, outcome in zip(numbers, ("ok", "invalid", "", "invalid"), strict=True):
            if outcome:
                journal.note(number, Reading(outcome))
        journal.remember("flush", b"notes go with the next commit")
    for folder in (tmp_path, tmp_path / "journal"):
        again = replay(f"replay:{folder}?client={FAR}")
        assert again.ask(row("Q1")).text == "first"
        assert again.ask(row("Q3")).text == "not an answer"
        for absent in ("Q2", "Q4"):
            with pytest.raises(UsageError, match="no recorded reply"):
                again.ask(row(absent))
    assert replay(f"replay:{tmp_path}?client={FAR}&run=two").ask(row("Q1")).text == "later, no answer"
    with pytest.raises(UsageError, match="no recorded reply"):
        replay(f"replay:{tmp_path}?client=openai:gpt-4o").ask(row("Q1"))
    with pytest.raises(UsageError, match="far clients"):
        replay(f"replay:{tmp_path}?client=rules")


class Ruling(msgspec.Struct):
    id: str
    verdict: str


def verdict(label: str, description: str | None = None) -> str:
    data = {"id": "Q1", "label": label, "description": description}
    return RulesClient().ask(Request("cspace.filter", "", data, Ruling)).text


def test_the_rules_read_wording_and_answer_the_same_for_ever() -> None:
    assert verdict("feijoada") == '{"id":"Q1","verdict":"keep"}' == verdict("feijoada")
    said = orjson.loads(verdict("Sadia", "Brazilian food company"))
    assert (said["verdict"], said["why"]) == ("remove", "its words name an organisation, an event or a work")
    assert orjson.loads(verdict("fragment of a kaftan"))["verdict"] == "review"


def test_a_task_without_rules_is_refused_not_guessed_and_options_are_none() -> None:
    assert "reads wording only" in CLIENTS.make("rules").caveat
    with pytest.raises(UsageError):
        CLIENTS.make("rules?temperature=1")
    with pytest.raises(UsageError, match=r"no rules for poetry; expected cspace\.filter"):
        RulesClient().ask(Request("poetry", "", {}, Ruling))
