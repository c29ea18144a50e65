"""Questions in, answers out, in the same order: whoever is asked, and whatever it takes."""

import secrets
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from pathlib import Path

from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.outcomes import Answered
from culturekit.records.work import Work
from culturekit.storage.atomic import write_atomically

__all__ = ["JOURNAL", "LlmOptions", "answers", "run_tag"]

JOURNAL = "journal"
"""The folder of what was bought, beside the tables that came of it."""

RUN_TAG = "run_tag"


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """How answers are bought; none of it decides what they say.

    `budget` is in US dollars. With `batch` the questions go as batches: half the price, answers within a day.
    """

    budget: float | None = None
    concurrency: int = 16
    batch: bool = False


def answers(
    client: Client | FreeClient, requests: Iterable[Request], *, work: Work, llm: LlmOptions
) -> Generator[Answered]:
    """Answer requests in their order; what is paid for is journalled in the stage's folder first."""
    from culturekit.llm.engine import AskEngine, AskOptions
    from culturekit.llm.journal import Journal

    options = AskOptions(concurrency=llm.concurrency, budget=llm.budget)
    if isinstance(client, FreeClient):
        yield from AskEngine(client, None, options).ask_all(requests)
        return
    with Journal(work.out / JOURNAL) as journal:
        engine = AskEngine(client, journal, options, run=run_tag(work.scratch), progress=work.progress)
        yield from engine.ask_all(requests)


def run_tag(scratch: Path) -> str:
    """Name this run of a stage, the same after each kill: within a run nothing journalled is asked for again."""
    path = scratch / RUN_TAG
    if not path.exists():
        write_atomically(path, secrets.token_hex(16).encode("ascii"))
    return path.read_text(encoding="ascii")
