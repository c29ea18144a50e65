"""How fast half a million rows that the journal has are answered again: composed, keyed, looked up, read."""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec
from llm_overhead import Verdict
from recording import record

sys.path.insert(0, str(Path(__file__).parents[1]))

from culturekit.llm.client import Client, Request, Usage
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Entry, Journal, Reading, key_of

AT_ONCE = 2000


def requests(count: int) -> Iterator[Request]:
    """Give the questions, one after another."""
    for n in range(count):
        data = {"id": f"Q{n}", "label": f"dish number {n}", "description": "a stew of black beans with pork"}
        yield Request("bench", "Judge the candidate.", data, Verdict, {"id": (f"Q{n}",)})


def reply(identifier: str) -> bytes:
    """Give a reply as it comes over the wire."""
    content = msgspec.json.encode({"id": identifier, "verdict": "keep"}).decode()
    message = {"role": "assistant", "content": content, "refusal": None}
    usage = {"prompt_tokens": 90, "completion_tokens": 12, "total_tokens": 102}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    whole = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini-2024-07-18"}
    return msgspec.json.encode(whole | {"choices": [choice], "usage": usage})


def fill(client: Client, journal: Journal, count: int) -> None:
    """Put the replies of an earlier run into the journal."""
    asked = requests(count)
    while some := list(islice(asked, AT_ONCE)):
        entries = []
        for request in some:
            outgoing = client.compose(request)
            key = key_of(client.identity, outgoing)
            raw = reply(str(request.data["id"]))
            entries.append(Entry(key, "earlier", 1, "online", 200, "reply", raw, outgoing.body))
        for number in journal.append_all(entries):
            journal.note(number, Reading("ok", Usage(90, 12), 0.00002))


def main() -> None:
    """Fill a journal, then time a run that finds everything in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=500_000)
    count = parser.parse_args().rows
    client = CLIENTS.make("openai:gpt-4o-mini")
    if not isinstance(client, Client):
        raise TypeError(client)
    with tempfile.TemporaryDirectory() as folder:
        with Journal(Path(folder) / "journal") as journal:
            fill(client, journal, count)
        with Journal(Path(folder) / "journal") as journal:
            engine = AskEngine(client, journal, AskOptions(), run="later")
            started, cpu = time.perf_counter(), time.process_time()
            answers = sum(answered.outcome == "ok" for answered in engine.ask_all(requests(count)))
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    if answers != count:
        raise RuntimeError(f"{answers} answers to {count} questions")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    record(
        "llm_engine_replay",
        title=f"{count} rows answered from the journal",
        command="python benchmarks/llm_engine_replay.py",
        table=[
            ["what", "value", "goal"],
            ["rows per second of CPU", f"{count / cpu:,.0f}", "20,000"],
            ["rows per second", f"{count / seconds:,.0f}", ""],
            ["peak MB, filling included", f"{peak:,.0f}", "300"],
        ],
    )


if __name__ == "__main__":
    main()
