"""The process that is killed: asks in batches, and writes down the answers when it has all of them."""

import json
import sys
from pathlib import Path

import msgspec

from culturekit.llm.batch_runner import Jobs, Pauses, batches_of
from culturekit.llm.batches import BatchLimits
from culturekit.llm.client import Client
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.llm.fake_client import questions

PAUSES = Pauses(first=0.01, longest=0.05, settle=0.3)


def client_of(provider: str, url: str) -> Client:
    specs = {
        "openai": f"openai:gpt-4o-mini?base_url={url}/openai/v1&price=0.15/0.60",
        "google": f"google:gemini-2.5-flash?base_url={url}/google&price=0.15/0.60",
    }
    client = CLIENTS.make(specs[provider])
    assert isinstance(client, Client)
    return client


def asking_words(provider: str, url: str, folder: Path, rows: int = 60) -> list[str]:
    return [sys.executable, "-m", "tests.faults.llm_batch_asking", provider, url, str(folder), str(rows)]


def main(provider: str, url: str, folder: str, rows: str) -> None:
    client = client_of(provider, url)
    batches = batches_of(client)
    batches.limits = BatchLimits(rows=15, size=1_000_000)  # type: ignore[misc]
    requests, options = questions(int(rows), max_tokens=60), AskOptions(tries=3)
    Path(folder).mkdir(exist_ok=True)
    with Journal(Path(folder) / "journal") as journal:
        engine = AskEngine(client, journal, options, run="run", transport=Jobs(batches, pauses=PAUSES))
        answers = list(engine.ask_all(requests))
    table = [[answer.outcome, msgspec.to_builtins(answer.value), answer.detail, answer.raw] for answer in answers]
    (Path(folder) / "answers.json").write_text(json.dumps(table, indent=0), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
