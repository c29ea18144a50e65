"""What the engine costs in CPU per request above the SDK called directly, at 64 at once, on loopback.

The server is a process of its own. Both sides ask the same questions of it and read each reply; the engine also keys,
journals, limits and validates.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import msgspec
from recording import record

sys.path.insert(0, str(Path(__file__).parents[1]))

from culturekit.llm.client import Client, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.llm.server.running import server_process
from tests.llm.server.script import Script

AT_ONCE = 64
ROUNDS = 3


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small answer."""

    id: str
    verdict: Literal["keep", "remove"]


def requests(count: int) -> list[Request]:
    """Give the questions."""
    return [
        Request("bench", "Judge the candidate.", {"id": f"Q{n}", "label": f"dish {n}"}, Verdict, {"id": (f"Q{n}",)})
        for n in range(count)
    ]


def client_of(url: str) -> Client:
    """Make the client."""
    client = CLIENTS.make(f"openai:gpt-4o-mini?base_url={url}")
    if not isinstance(client, Client):
        raise TypeError(client)
    return client


async def ask_directly(url: str, bodies: list[bytes]) -> None:
    """Post through the SDK's own method for chat completions, 64 at once."""
    from openai import AsyncOpenAI

    sdk = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)
    left = iter(bodies)

    async def work() -> None:
        for body in left:
            completion = await sdk.chat.completions.create(**msgspec.json.decode(body))
            msgspec.json.decode(completion.choices[0].message.content or "")

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    await sdk.close()


def directly(url: str, count: int) -> float:
    """Give the CPU seconds per request of the SDK alone."""
    client = client_of(url)
    bodies = [client.compose(request).body for request in requests(count)]
    started = time.process_time()
    asyncio.run(ask_directly(url, bodies))
    return (time.process_time() - started) / count


def through_the_engine(url: str, count: int) -> float:
    """Give the CPU seconds per request of the engine, the SDK under it included."""
    asked = requests(count)
    with tempfile.TemporaryDirectory() as folder, Journal(Path(folder) / "journal") as journal:
        engine = AskEngine(client_of(url), journal, AskOptions(concurrency=AT_ONCE), run="bench")
        started = time.process_time()
        answers = sum(answered.outcome == "ok" for answered in engine.ask_all(asked))
        spent = time.process_time() - started
    if answers != count:
        raise RuntimeError(f"{answers} answers to {count} questions")
    return spent / count


def main() -> None:
    """Measure both in turn; the best of some rounds is what the code costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=4000)
    count = parser.parse_args().requests
    with server_process(Script()) as server:
        directly(server.openai_url, 200)
        through_the_engine(server.openai_url, 200)
        direct, engine = [], []
        for _ in range(ROUNDS):
            direct.append(directly(server.openai_url, count))
            engine.append(through_the_engine(server.openai_url, count))
    above = (min(engine) - min(direct)) * 1e3
    record(
        "llm_overhead",
        title=f"The engine above the SDK, {AT_ONCE} at once, {count} requests, best of {ROUNDS}",
        command="python benchmarks/llm_overhead.py",
        table=[
            ["way", "ms CPU per request", "goal"],
            ["openai SDK, chat.completions.create", f"{min(direct) * 1e3:.3f}", ""],
            ["engine, journal and client over the SDK", f"{min(engine) * 1e3:.3f}", ""],
            ["the engine above the SDK", f"{above:.3f}", "0.3"],
        ],
    )


if __name__ == "__main__":
    main()
