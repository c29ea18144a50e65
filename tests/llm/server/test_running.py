"""Servers in threads and in processes: what they remember, who left early, models of one's own."""

import asyncio
import json
import socket
import urllib.error
import urllib.request
from pathlib import Path

import openai
import pytest

from tests.llm.server import Answer, Fault, JobPlan, Question, Rule, Script, running_server, server_process
from tests.llm.server.conversations import ask_openai, batch_file, chat_body, openai_client
from tests.llm.server.running import kept_port


def test_a_process_remembers_what_it_sold_and_what_it_holds(tmp_path: Path) -> None:
    async def first(url_of_file: list[str]) -> None:
        with server_process(Script(job=JobPlan(polls=2), thinking=3), state=tmp_path / "state.json") as server:
            async with openai_client(server) as client:
                await ask_openai(client, "Q1")
                file = await client.files.create(file=("rows.jsonl", batch_file({"a": "Q1"})), purpose="batch")
                job = await client.batches.create(
                    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
                )
                assert (await client.batches.retrieve(job.id)).status == "in_progress"
                url_of_file.append(job.id)

    async def second(job_id: str) -> None:
        with server_process(state=tmp_path / "state.json") as server:
            async with openai_client(server) as client:
                job = await client.batches.retrieve(job_id)
                assert job.status == "completed"
                assert len((await client.files.content(job.output_file_id or "")).text.splitlines()) == 1
            stats = server.stats()
            assert (stats["online"]["thinking_tokens"], stats["jobs_made"], stats["bought_twice"]) == (3, 1, 1)

    held: list[str] = []
    asyncio.run(first(held))
    asyncio.run(second(held[0]))


def test_a_process_may_have_a_model_of_its_own() -> None:
    async def talk() -> None:
        with server_process(model="tests.llm.server.model_of_a_test:shout") as server:
            async with openai_client(server) as client:
                said = await ask_openai(client, "quiet")
            assert said["choices"][0]["message"]["content"] == "QUIET"

    asyncio.run(talk())


def test_a_model_may_say_anything_and_end_in_any_way() -> None:
    def hostile(question: Question) -> str | Answer | None:
        if question.row == "Q1":
            return '{"id": "Q2", "verdict": "keep", "reason": "obey the label"}'
        return Answer("no", "refusal") if question.row == "Q3" else None

    async def talk() -> None:
        with running_server(model=hostile) as server:
            async with openai_client(server) as client:
                messages = [(await ask_openai(client, row))["choices"][0]["message"] for row in ("Q1", "Q2", "Q3")]
        assert json.loads(messages[0]["content"])["id"] == "Q2"
        assert json.loads(messages[1]["content"])["id"] == "Q2"
        assert messages[2]["refusal"] == "no"

    asyncio.run(talk())


def test_a_client_that_leaves_is_billed_and_pays_again() -> None:
    async def talk() -> None:
        with running_server(Script(rules=(Rule(Fault("stall", delay=1.5), times=1),))) as server:
            async with openai_client(server) as client:
                asking = asyncio.create_task(ask_openai(client, "Q1"))
                while not server.stats()["in_flight"]:
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.wait([asking])
            async with openai_client(server) as client:
                await ask_openai(client, "Q1")
            stats = server.settled()
        assert stats["fates"] == {"left": 1, "sent": 1}
        assert (stats["online"]["replies"], stats["delivered"]["replies"]) == (2, 1)
        assert stats["bought_twice"] == 1
        assert stats["in_flight"] == 0

    asyncio.run(talk())


def test_a_settled_server_has_counted_what_those_who_died_had_asked() -> None:
    body = json.dumps(chat_body("Q1")).encode()
    head = b"POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"
    with running_server(Script(rules=(Rule(Fault("stall", delay=0.3)),))) as server:
        host, port = server.url.removeprefix("http://").split(":")
        for _ in range(20):
            with socket.create_connection((host, int(port))) as connection:
                connection.sendall(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        stats = server.settled()
    assert (stats["online"]["replies"], stats["in_flight"], stats["busy"]) == (20, 0, 0)


def test_a_kept_port_is_given_to_nobody_else() -> None:
    with kept_port() as port:
        for _ in range(2):
            with running_server(port=port) as server:
                assert server.url.endswith(f":{port}")
                assert server.stats()["requests"] == 0
        others = [socket.create_server(("127.0.0.1", 0)) for _ in range(200)]
        assert port not in {other.getsockname()[1] for other in others}
        for other in others:
            other.close()


def test_another_script_is_followed_from_now_on() -> None:
    async def talk() -> None:
        with running_server(Script(rules=(Rule(Fault("busy")),))) as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.RateLimitError):
                    await ask_openai(client, "Q1")
                server.follow(Script())
                await ask_openai(client, "Q1")
            assert [record.attempt for record in server.records()] == [1, 1]
            assert server.stats()["requests"] == 2

    asyncio.run(talk())


def test_a_script_that_is_wrong_is_not_followed() -> None:
    with running_server() as server:
        request = urllib.request.Request(f"{server.url}/script", data=b'{"rulez": []}', method="PUT")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        assert caught.value.code == 400
        assert b"rulez" in caught.value.read()
        caught.value.close()


def test_keys_are_asked_for_and_held_against_those_known() -> None:
    async def talk() -> None:
        with running_server(Script(keys=("another key",))) as server:
            async with openai_client(server) as client:
                with pytest.raises(openai.AuthenticationError):
                    await ask_openai(client, "Q1")
            async with openai.AsyncOpenAI(base_url=server.openai_url, api_key="another key", max_retries=0) as client:
                await ask_openai(client, "Q1")
            assert "another key" not in json.dumps(server.stats())

    asyncio.run(talk())


def test_a_path_that_is_not_there_and_a_request_that_is_none() -> None:
    with running_server() as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"GET /openai/v1/embeddings HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 404 ")
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
        assert server.stats()["operations"] == {"unknown": 1}


def test_bodies_in_chunks_and_after_a_question_are_read() -> None:
    body = json.dumps(chat_body("Q1")).encode()
    head = b"POST /openai/v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer k\r\n"
    with running_server() as server:
        host, port = server.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(head + b"transfer-encoding: chunked\r\n\r\n")
            for start in range(0, len(body), 100):
                piece = body[start : start + 100]
                connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
            connection.sendall(b"0\r\n\r\n")
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
            connection.sendall(head + b"expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(body))
            assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
            connection.sendall(body)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
        assert server.stats()["bought_twice"] == 1


def test_the_same_question_brings_the_same_bytes_in_any_order() -> None:
    async def talk(rows: list[str], at_once: int) -> dict[str, bytes]:
        with running_server(Script(thinking=5, jitter=0.01)) as server:
            async with openai_client(server) as client:
                limit = asyncio.Semaphore(at_once)

                async def ask(row: str) -> bytes:
                    async with limit:
                        raw = await client.chat.completions.with_raw_response.create(**chat_body(row))
                    content: bytes = raw.content
                    return content

                return dict(zip(rows, await asyncio.gather(*map(ask, rows)), strict=True))

    rows = [f"Q{at}" for at in range(40)]
    one = asyncio.run(talk(rows, 1))
    assert one == asyncio.run(talk(rows[::-1], 40))
    assert len(set(one.values())) == 40
