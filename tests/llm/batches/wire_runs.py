"""Batches asked of the server on loopback through the real SDKs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from culturekit.llm.batches.answering import answer_batch
from culturekit.llm.batches.batch_client import BatchClient
from culturekit.llm.batches.batches_of import batches_of
from culturekit.llm.batches.waiting import Pauses
from culturekit.llm.client import Client, Request
from culturekit.llm.clients import CLIENTS
from culturekit.llm.engine import AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.outcomes import Answered

__all__ = ["PROVIDERS", "QUICK", "Verdict", "ask", "client_of", "questions"]

PROVIDERS = ("openai", "google")
QUICK = Pauses(first=0.01, longest=0.05, settle=0.05)


class Verdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is answered about a row."""

    id: str
    verdict: Literal["keep", "remove", "review"]


def questions(count: int) -> list[Request]:
    """Give requests about rows Q0, Q1 and so on."""
    return [
        Request("test", "Judge.", {"id": f"Q{number}"}, Verdict, {"id": (f"Q{number}",)}, max_tokens=60)
        for number in range(count)
    ]


def client_of(provider: str, url: str) -> Client:
    """Make a client of a provider's protocol for a server."""
    specs = {
        "openai": f"openai:gpt-4o-mini?base_url={url}/openai/v1&price=0.15/0.60",
        "google": f"google:gemini-2.5-flash?base_url={url}/google&price=0.15/0.60",
    }
    client = CLIENTS.make(specs[provider])
    assert isinstance(client, Client)
    return client


def ask(
    provider: str,
    url: str,
    folder: Path,
    requests: Sequence[Request],
    *,
    run: str = "run",
    options: AskOptions = AskOptions(),  # noqa: B008
    pauses: Pauses = QUICK,
) -> list[Answered]:
    """Answer requests in batches."""
    client = client_of(provider, url)
    batches: BatchClient = batches_of(client)
    with Journal(folder) as journal:
        return list(answer_batch(client, batches, journal, requests, options, run, pauses=pauses))
