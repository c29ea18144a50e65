"""Questions in, answers out, in the same order: whoever is asked, and whatever it takes."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from culturekit.core.declared import Typed
from culturekit.core.digests import JOURNAL
from culturekit.core.errors import BudgetReached
from culturekit.core.stage import Work
from culturekit.llm.client import PATIENCE, Client, FreeClient, Request

if TYPE_CHECKING:
    from culturekit.llm.journal import Journal
    from culturekit.llm.rows import Answered, ReplyWatch


@dataclass(frozen=True, slots=True)
class LlmOptions:
    """How answers are bought; none of it decides what they say.

    What the stages in the folders `beside` have spent is taken from the budget first.
    """

    budget: Annotated[
        float | None,
        Field(ge=0, description="US dollars that may be spent in all; the run stops before it spends more."),
    ] = None
    concurrency: Annotated[
        int, Field(ge=1, le=1024, description="Requests under way at once; the result is the same.")
    ] = 16
    batch: Annotated[
        bool,
        Field(description="Ask in batches: half the price, answers within a day; run again to collect."),
        Typed("batch"),
    ] = False
    go_on: Annotated[
        bool,
        Field(
            description="Ask to the end although most replies cannot be used, or although a model is said to be shut."
        ),
        Typed("go-on"),
    ] = False
    beside: Iterable[Path] = ()


DEFAULTS = LlmOptions()


def answers(
    client: Client | FreeClient,
    requests: Iterable[Request],
    *,
    work: Work,
    llm: LlmOptions,
    watch: "ReplyWatch | None" = None,
) -> "Generator[Answered]":
    """Answer requests in their order; what is paid for is journalled in the stage's folder first.

    Raises:
        UnusableReplies: more than half of the rows that `watch` has counted brought no answer; one that is given may
            have counted rows of earlier calls.
    """
    from culturekit.llm.engine import ask_free
    from culturekit.llm.journal import Journal
    from culturekit.llm.ledger import left_for, note_on_others
    from culturekit.llm.purse import remember_rate
    from culturekit.llm.rows import ReplyWatch

    watch = watch or ReplyWatch(go_on=llm.go_on)
    if isinstance(client, FreeClient):
        for answered in ask_free(client, requests):
            watch.count(answered)
            yield answered
        return
    try:
        left = replace(llm, budget=left_for(llm.budget, llm.beside))
        with Journal(work.out / JOURNAL) as journal:
            remember_rate(journal, client.model, client.rate)
            yield from bought_answers(client, requests, journal, work=work, llm=left, watch=watch)
    except BudgetReached as error:
        error.found = error.found or note_on_others(llm.budget, llm.beside)
        raise


def bought_answers(
    client: Client,
    requests: Iterable[Request],
    journal: "Journal",
    *,
    work: Work,
    llm: LlmOptions,
    watch: "ReplyWatch | None" = None,
) -> "Generator[Answered]":
    """Answer requests into a journal, one by one or in batches, with the patience that the client states."""
    from culturekit.llm.batch_runner import Jobs, batches_of
    from culturekit.llm.engine import AskEngine, AskOptions
    from culturekit.llm.journal import run_tag

    patience = client.quota.patience or PATIENCE
    options = AskOptions(llm.concurrency, llm.budget, patience=patience, watch=watch, go_on=llm.go_on)
    transport = Jobs(batches_of(client)) if llm.batch else None
    engine = AskEngine(client, journal, options, run=run_tag(work), progress=work.progress, transport=transport)
    yield from engine.ask_all(requests)
