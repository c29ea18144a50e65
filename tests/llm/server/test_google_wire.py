"""The real google-genai SDK talks to the server, endpoint by endpoint."""

import asyncio
import io
import json
from typing import Any

import pytest
from google.genai import errors, types

from tests.llm.server import JobPlan, Script
from tests.llm.server.conversations import SCHEMA, ask_google, generate_config, google_talk, user_text

_OWN_SCHEMA = {
    "type": "OBJECT",
    "properties": {"id": {"type": "STRING"}, "verdict": {"type": "STRING", "enum": ["keep", "drop"]}},
    "required": ["id", "verdict"],
    "propertyOrdering": ["id", "verdict"],
}


def _own_config() -> types.GenerateContentConfig:
    return types.GenerateContentConfig(response_mime_type="application/json", response_schema=_OWN_SCHEMA)


def test_a_reply_is_typed_and_billed_thinking_and_all() -> None:
    async def talk() -> None:
        async with google_talk(Script(thinking=11)) as (server, client):
            reply = await ask_google(client, "Q1", thinking_config=types.ThinkingConfig(thinking_budget=64))
            assert json.loads(reply.text or "")["id"] == "Q1"
            usage = reply.usage_metadata
            assert usage is not None
            assert usage.thoughts_token_count == 11
            sales = server.stats()["online"]
            assert sales["input_tokens"] == usage.prompt_token_count
            assert sales["output_tokens"] == (usage.candidates_token_count or 0) + 11
            assert usage.total_token_count == sales["input_tokens"] + sales["output_tokens"]

    asyncio.run(talk())


def test_both_kinds_of_schema() -> None:
    async def talk() -> None:
        async with google_talk() as (_server, client):
            own = await client.aio.models.generate_content(model="m", contents=user_text("Q2"), config=_own_config())
            assert json.loads(own.text or "")["id"] == "Q2"

    asyncio.run(talk())


def test_tokens_are_counted_as_they_are_billed() -> None:
    async def talk() -> None:
        async with google_talk() as (server, client):
            counted = await client.aio.models.count_tokens(model="m", contents=user_text("Q2"))
            reply = await client.aio.models.generate_content(model="m", contents=user_text("Q2"))
            assert reply.usage_metadata is not None
            assert counted.total_tokens == reply.usage_metadata.prompt_token_count
            assert server.stats()["online"]["replies"] == 1

    asyncio.run(talk())


def test_an_inline_batch_comes_back_in_another_order() -> None:
    async def talk() -> None:
        rows = {f"key-{at}": f"Q{at}" for at in range(12)}
        async with google_talk(Script(job=JobPlan(shuffled=True))) as (_server, client):
            requests = [
                types.InlinedRequest(contents=user_text(row), metadata={"key": key}, config=_own_config())
                for key, row in rows.items()
            ]
            job = await client.aio.batches.create(model="m", src=requests, config={"display_name": "tag"})
            assert job.state == types.JobState.JOB_STATE_PENDING
            job = await client.aio.batches.get(name=job.name or "")
            assert job.state == types.JobState.JOB_STATE_SUCCEEDED
            assert job.dest is not None
            told = [
                ((one.metadata or {})["key"], json.loads(one.response.text or "")["id"])
                for one in job.dest.inlined_responses or ()
                if one.response is not None
            ]
            assert dict(told) == rows
            assert told != list(rows.items())

    asyncio.run(talk())


def test_a_batch_from_a_file_ignores_the_json_schema() -> None:
    async def talk() -> None:
        def line(key: str, row: str, **config: Any) -> bytes:
            request = {
                "contents": [{"role": "user", "parts": [{"text": user_text(row)}]}],
                "generation_config": {"response_mime_type": "application/json", **config},
            }
            return json.dumps({"key": key, "request": request}).encode() + b"\n"

        content = line("a", "Q1", response_schema=_OWN_SCHEMA) + line("b", "Q2", responseJsonSchema=SCHEMA)
        async with google_talk() as (_server, client):
            config = types.UploadFileConfig(mime_type="jsonl", display_name="rows")
            file = await client.aio.files.upload(file=io.BytesIO(content), config=config)
            job = await client.aio.batches.create(model="m", src=file.name or "", config={"display_name": "tag"})
            job = await client.aio.batches.get(name=job.name or "")
            assert job.dest is not None
            written = await client.aio.files.download(file=job.dest.file_name or "")
            lines = {one["key"]: one["response"] for one in map(json.loads, written.splitlines())}
            texts = {key: body["candidates"][0]["content"]["parts"][0]["text"] for key, body in lines.items()}
            assert json.loads(texts["a"]).keys() == {"id", "verdict"}
            assert json.loads(texts["b"]).keys() == {"id", "text"}

    asyncio.run(talk())


def test_files_in_several_pieces_and_their_deletion() -> None:
    async def talk() -> None:
        content = bytes(range(256)) * 40_000  # more than one piece of the SDK's 8 MiB
        async with google_talk() as (server, client):
            config = types.UploadFileConfig(mime_type="application/octet-stream")
            file = await client.aio.files.upload(file=io.BytesIO(content), config=config)
            assert file.size_bytes == len(content)
            assert [one.name async for one in await client.aio.files.list()] == [file.name]
            with pytest.raises((ValueError, errors.ClientError), match="generated files"):
                await client.aio.files.download(file=file)
            await client.aio.files.delete(name=file.name or "")
            with pytest.raises(errors.ClientError):
                await client.aio.files.get(name=file.name or "")
            assert server.stats()["operations"]["files.upload"] == 2

    asyncio.run(talk())


def test_jobs_are_listed_cancelled_and_deleted() -> None:
    async def talk() -> None:
        async with google_talk(Script(job=JobPlan(polls=9), page=2)) as (_server, client):
            request = types.InlinedRequest(contents=user_text("Q1"))
            names = [
                (await client.aio.batches.create(model="m", src=[request], config={"display_name": f"{at}"})).name
                for at in range(5)
            ]
            listed = [job async for job in await client.aio.batches.list()]
            assert [job.display_name for job in listed] == ["4", "3", "2", "1", "0"]
            await client.aio.batches.cancel(name=names[0] or "")
            stopped = await client.aio.batches.get(name=names[0] or "")
            assert stopped.state == types.JobState.JOB_STATE_CANCELLED
            await client.aio.batches.delete(name=names[0] or "")
            with pytest.raises(errors.ClientError):
                await client.aio.batches.get(name=names[0] or "")

    asyncio.run(talk())


def test_images_are_counted_by_their_size() -> None:
    async def talk() -> None:
        import struct

        large = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + struct.pack(">II", 1600, 700) + b"\x08\x02\x00\x00\x00"
        async with google_talk() as (_server, client):
            parts: Any = [types.Part.from_bytes(data=large, mime_type="image/png"), user_text("Q1")]
            reply = await client.aio.models.generate_content(model="m", contents=parts, config=generate_config())
            plain = await client.aio.models.generate_content(
                model="m", contents=user_text("Q1"), config=generate_config()
            )
            assert reply.usage_metadata is not None
            assert plain.usage_metadata is not None
            more = (reply.usage_metadata.prompt_token_count or 0) - (plain.usage_metadata.prompt_token_count or 0)
            assert more == 3 * 258

    asyncio.run(talk())
