"""Images that cost money: journalled first, no slot bought twice, every image asked for a row.

```
prompts -> calls -> the engine (journal, limits, budget, batches) -> pictures on disk -> parts of the table -> the table
```
A part of the table that is written is not looked at again, so that a run that was cut goes on after it.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.counting import counted
from culturekit.generation.backend import ImageRequest
from culturekit.generation.comparability import traits_of
from culturekit.generation.folder.folder_intake import other_colours
from culturekit.generation.image_rows import asked_row, image_id_of, statuses_of
from culturekit.generation.picture_store import PictureStore, folder_of_prompt, linked, placed
from culturekit.generation.runner import ImagePlan, wanted
from culturekit.generation.services.image_client import ImageClient, check_image_price
from culturekit.generation.services.image_question import KEPT, URL, Call, Candidate, Made, calls_of, question_of
from culturekit.generation.services.picture_fetch import fetched
from culturekit.llm.answers import LlmOptions, ask_options
from culturekit.llm.client import Request
from culturekit.llm.failures import read_error
from culturekit.llm.journal import Journal, run_tag
from culturekit.llm.journal_file import key_of
from culturekit.llm.rows import Answered
from culturekit.records.choices import PictureFormat
from culturekit.records.schemas import IMAGES
from culturekit.records.work import Outcome, Work
from culturekit.storage.digests import canonical_json, digest_bytes
from culturekit.storage.manifest import JOURNAL
from culturekit.storage.picture_files import encoded
from culturekit.storage.picture_reading import NoPicture, picture_from
from culturekit.storage.seals import is_sealed, seal_pictures
from culturekit.storage.tables import merge_parts, save_parquet, write_table

__all__ = ["buy_images", "planned_calls"]

PAID_SCHEMA: Mapping[str, pl.DataType] = {
    **IMAGES.schema,
    **{name: IMAGES.optional[name].dtype for name in ("concept", "country", "source_sha256")},
}
"""The columns of an images table that was bought; `source_sha256` is the picture as it came."""

SUFFIXES = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
ENDED = {"refused": "refused", "blocked": "filtered"}
"""How a call that brought no image stands in the table; every other end is `failed`."""

CALLS_PER_PART = 100
HANDS = 4
"""Threads that read, fetch and place pictures while the next calls are under way."""

DEFAULTS = LlmOptions()


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Makes the rows of calls; it may do so in several threads at once."""

    out: Path
    client: ImageClient
    store: PictureStore
    model: str
    format: PictureFormat

    def rows(self, call: Call, answered: Answered, at: float | None) -> list[dict[str, Any]]:
        """Give one row for each image that a call asked for."""
        said = "; ".join(filter(None, [answered.detail, error_message(answered)]))
        if not isinstance(answered.value, Made):
            status = ENDED.get(answered.outcome, "failed")
            reason = said or answered.outcome
            safety = (error_code(answered) or answered.detail) if status == "filtered" else None
            ended = {"status": status, "reason": reason, "safety": safety or None}
            return [{**self.row(request, at, {}), **ended} for request in call]
        made = answered.value
        facts = {**self.client.sent_options, "n": len(call), **stated_facts(made)}
        if len(made.candidates) > len(call):
            facts["candidates"] = len(made.candidates)
        return [
            {
                **self.row(request, at, facts),
                "model_version": made.version or self.client.model,
                **(self.bring_in(request, made.candidates[place]) if place < len(made.candidates) else missing(made)),
            }
            for place, request in enumerate(call)
        ]

    def row(self, request: ImageRequest, at: float | None, facts: Mapping[str, object]) -> dict[str, Any]:
        """Describe an image before it is known what came."""
        params = {**(facts or self.client.sent_options)}
        if request.negative_text:
            sent = self.client.negatives
            params["negative_text"] = request.negative_text if sent else "not sent: the API takes none"
        return {
            **asked_row(request, self.model, self.client.model),
            "seed_honoured": self.client.seeds,
            "rewriter": self.client.rewriter,
            "requested_at": None if at is None else datetime.fromtimestamp(at, UTC),
            "provider_params": canonical_json(params).decode(),
        }

    def bring_in(self, request: ImageRequest, candidate: Candidate) -> dict[str, Any]:
        """Bring one image of a reply into the folder."""
        told: dict[str, Any] = {"prompt_revised": candidate.revised or None, "safety": candidate.safety or None}
        if candidate.revised:
            told["rewriter"] = "on"
        if not candidate.picture:
            return {**told, "status": "filtered" if candidate.safety else "failed", "reason": candidate.reason}
        if self.client.filters and not candidate.safety:
            told["safety"] = "passed"
        sha256 = candidate.picture.removeprefix(KEPT)
        if candidate.picture.startswith(URL):
            came = fetched(candidate.picture.removeprefix(URL), self.store, base_url=self.client.identity.base_url)
            if came.reason:
                return {**told, "status": "failed", "reason": came.reason}
            sha256 = came.sha256
        return {**told, "source_sha256": sha256, **self.taken(request, sha256)}

    def taken(self, request: ImageRequest, sha256: str) -> dict[str, Any]:
        """Read a picture, and put it where its row says; one that needs no change stays as it came."""
        content = self.store.get(sha256)
        picture = picture_from(content)
        if isinstance(picture, NoPicture):
            why = f"{picture.reason}: {picture.detail}" if picture.detail else picture.reason
            return {"status": "failed", "reason": f"paid for, but not read: {why}"}
        changed = picture.changed or other_colours(content, picture.format)
        form = self.format if changed else SUFFIXES.get(picture.format, self.format)
        stays = not changed and picture.format in SUFFIXES
        relative = f"files/{folder_of_prompt(request.prompt_id)}/{request.repeat:04d}-{request.slot:02d}.{form}"
        to = self.out / relative
        if not stays:
            content = encoded(picture.pixels, self.format)
        to.parent.mkdir(parents=True, exist_ok=True)
        if not stays or not linked(self.store.path(sha256), to):
            placed(content, to)
        height, width, _ = picture.pixels.shape
        return {
            "image_id": image_id_of(self.model, request, picture.pixels),
            "path": relative,
            "sha256": digest_bytes(content),
            "width": width,
            "height": height,
            "status": "ok",
            "reason": "; ".join(changed) or None,
        }


