"""Batches asked of the server on loopback through the real SDKs."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.llm.batch_runner import BatchRunner, Clock, Pauses, batches_of
from culturekit.llm.client import Request
from culturekit.llm.engine import AskOptions
from culturekit.llm.journal import Journal
from culturekit.llm.rows import Answered
from tests.faults.llm_batch_asking import client_of

PROVIDERS = ("openai", "google")
QUICK = Pauses(first=0.01, longest=0.05, settle=0.05)
OPTIONS = AskOptions()


def ask(
    provider: str,
    url: str,
    folder: Path,
    requests: Sequence[Request],
    *,
    run: str = "run",
    options: AskOptions = OPTIONS,
    pauses: Pauses = QUICK,
    clock: Clock | None = None,
) -> list[Answered]:
    """Answer requests in batches."""
    client = client_of(provider, url)
    with Journal(folder) as journal:
        asked = BatchRunner(
            client, batches_of(client), journal, requests, options, run, pauses=pauses, clock=clock
        ).answers()
        return list(asked)
