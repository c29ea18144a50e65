"""The server answers, refuses and fails as the services do: seen through the real SDKs, of whatever age."""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import openai
import pytest
from google.genai import errors, types
from openai.types import batch_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from culturekit.llm.client import Request
from culturekit.llm.replies import ParseFailure, read_reply
from tests.llm.server import Fault, Rule, Script, running_server
from tests.llm.server.answers import answer_to
from tests.llm.server.conversations import (
    SCHEMA,
    ask_openai,
    chat_body,
    generate_config,
    google_talk,
    openai_client,
    user_text,
)
from tests.llm.server.error_replies import Refused
from tests.llm.server.google_requests import (
    CONFIG_FIELDS,
    REQUEST_FIELDS,
    SCHEMA_FIELDS,
    check_generate,
    check_json_schema,
    check_schema,
)
from tests.llm.server.openai_chat import chat_question
from tests.llm.server.openai_requests import (
    BATCH_FIELDS,
    CHAT_FIELDS,
    RESPONSE_FIELDS,
    check_chat,
    check_strict_schema,
)
from tests.llm.server.pictures import drawn
from tests.llm.server.script import CONNECTION_FAULTS, TEXT_FAULTS

_ROOT = Path(__file__).parents[3]


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.parametrize("sdks", [("openai==2.0.0", "google-genai==2.0.0"), ("openai>=2,<3", "google-genai>=2,<3")])
def test_older_sdks_hold_the_same_conversation(tmp_path: Path, sdks: tuple[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needed = ["pytest", "msgspec", "orjson", "pillow"]
    subprocess.run([*install, "-c", str(_ROOT / "constraints.txt"), *sdks, *needed], check=True)
    options = ["-q", "-p", "no:cacheprovider", "-W", "default", "--noconftest", __file__]
    done = subprocess.run(
        [str(python), "-m", "pytest", *options], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def _snake(names: Any) -> set[str]:
    return {"".join(f"_{one.lower()}" if one.isupper() else one for one in name) for name in names}


def test_every_field_known_here_is_known_to_the_sdks() -> None:
    for known, params in (
        (CHAT_FIELDS, completion_create_params.CompletionCreateParamsBase),
        (RESPONSE_FIELDS, response_create_params.ResponseCreateParamsBase),
        (BATCH_FIELDS, batch_create_params.BatchCreateParams),
    ):
        assert known.keys() <= params.__annotations__.keys()
    config = types.GenerateContentConfig.model_fields.keys()
    assert _snake(CONFIG_FIELDS) <= config
    assert _snake(REQUEST_FIELDS) - {"model", "contents", "generation_config"} <= config
    assert _snake(SCHEMA_FIELDS) <= types.Schema.model_fields.keys()


def _one(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": part}, "required": ["a"], "additionalProperties": False}


def _nested(levels: int) -> dict[str, Any]:
    return _one({"type": "string"}) if levels == 2 else _one(_nested(levels - 1))


def _format(**schema: Any) -> dict[str, Any]:
    return {"response_format": {"type": "json_schema", "json_schema": schema}}


_GOOD: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
_OBJECT: dict[str, Any] = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}


def _config(**config: Any) -> dict[str, Any]:
    return {**_GOOD, "generationConfig": config}


REFUSED: list[tuple[Any, Any, str]] = [
    *(
        (lambda change: check_chat({**chat_body("Q1"), **change}), change, word)
        for change, word in (
            ({"temprature": 0}, "Unknown parameter: 'temprature'"),
            ({"model": None}, "Invalid type for 'model'"),
            ({"messages": [{"role": "user"}]}, "Missing required parameter: 'messages[0].content'"),
            ({"messages": [{"role": "robot", "content": "x"}]}, "'messages[0].role'"),
            ({"max_completion_tokens": 0}, "'max_completion_tokens'"),
            ({"max_tokens": 5}, "cannot both be set"),
            ({"temperature": 3}, "'temperature'"),
            ({"seed": "7"}, "Invalid type for 'seed'"),
            (_format(name="no spaces", schema=SCHEMA, strict=True), "name"),
        )
    ),
    *(
        (lambda schema: check_strict_schema("verdict", schema), schema, word)
        for schema, word in (
            ({"type": "array", "items": {"type": "string"}}, 'type: "object"'),
            ({**SCHEMA, "additionalProperties": True}, "additionalProperties"),
            ({**SCHEMA, "required": ["id", "verdict"]}, "'reason'"),
            (_one({"type": "string", "minLength": 1}), "'minLength' is not permitted"),
            (_one({"type": "string", "format": "iri"}), "format 'iri'"),
            (_one({"type": "text"}), "'text' is not one of the known types"),
            (_one({}), "must have a 'type' key"),
            (_one({"$ref": "#/$defs/Gone"}), "reference"),
            (_one({"type": "string", "enum": [f"value {at}" for at in range(1001)]}), "1001 enum values"),
            (_nested(11), "10 levels"),
        )
    ),
    *(
        (check_generate, body, word)
        for body, word in (
            ({}, "contents"),
            ({**_GOOD, "generation": {}}, 'Unknown name "generation"'),
            ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "contents[0].role"),
            ({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "%"}}]}]}, "base64"),
            (_config(maxOutputTokens="5"), "generation_config.max_output_tokens"),
            (_config(responseSchema=_OBJECT), "response_mime_type"),
            (_config(thinkingConfig={"budget": 1}), 'Unknown name "budget"'),
        )
    ),
    *(
        (check_schema, schema, word)
        for schema, word in (
            ({**_OBJECT, "additionalProperties": False}, 'Unknown name "additionalProperties"'),
            ({"type": "object", "properties": {"a": {"type": "STRING"}}}, "type: must be one of"),
            ({"type": "ARRAY"}, "items: missing field"),
            ({**_OBJECT, "propertyOrdering": ["b"]}, "propertyOrdering[0]: property is not defined"),
            ({"type": "INTEGER", "enum": [1]}, "only allowed for STRING type"),
            ({"type": "STRING", "format": "email"}, "format: only"),
        )
    ),
    *(
        (check_json_schema, schema, word)
        for schema, word in (
            ({"type": "string", "pattern": "a"}, "'pattern' is not supported"),
            ({"$ref": "#/$defs/Gone"}, "is not defined"),
            ({"enum": [True]}, "strings and numbers only"),
        )
    ),
]


