"""Images that cost money: journalled first, no slot bought twice, every image asked for a row.

```
prompts -> calls -> the engine (journal, limits, budget, batches) -> pictures on disk -> parts of the table -> the table
```
A part of the table that is written is not looked at again, so that a run that was cut goes on after it.
"""

from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.generation.comparability import traits_of
from culturekit.generation.picture_store import PictureStore
from culturekit.generation.runner import ImagePlan, list_requests
from culturekit.generation.services.image_client import ImageService, check_image_price
from culturekit.generation.services.image_question import Call, calls_of, question_of
from culturekit.generation.services.paid_rows import PAID_SCHEMA, RowMaker
from culturekit.llm.answers import LlmOptions, ask_options
from culturekit.llm.client import Request
from culturekit.llm.journal.journal import Journal
from culturekit.llm.journal.keys import key_of
from culturekit.llm.journal.run_tag import run_tag
from culturekit.llm.outcomes import Answered
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.manifest import JOURNAL
from culturekit.storage.seals import is_sealed, seal_pictures
from culturekit.storage.tables import merge_parts, read_table, save_parquet, write_table

__all__ = ["buy_images", "planned_calls"]

CALLS_PER_PART = 100
HANDS = 4
"""Threads that read, fetch and place pictures while the next calls are under way."""

DEFAULTS = LlmOptions()


def planned_calls(prompts_path: Path, plan: ImagePlan, client: ImageService, *, seed: int) -> list[Call]:
    """List the calls of a run, in the order of the prompts' ids."""
    prompts = read_table(prompts_path, PROMPTS)
    if plan.kinds:
        prompts = prompts.filter(pl.col("kind").is_in(list(plan.kinds)))
    return list(calls_of(list_requests(prompts, plan, seed), client.per_call))


def buy_images(
    work: Work,
    prompts_path: Path,
    plan: ImagePlan,
    client: ImageService,
    *,
    model: str,
    seed: int,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Buy all images of a model, and write the table that lists them."""
    calls = planned_calls(prompts_path, plan, client, seed=seed)
    parts = {
        work.scratch / f"images-{start:09d}.parquet": calls[start : start + CALLS_PER_PART]
        for start in range(0, len(calls), CALLS_PER_PART)
    }
    work.progress.begin(sum(map(len, calls)), "images")
    left = {path: some for path, some in parts.items() if not is_sealed(path)}
    work.progress.advance(sum(len(call) for path, some in parts.items() if path not in left for call in some))
    if left:
        check_image_price(client)
        store = client.keep_in(work.out / JOURNAL)
        maker = RowMaker(work.out, client, store, model, plan.format)
        with Journal(work.out / JOURNAL) as journal:
            buy_parts(work, left, maker, journal, llm)
    images = merge_parts(list(parts), PAID_SCHEMA)
    write_table(work.out, IMAGES, images)
    statuses = Counter(images["status"].to_list())
    drops = {status: count for status, count in sorted(statuses.items()) if status != "ok"}
    return Outcome({"images": images.height, "ok": statuses["ok"]}, drops, {"traits": traits_of(images).noted()})


def buy_parts(work: Work, left: dict[Path, list[Call]], maker: RowMaker, journal: Journal, llm: LlmOptions) -> None:
    """Buy the parts that are not there yet, one after the other; the engine runs ahead of them."""
    tag = run_tag(work)
    requests = [question_of(call) for some in left.values() for call in some]
    with (
        closing(answers(maker.client, requests, work=work, llm=llm, journal=journal, tag=tag)) as answered,
        hands_for(maker.store) as hands,
    ):
        for path, some in left.items():
            waiting: list[Future[list[dict[str, Any]]]] = []
            for call, answer in zip(some, islice(answered, len(some)), strict=True):
                at = arrived(maker.client, journal, question_of(call), answer, tag)
                waiting.append(hands.submit(maker.rows, call, answer, at))
                work.progress.advance(len(call))
            rows = [row for future in waiting for row in future.result()]
            save_parquet(pl.DataFrame(rows, schema=PAID_SCHEMA), path)
            seal_pictures(path, work.out, rows)


@contextmanager
def hands_for(store: PictureStore) -> Iterator[ThreadPoolExecutor]:
    """Give threads that place pictures; when the run ends early, what they have not begun is left."""
    with ThreadPoolExecutor(HANDS, "pictures") as hands:
        try:
            yield hands
        except BaseException:
            store.leaving.set()
            hands.shutdown(wait=False, cancel_futures=True)
            raise


def answers(
    client: ImageService, requests: Sequence[Request], *, work: Work, llm: LlmOptions, journal: Journal, tag: str
) -> Generator[Answered]:
    """Answer calls in their order, one by one or in batches."""
    from culturekit.llm.batches.answering import answer_batch
    from culturekit.llm.engine import AskEngine
    from culturekit.llm.money.spent_in_run import spent_in_run

    options = ask_options(client, llm)
    if llm.batch:
        spent = spent_in_run(journal.path, tag)
        yield from answer_batch(client, client.batches(), journal, requests, options, tag, work.progress, spent=spent)
        return
    yield from AskEngine(client, journal, options, run=tag, progress=work.progress).ask_all(requests)


def arrived(client: ImageService, journal: Journal, request: Request, answer: Answered, tag: str) -> float | None:
    """Say when the reply that closed a call was written down; the journal says the same in every later run."""
    key = key_of(client.identity, client.compose(request))
    entries = journal.found([key], run=tag).get(key, [])
    replies = [entry for entry in entries if entry.kind == "reply"] if answer.value is not None else entries
    return replies[-1].at if replies else None
