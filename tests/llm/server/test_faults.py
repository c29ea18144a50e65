"""Every fault, as the real SDKs see it."""

import asyncio
import json
from typing import Any

import openai
import pytest
from google.genai import errors

from tests.llm.server import Fault, Rule, Script, When, running_server
from tests.llm.server.conversations import SCHEMA, ask_google, ask_openai, google_client, openai_client
from tests.llm.server.script import CONNECTION_FAULTS, FAULT_KINDS, PLAIN_FAULTS, STATUS_FAULTS

_TEXTS = {
    "says": "an answer",
    "wrong-id": "another id",
    "other-row": "another id",
    "missing-key": "other keys",
    "unknown-key": "other keys",
    "duplicate-key": "a key twice",
    "not-in-enum": "no such value",
    "wrong-type": "no such value",
    "prose": "no JSON",
    "code-fence": "no JSON",
    "prose-around": "no JSON",
    "two-objects": "no JSON",
    "cut-text": "no JSON",
    "long-string": "10 MB",
    "deep-nesting": "too deep",
    "nan": "NaN",
    "lone-surrogate": "half a pair",
    "empty-text": "nothing",
    "array": "no object",
    "null": "no object",
}
_SEEN: dict[str, tuple[str, str]] = {
    "none": ("stop: an answer",) * 2,
    "stall": ("timeout",) * 2,
    "drip": ("stop: an answer",) * 2,
    "drop-before": ("connection",) * 2,
    "drop-inside": ("connection",) * 2,
    "drop-after": ("connection",) * 2,
    **{kind: (str(status),) * 2 for kind, (status, _) in STATUS_FAULTS.items()},
    **{kind: (f"stop: {text}",) * 2 for kind, text in _TEXTS.items()},
    "deep-nesting": ("stop: too deep", "unreadable"),  # google-genai parses the text itself and gives up
    "broken-json": ("unreadable",) * 2,
    "deep-envelope": ("unreadable",) * 2,
    "empty-body": ("unreadable", "no candidates"),
    "html-page": ("unreadable",) * 2,
    "error-in-200": ("error inside", "no candidates"),
    "nan-envelope": ("stop: an answer",) * 2,
    "surrogate-envelope": ("stop: no JSON",) * 2,
    "null-content": ("null", "stop: nothing"),
    "no-choices": ("no choices", "no candidates"),
    "no-usage": ("stop: an answer",) * 2,
    "other-model": ("stop: an answer",) * 2,
    "truncated": ("length: no JSON", "max_tokens: no JSON"),
    "truncated-empty": ("length: nothing", "max_tokens: nothing"),
    "refusal": ("refusal", "stop: no JSON"),
    "content-filter": ("content_filter: nothing", "safety: nothing"),
    "recitation": ("content_filter: nothing", "recitation: nothing"),
    "prohibited": ("content_filter: nothing", "prohibited_content: nothing"),
    "prompt-blocked": ("content_filter: nothing", "blocked: SAFETY"),
    "no-candidates": ("no choices", "no candidates"),
    "white-space": ("length: no JSON", "max_tokens: no JSON"),
}