def stated_facts(made: Made) -> dict[str, Any]:
    """Read what a reply said of its images; it outweighs what was asked."""
    facts: dict[str, Any] = msgspec.json.decode(made.facts.encode())
    return facts


def missing(made: Made) -> dict[str, Any]:
    """Describe an image that a call asked for and did not bring."""
    told: Sequence[str] = sorted({candidate.reason for candidate in made.candidates if candidate.reason})
    count = len(made.candidates)
    reason = f"the reply has {counted(count, 'images')} in place of those asked for"
    return {"status": "filtered", "reason": "; ".join([reason, *told]), "safety": "left out of the reply"}


def error_message(answered: Answered) -> str:
    """Read what an error said that closed a call."""
    if answered.outcome not in {"blocked", "invalid"} or not answered.raw:
        return ""
    error = read_error(answered.raw.encode("utf-8", "replace"))
    return ": ".join(filter(None, [error_code(answered), error.message]))


def error_code(answered: Answered) -> str:
    """Name the codes of an error that closed a call."""
    if not answered.raw:
        return ""
    return " ".join(sorted(read_error(answered.raw.encode("utf-8", "replace")).codes))


def planned_calls(prompts_path: Path, plan: ImagePlan, client: ImageClient, *, seed: int) -> list[Call]:
    """List the calls of a run, in the order of the prompts' ids."""
    return list(calls_of(wanted(prompts_path, plan, seed), client.per_call))


def buy_images(
    work: Work,
    prompts_path: Path,
    plan: ImagePlan,
    client: ImageClient,
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
    made, drops = statuses_of(images)
    return Outcome({"images": images.height, "ok": made}, drops, {"traits": traits_of(images).noted()})


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
                maker.client.settled(question_of(call), answer)
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
            hands.shutdown(cancel_futures=True)
            raise


def answers(
    client: ImageClient, requests: Sequence[Request], *, work: Work, llm: LlmOptions, journal: Journal, tag: str
) -> Generator[Answered]:
    """Answer calls in their order, one by one or in batches."""
    from culturekit.llm.batch_runner import answer_batch
    from culturekit.llm.engine import AskEngine

    options = ask_options(client, llm)
    if llm.batch:
        yield from answer_batch(client, client.batches(), journal, requests, options, tag, work.progress)
        return
    yield from AskEngine(client, journal, options, run=tag, progress=work.progress).ask_all(requests)


def arrived(client: ImageClient, journal: Journal, request: Request, answer: Answered, tag: str) -> float | None:
    """Say when the reply that closed a call was written down; the journal says the same in every later run."""
    key = key_of(client.identity, client.compose(request))
    entries = journal.found([key], run=tag).get(key, [])
    replies = [entry for entry in entries if entry.kind == "reply"] if answer.value is not None else entries
    return replies[-1].at if replies else None
