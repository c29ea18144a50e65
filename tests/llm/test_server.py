"""The server refuses what the services would not take, and counts what it sold; its clients' tests see the rest."""

import asyncio
import json
from contextlib import suppress
from typing import Any, Literal

import msgspec
import openai
import pytest
from google.genai import types
from openai.types import batch_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from culturekit.llm.client import Request
from culturekit.llm.replies import ParseFailure, read_reply
from tests.llm.server import Fault, Rule, RunningServer, Script, running_server
from tests.llm.server.answers import answer_to
from tests.llm.server.error_replies import Refused
from tests.llm.server.google_protocol import (
    SCHEMA_FIELDS,
    Config,
    Generate,
    camelled,
    check_generate,
    json_schema_problems,
    schema_problems,
)
from tests.llm.server.openai_protocol import Batch, Chat, Responses, chat_question, check_chat, check_strict_schema
from tests.llm.server.script import CONNECTION_FAULTS, TEXT_FAULTS

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "verdict": {"type": "string", "enum": ["keep", "drop"]},
        "reason": {"type": "string"},
    },
    "required": ["id", "verdict", "reason"],
    "additionalProperties": False,
}


def openai_client(server: RunningServer, *, timeout: float = 600.0) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=server.openai_url, api_key="a key", max_retries=0, timeout=timeout)


def user_text(row: str) -> str:
    return f"<<<data-4b1d\n{json.dumps({'id': row, 'label': f'name of {row}'})}\ndata-4b1d>>>"


def chat_body(row: str, **more: Any) -> dict[str, Any]:
    return {
        "model": "loopback-small",
        "messages": [{"role": "system", "content": "Judge it."}, {"role": "user", "content": user_text(row)}],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "schema": SCHEMA, "strict": True},
        },
        "max_completion_tokens": 200,
        **more,
    }


async def ask_openai(client: openai.AsyncOpenAI, row: str) -> dict[str, Any]:
    """Ask about a row and give the reply as it came, apart from what the SDK makes of it."""
    raw = await client.chat.completions.with_raw_response.create(**chat_body(row))
    found: dict[str, Any] = json.loads(raw.content)
    return found


def test_every_field_known_here_is_known_to_the_sdks() -> None:
    for known, params in (
        (Chat, completion_create_params.CompletionCreateParamsBase),
        (Responses, response_create_params.ResponseCreateParamsBase),
        (Batch, batch_create_params.BatchCreateParams),
    ):
        assert set(known.__struct_fields__) <= params.__annotations__.keys()
    config = types.GenerateContentConfig.model_fields.keys()
    assert set(Config.__struct_fields__) <= config
    assert set(Generate.__struct_fields__) - {"model", "contents", "generation_config"} <= config
    snake = {"".join(f"_{one.lower()}" if one.isupper() else one for one in name) for name in SCHEMA_FIELDS}
    assert snake <= types.Schema.model_fields.keys()


def _one(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, "required": ["a"], "additionalProperties": False}


def _nested(levels: int) -> dict[str, Any]:
    return _one({"type": "string"}) if levels == 2 else _one(_nested(levels - 1))


_GOOD: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
_OBJECT: dict[str, Any] = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}


def _config(**config: Any) -> dict[str, Any]:
    return {**_GOOD, "generationConfig": config}


def _problem(problems: Any, schema: Any) -> None:
    raise Refused("bad-request", next(problems(schema)))