def _judged(text: str) -> str:
    """Say what is the matter with what a model said about Q1."""
    pairs: list[list[str]] = []

    def object_of(held: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs.append([key for key, _ in held])
        return dict(held)

    if not text:
        return "nothing"
    if len(text) > 9_999_999:
        return "10 MB"
    try:
        value = json.loads(text, object_pairs_hook=object_of)
    except RecursionError:
        return "too deep"
    except ValueError:
        return "no JSON"
    if not isinstance(value, dict):
        return "no object"
    keys = pairs[-1]
    if len(keys) != len(set(keys)):
        return "a key twice"
    if set(keys) != set(SCHEMA["required"]):
        return "other keys"
    if value["verdict"] != value["verdict"]:
        return "NaN"
    if "\ud83d" in str(value["verdict"]):
        return "half a pair"
    if value["id"] != "Q1":
        return "another id"
    return "an answer" if value["verdict"] in {"keep", "drop"} else "no such value"


HASTY = 2.0  # seconds until a client gives up that is never answered; the others wait as long as it takes


async def _seen_by_openai(client: openai.AsyncOpenAI) -> str:
    try:
        body = await ask_openai(client, "Q1")
    except openai.APITimeoutError:
        return "timeout"
    except openai.APIConnectionError:
        return "connection"
    except openai.APIStatusError as error:
        return str(error.status_code)
    except (ValueError, RecursionError):
        return "unreadable"
    if "error" in body:
        return "error inside"
    if not body["choices"]:
        return "no choices"
    message = body["choices"][0]["message"]
    if message["refusal"] is not None:
        return "refusal"
    return (
        "null"
        if message["content"] is None
        else f"{body['choices'][0]['finish_reason']}: {_judged(message['content'])}"
    )


async def _seen_by_google(client: Any) -> str:
    try:
        reply = await ask_google(client, "Q1")
    except errors.APIError as error:
        return str(error.code)
    except (ValueError, RecursionError):
        return "unreadable"
    except Exception as error:  # httpx or httpx2, by the SDK's age
        return "timeout" if "Timeout" in type(error).__name__ else "connection"
    if reply.prompt_feedback is not None and reply.prompt_feedback.block_reason is not None:
        return f"blocked: {reply.prompt_feedback.block_reason.value}"
    if not reply.candidates:
        return "no candidates"
    finish = reply.candidates[0].finish_reason
    return f"{finish.value.lower() if finish is not None else ''}: {_judged(reply.text or '')}"


def test_every_fault_is_expected_somehow() -> None:
    assert _SEEN.keys() == FAULT_KINDS.keys()


@pytest.fixture(scope="module")
def said() -> dict[str, tuple[str, str]]:
    """What the SDKs see of every fault; the second request for the row is answered, whatever came of the first."""

    async def talk() -> dict[str, tuple[str, str]]:
        found = {}
        with running_server() as server:
            async with (
                openai_client(server) as first, openai_client(server, timeout=HASTY) as hasty_first,
                google_client(server) as second, google_client(server, timeout=HASTY) as hasty_second,
            ):  # fmt: skip
                for kind in FAULT_KINDS:
                    text = '{"id":"{id}","verdict":"keep","reason":""}' if kind == "says" else ""
                    fault = Fault(kind, text=text, delay=None if kind == "stall" else 0.0)
                    rule = Rule(fault, When(attempts=(1, 1)))
                    server.follow(Script(rules=(rule,)))
                    one = await _seen_by_openai(hasty_first if kind == "stall" else first)
                    assert await _seen_by_openai(first) == "stop: an answer"
                    server.follow(Script(rules=(rule,)))
                    found[kind] = (one, await _seen_by_google(hasty_second if kind == "stall" else second))
                    assert await _seen_by_google(second) == "stop: an answer"
            stats = server.stats()
        assert stats["broken"] == []
        assert stats["faults"] == dict.fromkeys(FAULT_KINDS.keys() - {"none"}, 2)
        return found

    return asyncio.run(talk())


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_a_fault_is_seen_by_the_sdks(said: dict[str, tuple[str, str]], kind: str) -> None:
    assert said[kind] == _SEEN[kind]


@pytest.mark.parametrize(
    ("hint", "header", "value"),
    [
        ("none", "retry-after", None),
        ("retry-after", "retry-after", "2"),
        ("retry-after-ms", "retry-after-ms", "1250"),
        ("x-ratelimit", "x-ratelimit-reset-requests", "1.25s"),
    ],
)
def test_hints_in_headers(hint: Any, header: str, value: str | None) -> None:
    async def talk() -> None:
        rule = Rule(Fault("busy", hint=hint, wait=1.25))
        with running_server(Script(rules=(rule,))) as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.RateLimitError) as caught:
                    await ask_openai(client, "Q1")
        assert caught.value.response.headers.get(header) == value

    asyncio.run(talk())