@pytest.mark.parametrize(("check", "sent", "word"), REFUSED, ids=[word for _, _, word in REFUSED])
def test_what_the_services_would_not_take_is_refused_by_name(check: Any, sent: Any, word: str) -> None:
    with pytest.raises(Refused) as caught:
        check(sent)
    assert word in caught.value.message
    assert caught.value.status == 400


def test_what_they_take_is_taken_in_either_spelling() -> None:
    check_strict_schema("verdict", _nested(10))
    check_json_schema({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}})
    check_generate(_config(maxOutputTokens=5, responseMimeType="application/json", responseSchema=_OBJECT))
    check_generate({**_GOOD, "generation_config": {"max_output_tokens": 5, "response_mime_type": "application/json"}})


def test_a_refusal_and_an_answer_arrive_as_the_openai_sdk_knows_them() -> None:
    async def talk() -> None:
        with running_server(Script(thinking=9, cached=1.0)) as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.BadRequestError) as caught:
                    await client.chat.completions.create(**chat_body("Q1"), extra_body={"colour": 1})
                assert (caught.value.code, caught.value.param) == ("unknown_parameter", "colour")
                assert server.records()[0].problem == "Unknown parameter: 'colour'."
                typed = await client.chat.completions.create(**chat_body("Q1"))
                raw = await ask_openai(client, "Q1")
            assert typed.to_dict() == openai.types.chat.ChatCompletion.model_validate(raw).to_dict()
            assert json.loads(typed.choices[0].message.content or "")["id"] == "Q1"
            assert typed.usage is not None and typed.usage.completion_tokens_details is not None
            assert typed.usage.completion_tokens_details.reasoning_tokens == 9
            assert server.stats()["online"]["input_tokens"] == 2 * typed.usage.prompt_tokens

    asyncio.run(talk())


def test_a_refusal_and_an_answer_arrive_as_the_google_sdk_knows_them() -> None:
    async def talk() -> None:
        async with google_talk() as (server, client):
            generate = client.aio.models.generate_content
            config = types.GenerateContentConfig(response_json_schema=SCHEMA)
            with pytest.raises(errors.ClientError) as caught:
                await generate(model="m", contents=user_text("Q1"), config=config)
            assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
            large = drawn(b"a dozen bytes", 1600, "png")
            parts: Any = [types.Part.from_bytes(data=large, mime_type="image/png"), user_text("Q1")]
            seen = await generate(model="m", contents=parts, config=generate_config())
            plain = await generate(model="m", contents=user_text("Q1"), config=generate_config())
            assert seen.usage_metadata is not None and plain.usage_metadata is not None
            more = (seen.usage_metadata.prompt_token_count or 0) - (plain.usage_metadata.prompt_token_count or 0)
            assert more == 9 * 258, "a picture of 1600 by 1600 pixels is nine tiles"
            assert server.stats()["online"]["replies"] == 2

    asyncio.run(talk())


class Judged(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the server's model is asked for."""

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
    answer = answer_to(asked, fault, Script(), None)
    read = read_reply(Request("t", "i", {}, Judged, {"id": ("Q1",)}), answer.text)
    assert isinstance(read, ParseFailure)
    assert read.code == SEEN[kind]
    assert isinstance(read_reply(Request("t", "i", {}, Judged), answer_to(asked, None, Script(), None).text), Judged), (
        "without a fault it is an answer"
    )


@pytest.mark.parametrize(
    ("hint", "header", "value"),
    [("none", "retry-after", None), ("retry-after", "retry-after", "2"), ("retry-after-ms", "retry-after-ms", "1250")],
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