CHECKS: dict[str, Any] = {
    "chat": lambda change: check_chat({**chat_body("Q1"), **change}),
    "strict": lambda schema: check_strict_schema("verdict", schema),
    "generate": check_generate,
    "schema": lambda schema: _problem(schema_problems, schema),
    "json schema": lambda schema: _problem(json_schema_problems, schema),
}
REFUSED: list[tuple[str, Any, str]] = [
    ("chat", {"temprature": 0}, "Unknown parameter: 'temprature'"), ("chat", {"model": None}, "'model'"),
    ("chat", {"messages": [{"role": "user"}]}, "Missing required parameter: 'messages[0].content'"),
    ("chat", {"messages": [{"role": "robot", "content": "x"}]}, "'messages[0].role'"),
    ("chat", {"max_completion_tokens": 0}, "'max_completion_tokens'"),
    ("chat", {"max_tokens": 5}, "cannot both be set"), ("chat", {"temperature": 3}, "'temperature'"),
    ("chat", {"seed": "7"}, "Expected `int | null`, got `str`: 'seed'"),
    ("strict", {"type": "array", "items": {"type": "string"}}, 'type: "object"'),
    ("strict", {**SCHEMA, "additionalProperties": True}, "additionalProperties"),
    ("strict", {**SCHEMA, "required": ["id", "verdict"]}, "'reason'"),
    ("strict", _one({"type": "string", "minLength": 1}), "'minLength' is not permitted"),
    ("strict", _one({"type": "string", "format": "iri"}), "format 'iri'"),
    ("strict", _one({"type": "text"}), "'text' is not one of the known types"),
    ("strict", _one({}), "must have a 'type' key"), ("strict", _one({"$ref": "#/$defs/Gone"}), "reference"),
    ("strict", _one({"type": "string", "enum": [f"value {at}" for at in range(1001)]}), "1001 enum values"),
    ("strict", _nested(11), "10 levels"), ("generate", {}, "contents"),
    ("generate", {**_GOOD, "generation": {}}, "Unknown parameter: 'generation'"),
    ("generate", {"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "contents[0].role"),
    ("generate", {"contents": [{"parts": [{"inlineData": {"data": "%"}}]}]}, "base64"),
    ("generate", _config(maxOutputTokens="5"), "generationConfig.maxOutputTokens"),
    ("generate", _config(responseSchema=_OBJECT), "responseMimeType"),
    ("generate", _config(thinkingConfig={"budget": 1}), "Unknown parameter: 'generationConfig.thinkingConfig.budget'"),
    ("schema", {**_OBJECT, "additionalProperties": False}, 'Unknown name "additionalProperties"'),
    ("schema", {"type": "object", "properties": {"a": {"type": "STRING"}}}, "type: must be one of"),
    ("schema", {"type": "ARRAY"}, "items: missing field"),
    ("schema", {**_OBJECT, "propertyOrdering": ["b"]}, "propertyOrdering[0]: property is not defined"),
    ("schema", {"type": "INTEGER", "enum": [1]}, "only allowed for STRING type"),
    ("schema", {"type": "STRING", "format": "email"}, "format: only"),
    ("json schema", {"type": "string", "pattern": "a"}, "'pattern' is not supported"),
    ("json schema", {"$ref": "#/$defs/Gone"}, "is not defined"),
    ("json schema", {"enum": [True]}, "strings and numbers only"),
]  # fmt: skip


@pytest.mark.parametrize(("check", "sent", "word"), REFUSED, ids=[word for _, _, word in REFUSED])
def test_what_the_services_would_not_take_is_refused_by_name(check: str, sent: Any, word: str) -> None:
    with pytest.raises(Refused) as caught:
        CHECKS[check](sent)
    assert word in caught.value.message
    assert caught.value.status == 400


def test_what_they_take_is_taken_in_either_spelling() -> None:
    check_strict_schema("verdict", _nested(10))
    whole = {"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}}
    assert not list(json_schema_problems(whole))
    check_generate(_config(maxOutputTokens=5, responseMimeType="application/json", responseSchema=_OBJECT))
    check_generate(camelled({**_GOOD, "generation_config": {"max_output_tokens": 5, "top_p": 0.5}}))


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    verdict: Literal["keep", "drop"]
    reason: str


# What this package reads in a text that is wrong in each way; the other faults are seen by the tests of its clients.
SEEN = {
    "says": "wrong-value",
    "wrong-id": "unknown-id",
    "missing-key": "missing-key",
    "duplicate-key": "duplicate-key",
    "not-in-enum": "wrong-value",
    "prose": "not-json",
    "code-fence": "fenced",
    "prose-around": "text-around",
    "long-string": "too-long",
    "deep-nesting": "too-deep",
    "nan": "not-a-number",
    "lone-surrogate": "lone-surrogate",
    "array": "not-an-object",
    "null": "not-an-object",
}


@pytest.mark.parametrize("kind", TEXT_FAULTS)
def test_what_a_model_says_wrongly_is_wrong_in_that_way(kind: str) -> None:
    asked = chat_question(chat_body("Q1"))
    fault = Fault(kind, text='{"id":"{id}","verdict":"perhaps","reason":""}' if kind == "says" else "")
    read = read_reply(Request("t", "i", {}, Judged, {"id": ("Q1",)}), answer_to(asked, fault, Script(), None).text)
    assert isinstance(read, ParseFailure)
    assert read.code == SEEN[kind]
    whole = read_reply(Request("t", "i", {}, Judged), answer_to(asked, None, Script(), None).text)
    assert isinstance(whole, Judged), "without a fault it is an answer"


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
    hasty_seconds = 2.0  # until a client gives up that is never answered; the others wait as long as it takes
    billed = {"stall": False, "drop-before": False, "drop-inside": True, "drop-after": True, "drip": True}
    assert billed.keys() == CONNECTION_FAULTS.keys()

    async def talk(kind: str) -> dict[str, Any]:
        fault = Fault(kind, delay=None if kind == "stall" else 0.0)
        with running_server(Script(rules=(Rule(fault, times=1),))) as server:
            async with openai_client(server) as client, openai_client(server, timeout=hasty_seconds) as hasty:
                with suppress(openai.APIConnectionError):
                    await ask_openai(hasty if kind == "stall" else client, "Q1")
                await ask_openai(client, "Q1")
            return server.stats()

    for kind, expected in billed.items():
        stats = asyncio.run(talk(kind))
        assert stats["online"]["replies"] == 1 + expected, kind
        assert stats["delivered"]["replies"] == (2 if kind == "drip" else 1), kind
        assert stats["bought_twice"] == (1 if kind == "drip" else 0), kind