def test_a_hint_as_a_date_and_as_retry_info() -> None:
    async def talk() -> None:
        with running_server(Script(rules=(Rule(Fault("busy", hint="retry-after-date", wait=30)),))) as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.RateLimitError) as caught:
                    await ask_openai(client, "Q1")
            assert caught.value.response.headers["retry-after"].endswith("GMT")
            server.follow(Script(rules=(Rule(Fault("unavailable", hint="retry-info", wait=2.5)),)))
            async with google_client(server) as google:
                with pytest.raises(errors.ServerError) as refused:
                    await ask_google(google, "Q1")
            details = refused.value.details["error"]["details"]
            assert [one["retryDelay"] for one in details if one["@type"].endswith("RetryInfo")] == ["2.5s"]

    asyncio.run(talk())


def test_whoever_comes_before_the_hint_expires_is_noted() -> None:
    async def talk() -> None:
        rule = Rule(Fault("busy", hint="retry-after-ms", wait=3_000), times=1)
        with running_server(Script(rules=(rule,))) as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.RateLimitError):
                    await ask_openai(client, "Q1")
                await ask_openai(client, "Q2")
                await ask_openai(client, "Q1")
            stats, records = server.stats(), server.records()
        assert (stats["early"], stats["early_model"]) == (1, 2)
        assert [record.early > 2_000 for record in records] == [False, False, True]

    asyncio.run(talk())


def test_what_is_billed_is_what_was_worked_on() -> None:
    billed = {"stall": False, "drop-before": False, "drop-inside": True, "drop-after": True, "drip": True}
    assert billed.keys() == CONNECTION_FAULTS.keys()

    async def talk(kind: str) -> dict[str, Any]:
        fault = Fault(kind, delay=None if kind == "stall" else 0.0)
        with running_server(Script(rules=(Rule(fault, times=1),))) as server:
            async with openai_client(server) as client, openai_client(server, timeout=HASTY) as hasty:
                await _seen_by_openai(hasty if kind == "stall" else client)
                await _seen_by_openai(client)
            return server.stats()

    for kind, expected in billed.items():
        stats = asyncio.run(talk(kind))
        assert stats["online"]["replies"] == 1 + expected, kind
        assert stats["delivered"]["replies"] == (2 if kind == "drip" else 1), kind
        assert stats["bought_twice"] == (1 if kind == "drip" else 0), kind


def test_requests_that_ask_no_model_go_wrong_too() -> None:
    async def seen(client: openai.AsyncOpenAI) -> str:
        try:
            raw = await client.batches.with_raw_response.list()
            return str(sorted(json.loads(raw.content)))
        except openai.APITimeoutError:
            return "timeout"
        except openai.APIConnectionError:
            return "connection"
        except openai.APIStatusError as error:
            return str(error.status_code)
        except (ValueError, RecursionError):
            return "unreadable"

    async def talk() -> dict[str, str]:
        found = {}
        with running_server() as server:
            async with openai_client(server) as client, openai_client(server, timeout=HASTY) as hasty:
                for kind in FAULT_KINDS:
                    fault = Fault(kind, delay=None if kind == "stall" else 0.0)
                    server.follow(Script(rules=(Rule(fault, times=1),)))
                    found[kind] = await seen(hasty if kind == "stall" else client)
        assert server.service is not None
        assert server.service.statistics.broken == []
        return found

    found = asyncio.run(talk())
    whole = "['data', 'first_id', 'has_more', 'last_id', 'object']"
    expected = {kind: _SEEN[kind][0] if kind in PLAIN_FAULTS else whole for kind in FAULT_KINDS}
    expected |= {"none": whole, "drip": whole, "error-in-200": "['error']"}
    assert found == expected
