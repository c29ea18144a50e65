"""The real openai SDK talks to the server, endpoint by endpoint."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.llm.server import JobPlan, Script, running_server
from tests.llm.server.conversations import SCHEMA, ask_openai, batch_file, chat_body, openai_client, user_text

_ROOT = Path(__file__).parents[3]
_TALKS = ("test_openai_wire.py", "test_google_wire.py", "test_faults.py")


@pytest.mark.external
@pytest.mark.slow
@pytest.mark.parametrize("sdks", [("openai==2.0.0", "google-genai==2.0.0"), ("openai>=2,<3", "google-genai>=2,<3")])
def test_older_sdks_hold_the_same_conversation(tmp_path: Path, sdks: tuple[str, str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    needed = ["pytest", "msgspec", "orjson"]
    subprocess.run([*install, "-c", str(_ROOT / "constraints.txt"), *sdks, *needed], check=True)
    talks = [str(Path(__file__).with_name(name)) for name in _TALKS]
    options = ["-q", "-p", "no:cacheprovider", "-W", "default", "--noconftest"]
    done = subprocess.run(
        [str(python), "-m", "pytest", *options, *talks], cwd=_ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_a_chat_completion_is_typed_raw_and_billed() -> None:
    async def talk() -> None:
        with running_server(Script(thinking=9, cached=1.0)) as server:
            async with openai_client(server) as client:
                typed = await client.chat.completions.create(**chat_body("Q1"))
                raw = await ask_openai(client, "Q1")
            said = json.loads(typed.choices[0].message.content or "")
            assert said["id"] == "Q1"
            assert said["verdict"] in {"keep", "drop"}
            assert typed.choices[0].finish_reason == "stop"
            assert typed.to_dict() == openai.types.chat.ChatCompletion.model_validate(raw).to_dict()
            assert typed.usage is not None
            assert typed.usage.completion_tokens_details is not None
            assert typed.usage.completion_tokens_details.reasoning_tokens == 9
            sales = server.stats()["online"]
            assert sales["input_tokens"] == 2 * typed.usage.prompt_tokens
            assert sales["output_tokens"] == 2 * typed.usage.completion_tokens
            assert server.stats()["bought_twice"] == 1

    asyncio.run(talk())


def test_responses() -> None:
    async def talk() -> None:
        form: Any = {"format": {"type": "json_schema", "name": "verdict", "schema": SCHEMA, "strict": True}}
        asked: dict[str, Any] = {"model": "loopback-small", "input": user_text("Q3"), "text": form}
        with running_server() as server:
            async with openai_client(server) as client:
                whole = await client.responses.create(**asked, instructions="Judge it.")
            assert json.loads(whole.output_text)["id"] == "Q3"
            assert whole.usage is not None
            assert server.stats()["online"]["input_tokens"] == whole.usage.input_tokens

    asyncio.run(talk())


def test_models_are_listed_and_strangers_unknown() -> None:
    async def talk() -> None:
        with running_server(Script(models=("a", "b"))) as server:
            async with openai_client(server) as client:
                assert [model.id async for model in client.models.list()] == ["a", "b"]
                assert (await client.models.retrieve("b")).id == "b"
                with pytest.raises(openai.NotFoundError):
                    await client.models.retrieve("c")
                with pytest.raises(openai.NotFoundError):
                    await ask_openai(client, "Q1")

    asyncio.run(talk())


def test_a_batch_from_upload_to_download() -> None:
    async def talk() -> None:
        rows = {f"key-{at}": f"Q{at}" for at in range(25)}
        plan = JobPlan(polls=2, shuffled=True)
        with running_server(Script(job=plan, page=2)) as server:
            async with openai_client(server) as client:
                file = await client.files.create(file=("rows.jsonl", batch_file(rows)), purpose="batch")
                made = [
                    await client.batches.create(
                        input_file_id=file.id,
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={"run": f"tag-{at}"},
                    )
                    for at in range(5)
                ]
                assert made[0].status == "validating"
                first = await client.batches.retrieve(made[0].id)
                assert first.status == "in_progress"
                done = await client.batches.retrieve(made[0].id)
                assert done.status == "completed"
                assert done.request_counts is not None
                assert done.request_counts.completed == 25
                told = [batch.metadata async for batch in client.batches.list()]
                assert told == [{"run": f"tag-{at}"} for at in reversed(range(5))]
                assert done.output_file_id is not None
                written = (await client.files.content(done.output_file_id)).text
                lines = [json.loads(line) for line in written.splitlines()]
                online = await ask_openai(client, "Q4")
            assert [line["custom_id"] for line in lines] != list(rows)
            answers = {line["custom_id"]: line["response"]["body"] for line in lines}
            assert {
                key: json.loads(body["choices"][0]["message"]["content"])["id"] for key, body in answers.items()
            } == rows
            assert answers["key-4"] == online
            stats = server.stats()
            assert stats["jobs_made"] == 5
            assert stats["batch"]["replies"] >= 25
            assert stats["lines_made_twice"] == 100

    asyncio.run(talk())


def test_files_are_listed_and_deleted() -> None:
    async def talk() -> None:
        with running_server() as server:
            async with openai_client(server) as client:
                file = await client.files.create(file=("rows.jsonl", b"a\r\n--b\r\n\x00c"), purpose="batch")
                assert (await client.files.content(file.id)).content == b"a\r\n--b\r\n\x00c"
                assert (await client.files.retrieve(file.id)).bytes == file.bytes
                assert [one.id async for one in client.files.list()] == [file.id]
                assert (await client.files.delete(file.id)).deleted
                with pytest.raises(openai.NotFoundError):
                    await client.files.retrieve(file.id)

    asyncio.run(talk())


def test_a_batch_with_a_bad_file_fails_as_a_whole() -> None:
    async def talk() -> None:
        twice = batch_file({"a": "Q1"}) + batch_file({"a": "Q2"}) + b"{\n"
        with running_server() as server:
            async with openai_client(server) as client:
                file = await client.files.create(file=("rows.jsonl", twice), purpose="batch")
                batch = await client.batches.create(
                    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
                )
                batch = await client.batches.retrieve(batch.id)
            assert batch.status == "failed"
            assert batch.errors is not None
            found = [(error.line, error.code) for error in batch.errors.data or ()]
            assert found == [(2, "duplicate_custom_id"), (3, "invalid_json_line")]
            assert server.stats()["batch"]["replies"] == 0

    asyncio.run(talk())


def test_a_job_whose_id_was_never_told_is_found_by_its_tag() -> None:
    async def talk() -> None:
        with running_server(Script(jobs=(JobPlan(unsaid=True),))) as server:
            async with openai_client(server) as client:
                file = await client.files.create(file=("rows.jsonl", batch_file({"a": "Q1"})), purpose="batch")
                with pytest.raises(openai.APIConnectionError):
                    await client.batches.create(
                        input_file_id=file.id,
                        endpoint="/v1/chat/completions",
                        completion_window="24h",
                        metadata={"run": "tag"},
                    )
                found = [batch async for batch in client.batches.list() if batch.metadata == {"run": "tag"}]
            assert len(found) == 1
            assert server.stats()["jobs_made"] == 1

    asyncio.run(talk())


def test_a_cancelled_batch_keeps_what_was_done() -> None:
    async def talk() -> None:
        rows = {f"key-{at}": f"Q{at}" for at in range(10)}
        with running_server(Script(job=JobPlan(polls=2))) as server:
            async with openai_client(server) as client:
                file = await client.files.create(file=("rows.jsonl", batch_file(rows)), purpose="batch")
                batch = await client.batches.create(
                    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
                )
                await client.batches.retrieve(batch.id)
                assert (await client.batches.cancel(batch.id)).status == "cancelling"
                batch = await client.batches.retrieve(batch.id)
                assert batch.status == "cancelled"
                assert batch.output_file_id is not None
                assert batch.error_file_id is not None
                done = (await client.files.content(batch.output_file_id)).text.splitlines()
                rest = [
                    json.loads(line) for line in (await client.files.content(batch.error_file_id)).text.splitlines()
                ]
            assert len(done) == 5
            assert {line["error"]["code"] for line in rest} == {"batch_cancelled"}
            assert len(rest) == 5

    asyncio.run(talk())
