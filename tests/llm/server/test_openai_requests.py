"""What OpenAI would not take, this server does not take; what it takes is what the SDK can say."""

import asyncio
from typing import Any

import msgspec
import openai
import pytest
from openai.types import batch_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params

from tests.llm.server import running_server
from tests.llm.server.conversations import SCHEMA, chat_body, openai_client
from tests.llm.server.error_replies import Refused
from tests.llm.server.openai_requests import BATCH_FIELDS, CHAT_FIELDS, check_chat, check_strict_schema
from tests.llm.server.openai_response_requests import RESPONSE_FIELDS


def _strict(**more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {}, "required": [], "additionalProperties": False, **more}


def _one(part: dict[str, Any]) -> dict[str, Any]:
    return _strict(properties={"a": part}, required=["a"])


@pytest.mark.parametrize(
    ("known", "params", "more"),
    [
        (CHAT_FIELDS, completion_create_params.CompletionCreateParamsBase, set()),
        (RESPONSE_FIELDS, response_create_params.ResponseCreateParamsBase, set()),
        (BATCH_FIELDS, batch_create_params.BatchCreateParams, set()),
    ],
)
def test_every_field_known_here_is_known_to_the_sdk(known: dict[str, Any], params: Any, more: set[str]) -> None:
    assert known.keys() <= params.__annotations__.keys() | more


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"temprature": 0}, "Unknown parameter: 'temprature'"),
        ({"model": None}, "Invalid type for 'model'"),
        ({"messages": []}, "'messages'"),
        ({"messages": [{"role": "user"}]}, "Missing required parameter: 'messages[0].content'"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "'messages[0].role'"),
        ({"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "content"),
        ({"max_completion_tokens": 0}, "'max_completion_tokens'"),
        ({"max_tokens": 5}, "cannot both be set"),
        ({"temperature": 3}, "'temperature'"),
        ({"seed": "7"}, "Invalid type for 'seed'"),
        ({"n": True}, "Invalid type for 'n'"),
        ({"metadata": {"k": "v" * 513}}, "'metadata.k'"),
        ({"response_format": {"type": "json_schema"}}, "'response_format.json_schema'"),
        ({"response_format": {"type": "json_object"}}, "must contain the word 'json'"),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "no spaces", "schema": SCHEMA, "strict": True},
                }
            },
            "name",
        ),
    ],
)
def test_a_request_that_is_wrong_is_refused_by_name(change: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused) as caught:
        check_chat({**chat_body("Q1"), **change})
    assert word in caught.value.message
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ({"type": "array", "items": {"type": "string"}}, 'type: "object"'),
        ({"anyOf": [SCHEMA]}, 'type: "object"'),
        ({**SCHEMA, "additionalProperties": True}, "additionalProperties"),
        ({name: held for name, held in SCHEMA.items() if name != "additionalProperties"}, "additionalProperties"),
        ({**SCHEMA, "required": ["id", "verdict"]}, "'reason'"),
        ({**SCHEMA, "required": ["id", "verdict", "reason", "more"]}, "'more'"),
        (_one({"type": "string", "minLength": 1}), "'minLength' is not permitted"),
        (_one({"type": "string", "default": ""}), "'default' is not permitted"),
        (_one({"type": "string", "format": "iri"}), "format 'iri'"),
        (_one({"type": "array", "items": {"type": "string"}, "uniqueItems": True}), "'uniqueItems' is not permitted"),
        (_one({"oneOf": [{"type": "string"}]}), "'oneOf' is not permitted"),
        (_one({"type": "text"}), "'text' is not one of the known types"),
        (_one({"enum": ["a"]}), "must have a 'type' key"),
        (_one({}), "must have a 'type' key"),
        (_one({"$ref": "#/$defs/Gone"}), "reference"),
        (_one({"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}), "additionalProperties"),
        (_one({"type": "string", "enum": [f"value {at}" for at in range(1001)]}), "1001 enum values"),
    ],
)
def test_a_schema_that_strict_mode_does_not_take(schema: dict[str, Any], word: str) -> None:
    with pytest.raises(Refused) as caught:
        check_strict_schema("verdict", schema)
    assert word in caught.value.message


def test_a_schema_ten_levels_deep_is_taken_and_eleven_are_not() -> None:
    def nested(levels: int) -> dict[str, Any]:
        return _one({"type": "string"}) if levels == 2 else _one(nested(levels - 1))

    check_strict_schema("verdict", nested(10))
    with pytest.raises(Refused, match="10 levels"):
        check_strict_schema("verdict", nested(11))


def test_the_schema_of_a_struct_is_taken_once_it_is_closed() -> None:
    class Inner(msgspec.Struct, forbid_unknown_fields=True):
        quote: str

    class Outer(msgspec.Struct, forbid_unknown_fields=True):
        id: str
        found: list[Inner]
        more: Inner | None

    (reference,), definitions = msgspec.json.schema_components([Outer], ref_template="#/$defs/{name}")
    check_strict_schema("outer", {**definitions["Outer"], "$defs": definitions})
    assert reference == {"$ref": "#/$defs/Outer"}


def test_a_refusal_arrives_as_the_sdk_knows_it() -> None:
    async def talk() -> None:
        with running_server() as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.BadRequestError) as caught:
                    await client.chat.completions.create(**chat_body("Q1"), extra_body={"colour": 1})
            assert (caught.value.code, caught.value.param) == ("unknown_parameter", "colour")
            record = server.records()[0]
            assert (record.status, record.billed, record.problem) == (400, False, "Unknown parameter: 'colour'.")

    asyncio.run(talk())


def test_other_servers_take_fields_of_their_own() -> None:
    own = {"structured_outputs": {"json": SCHEMA}, "top_k": 3}
    check_chat({**chat_body("Q1"), **own}, "vllm")
    check_chat({**chat_body("Q1"), "response_format": {"type": "json_object", "schema": SCHEMA}}, "llamacpp")
    for dialect in ("openai", "ollama"):
        with pytest.raises(Refused, match="Unknown parameter"):
            check_chat({**chat_body("Q1"), **own}, dialect)
