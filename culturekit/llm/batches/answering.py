"""Requests answered in batches, in their order, as the engine answers them one by one."""

import asyncio
from collections.abc import Iterable, Iterator

from culturekit.errors import CultureKitError, UsageError
from culturekit.llm.batches.batch_client import BatchClient
from culturekit.llm.batches.batch_runner import BatchRunner
from culturekit.llm.batches.waiting import Clock, Pauses, WallClock
from culturekit.llm.client import Client, Request
from culturekit.llm.clients.google_client import GoogleClient
from culturekit.llm.clients.openai_client import OpenAIClient
from culturekit.llm.engine import AskOptions
from culturekit.llm.journal.journal import Journal
from culturekit.llm.outcomes import Answered
from culturekit.records.work import Progress

__all__ = ["answer_batch", "batches_of"]

PATIENT = Pauses()


def batches_of(client: Client) -> BatchClient:
    """Give the batches of a client; no SDK is imported yet.

    Raises:
        UsageError: it has none.
    """
    if isinstance(client, OpenAIClient):
        from culturekit.llm.batches.openai_batches import OpenAIBatches

        return OpenAIBatches(client)
    if isinstance(client, GoogleClient):
        from culturekit.llm.batches.google_batches import GoogleBatches

        return GoogleBatches(client)
    raise UsageError(
        f"{client.model} cannot be asked in batches",
        expected="a model of openai or google",
        hint="Ask it one by one: leave out batch=1.",
    )


def answer_batch(
    client: Client,
    batches: BatchClient,
    journal: Journal,
    requests: Iterable[Request],
    options: AskOptions,
    run: str,
    progress: Progress | None = None,
    *,
    pauses: Pauses = PATIENT,
    clock: Clock | None = None,
) -> Iterator[Answered]:
    """Answer requests; what the journal has is not bought again.

    Ctrl-C leaves at once: jobs go on at the provider, and whoever asks the same again collects them.

    Raises:
        BudgetReached: there is money for none of the rows that are left; everything bought is kept.
        UpstreamUnavailable: the provider creates no job, or does not answer; everything bought is kept.
        UsageError: a key, a model or a price is missing or wrong.
    """
    runner = BatchRunner(
        client,
        batches,
        journal,
        requests,
        options,
        run,
        progress,
        pauses=pauses,
        clock=clock or WallClock(),
    )
    with asyncio.Runner() as loop:
        try:
            going = True
            while going:
                ending: CultureKitError | None = None
                try:
                    going = loop.run(runner.round())
                except CultureKitError as error:
                    ending = error
                yield from runner.rows.answers()
                if ending is not None:
                    raise ending
        finally:
            loop.run(batches.close())
