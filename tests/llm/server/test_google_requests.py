"""What Gemini would not take, this server does not take; what it takes is what the SDK can say."""

import asyncio
from typing import Any

import pytest
from google.genai import errors, types

from tests.llm.server.conversations import SCHEMA, google_talk, user_text
from tests.llm.server.error_replies import Refused
from tests.llm.server.google_requests import (
    CONFIG_FIELDS,
    REQUEST_FIELDS,
    SCHEMA_FIELDS,
    check_batch_request,
    check_generate,
    check_json_schema,
    check_schema,
)

_GOOD: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}
_OBJECT: dict[str, Any] = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}


def _config(**config: Any) -> dict[str, Any]:
    return {**_GOOD, "generationConfig": config}


def _snake(name: str) -> str:
    return "".join(f"_{one.lower()}" if one.isupper() else one for one in name)


def test_every_field_known_here_is_known_to_the_sdk() -> None:
    sdk = types.GenerateContentConfig.model_fields.keys()
    assert {_snake(name) for name in CONFIG_FIELDS} <= sdk
    assert {_snake(name) for name in REQUEST_FIELDS} - {"model", "contents", "generation_config"} <= sdk
    assert {_snake(name) for name in SCHEMA_FIELDS} <= types.Schema.model_fields.keys()


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "contents"),
        ({"contents": []}, "contents"),
        ({**_GOOD, "generation": {}}, 'Unknown name "generation"'),
        ({"contents": [{"role": "system", "parts": [{"text": "x"}]}]}, "contents[0].role"),
        ({"contents": [{"role": "user", "parts": [{"text": 1}]}]}, "contents[0].parts[0].text"),
        ({"contents": [{"parts": [{"inlineData": {"mimeType": "image/png", "data": "%"}}]}]}, "base64"),
        (_config(temprature=1), "Unknown name \"temprature\" at 'generation_config'"),
        (_config(maxOutputTokens="5"), "generation_config.max_output_tokens"),
        (_config(temperature=2.5), "generation_config.temperature"),
        (_config(responseSchema=_OBJECT), "response_mime_type"),
        (_config(responseJsonSchema=SCHEMA, responseSchema=_OBJECT, responseMimeType="application/json"), "Only one"),
        (_config(thinkingConfig={"budget": 1}), 'Unknown name "budget"'),
        ({**_GOOD, "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT"}]}, "threshold"),
    ],
)
def test_a_request_that_is_wrong_is_refused_by_name(body: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused) as caught:
        check_generate(body)
    assert word in caught.value.message


def test_both_spellings_of_a_field_are_taken() -> None:
    check_generate(_config(maxOutputTokens=5, responseMimeType="application/json", responseSchema=_OBJECT))
    check_generate({**_GOOD, "generation_config": {"max_output_tokens": 5, "response_mime_type": "application/json"}})


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({**_OBJECT, "additionalProperties": False}, 'Unknown name "additionalProperties"'),
        ({**_OBJECT, "$defs": {}}, 'Unknown name "$defs"'),
        ({"type": "object", "properties": {"a": {"type": "STRING"}}}, "type: must be one of"),
        ({"type": "OBJECT"}, "should be non-empty for OBJECT type"),
        ({"type": "ARRAY"}, "items: missing field"),
        ({**_OBJECT, "required": ["b"]}, "required[0]: property is not defined"),
        ({**_OBJECT, "propertyOrdering": ["b"]}, "propertyOrdering[0]: property is not defined"),
        ({"type": "INTEGER", "enum": [1]}, "only allowed for STRING type"),
        ({"type": "STRING", "enum": [""]}, "non-empty"),
        ({"type": "STRING", "format": "email"}, "format: only"),
        ({"properties": {"a": {"type": "STRING"}}}, "type: must be one of"),
    ],
)
def test_a_schema_message_that_is_none(schema: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused) as caught:
        check_schema(schema)
    assert word in caught.value.message


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({**SCHEMA, "$schema": "x"}, "'$schema' is not supported"),
        ({"type": "string", "pattern": "a"}, "'pattern' is not supported"),
        ({"type": "object", "properties": {"a": {"const": 1}}}, "properties.a"),
        ({"$ref": "#/$defs/Gone"}, "is not defined"),
        ({"$ref": "#/$defs/A", "title": "x", "$defs": {"A": {"type": "string"}}}, "nothing but $-keywords"),
        ({"enum": [True]}, "strings and numbers only"),
    ],
)
def test_a_json_schema_beyond_what_is_supported(schema: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused) as caught:
        check_json_schema(schema)
    assert word in caught.value.message


def test_a_json_schema_within_it() -> None:
    check_json_schema(SCHEMA)
    check_json_schema({"$ref": "#/$defs/A", "$defs": {"A": {"anyOf": [{"type": "null"}, {"type": "integer"}]}}})


def test_a_batch_needs_exactly_one_source() -> None:
    request = {"requests": {"requests": [{"request": _GOOD, "metadata": {"key": "a"}}]}}
    check_batch_request({"batch": {"displayName": "x", "inputConfig": request}}, size=1)
    check_batch_request({"batch": {"inputConfig": {"fileName": "files/a"}}}, size=1)
    with pytest.raises(Refused, match="Exactly one"):
        check_batch_request({"batch": {"inputConfig": {**request, "fileName": "files/a"}}}, size=1)
    with pytest.raises(Refused, match="payload size"):
        check_batch_request({"batch": {"inputConfig": request}}, size=21 * 1024 * 1024)


def test_a_refusal_arrives_as_the_sdk_knows_it() -> None:
    async def talk() -> None:
        async with google_talk() as (server, client):
            config = types.GenerateContentConfig(response_json_schema=SCHEMA)
            with pytest.raises(errors.ClientError) as caught:
                await client.aio.models.generate_content(model="m", contents=user_text("Q1"), config=config)
            assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")
            assert server.stats()["online"]["replies"] == 0

    asyncio.run(talk())
