"""What tests say to the server, through the real SDKs; one way of saying it for every test and every SDK's age."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import openai
from google import genai
from google.genai import types

from tests.llm.server.running import RunningServer, running_server
from tests.llm.server.script import Script

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
    """Make a client that tries once."""
    return openai.AsyncOpenAI(base_url=server.openai_url, api_key="a key", max_retries=0, timeout=timeout)


@asynccontextmanager
async def google_client(server: RunningServer, *, timeout: float = 600.0) -> AsyncIterator[genai.Client]:
    """Make a client that tries once, for a block."""
    options = types.HttpOptions(base_url=server.google_url, api_version="v1beta", timeout=int(timeout * 1000))
    client = genai.Client(api_key="a key", http_options=options)
    try:
        yield client
    finally:
        await client.aio.aclose()
        client.close()


@asynccontextmanager
async def google_talk(
    script: Script | None = None, *, timeout: float = 600.0
) -> AsyncIterator[tuple[RunningServer, genai.Client]]:
    """Make a server that follows a script and a client that talks to it, for a block."""
    with running_server(script) as server:
        async with google_client(server, timeout=timeout) as client:
            yield server, client


def user_text(row: str, **more: object) -> str:
    """Write the data of a row within a fence."""
    return f"<<<data-4b1d\n{json.dumps({'id': row, 'label': f'name of {row}', **more})}\ndata-4b1d>>>"


def chat_body(row: str, **more: Any) -> dict[str, Any]:
    """Write a request for a chat completion about a row."""
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


async def ask_openai(client: openai.AsyncOpenAI, row: str, **more: Any) -> dict[str, Any]:
    """Ask about a row and give the reply as it came, apart from what the SDK makes of it."""
    raw = await client.chat.completions.with_raw_response.create(**chat_body(row, **more))
    found: dict[str, Any] = json.loads(raw.content)
    return found


def generate_config(**more: Any) -> types.GenerateContentConfig:
    """Write the configuration of a request to Gemini."""
    return types.GenerateContentConfig(
        system_instruction="Judge it.",
        response_mime_type="application/json",
        response_json_schema=SCHEMA,
        max_output_tokens=200,
        **more,
    )


async def ask_google(client: genai.Client, row: str, **more: Any) -> types.GenerateContentResponse:
    """Ask about a row."""
    return await client.aio.models.generate_content(
        model="loopback-small", contents=user_text(row), config=generate_config(**more)
    )


def batch_file(rows: Mapping[str, str], *, endpoint: str = "/v1/chat/completions") -> bytes:
    """Write the file of a batch from custom ids and the rows they are about."""
    lines = [
        {"custom_id": name, "method": "POST", "url": endpoint, "body": chat_body(row)} for name, row in rows.items()
    ]
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)
