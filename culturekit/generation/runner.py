"""Prompts times repeats times slots to images: in shards, resumable, every image asked for gets a row."""

import json
import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.core.atomic import copy_file, explained_outside, write_atomically
from culturekit.core.choices import REQUESTS_PER_SHARD, PictureFormat, PromptKind
from culturekit.core.digests import canonical_json, digest, digest_file
from culturekit.core.errors import UsageError
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.stage import Outcome, Work, is_sealed, run_shards, seal_pictures
from culturekit.core.tables import merge_parts, read_table, save_parquet, write_table
from culturekit.generation.backend import BACKENDS, HeldBackend, ImageBackend, ImageReply, ImageRequest, Lane, Slot
from culturekit.generation.picture_store import (
    Maker,
    Shard,
    batches,
    findings,
    image_row,
    linked,
    part_schema,
    statuses_of,
    to_try_again,
    truth_columns,
    trying_again,
)

_PACE = "pace.json"
SIZE = r"^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$"


@dataclass(frozen=True, slots=True)
class ImagePlan:
    """What to make: `repeats` times `slots` images of every prompt; `kinds`, where given, limit the prompts."""

    repeats: Annotated[int, Field(ge=1, le=65_535, description="How often each prompt is repeated.")] = 1
    slots: Annotated[int, Field(ge=1, le=255, description="Images per prompt and repeat.")] = 1
    kinds: tuple[PromptKind, ...] = ()
    size: Annotated[
        str | None,
        Field(
            pattern=SIZE, description="Width x height in pixels, such as 512x512. [what the backend makes by itself]"
        ),
    ] = None
    format: Annotated[
        PictureFormat, Field(description="Form of the files that are written; both keep every pixel.")
    ] = "png"
    seeds: Annotated[
        Literal["own", "counted"],
        Field(description="Each image has a seed of its own, or `counted`: the run's plus 0, 1, 2, for each prompt."),
    ] = "own"

    @property
    def options(self) -> dict[str, object]:
        """What of it decides the images, as stages note it; usual seeds have no name, as before there were others."""
        return {name: value for name, value in asdict(self).items() if (name, value) != ("seeds", "own")}

    def seed_of(self, seed: int, prompt_id: str, repeat: int, slot: int) -> int:
        """Give the seed of one image."""
        if self.seeds == "counted":
            return (seed + repeat * self.slots + slot) % 2**32
        return derive_seed(seed, prompt_id, repeat, slot)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long an image takes when all lanes are at work, and how many are still to be made."""

    seconds_per_image: float
    left: int


def generate(work: Work, prompts_path: Path, plan: ImagePlan, maker: Maker, *, seed: int) -> Outcome:
    """Make all images of a model, and the table that lists them."""
    requests = wanted(prompts_path, plan, seed)
    backend = backend_of(maker.backend, maker.cspace)
    if isinstance(backend, HeldBackend):
        shards = held_shards(work, maker, plan.format, requests, backend)
        _take_over(work, shards)
        mapper = partial(make_held, backend=backend, work=work)
        try:
            run_shards(work, shards, _make_shard, size=lambda shard: len(shard.requests), unit="images", mapper=mapper)
        finally:
            backend.release()
    else:
        shards = [
            Shard(maker, work.out, work.scratch / f"images-{start:09d}.parquet", plan.format,
                  tuple(requests[start : start + REQUESTS_PER_SHARD]))
            for start in range(0, len(requests), REQUESTS_PER_SHARD)
        ]  # fmt: skip
        _take_over(work, shards)
        run_shards(work, shards, _make_shard, size=lambda shard: len(shard.requests), unit="images")
    images = merge_parts([shard.part for shard in shards], part_schema())
    write_table(work.out, IMAGES, images)
    finished, drops = statuses_of(images)
    found = findings(images)
    notes = {**({"findings": found} if found else {}), **trying_again(images)}
    if isinstance(backend, HeldBackend):
        from culturekit.generation.comparability import traits_of

        notes["traits"] = traits_of(images).noted()
    return Outcome({"images": images.height, "ok": finished}, drops, notes)


def pilot(work: Work, prompts_path: Path, plan: ImagePlan, maker: Maker, *, seed: int) -> Pace | None:
    """Make two images where the run will find them, and say how long one takes; None where all are there.

    The pace is kept in the scratch folder, where a plan finds it.
    """
    backend = backend_of(maker.backend, maker.cspace)
    if not isinstance(backend, HeldBackend):
        raise UsageError("a pilot times a model that runs on this machine", found=maker.backend)
    shards = held_shards(work, maker, plan.format, wanted(prompts_path, plan, seed), backend)
    try:
        pace = _pilot_held(shards, backend=backend, work=work)
    finally:
        backend.release()
    if pace is not None:
        write_atomically(work.scratch / _PACE, canonical_json(asdict(pace)))
    return pace


def known_pace(final: Path) -> float | None:
    """Give the seconds an image takes, as a pilot for a stage folder measured them."""
    path = final.with_name(f".{final.name}.partial") / "scratch" / _PACE
    return float(json.loads(path.read_bytes())["seconds_per_image"]) if path.is_file() else None


def wanted(prompts_path: Path, plan: ImagePlan, seed: int) -> tuple[ImageRequest, ...]:
    """List every image to make of a table of prompts."""
    prompts = read_table(prompts_path, PROMPTS)
    if plan.kinds:
        prompts = prompts.filter(pl.col("kind").is_in(list(plan.kinds)))
    return list_requests(prompts, plan, seed)


def list_requests(prompts: pl.DataFrame, plan: ImagePlan, seed: int) -> tuple[ImageRequest, ...]:
    """List every image to make, in the order of the prompts' ids."""
    width, height = map(int, plan.size.split("x")) if plan.size else (None, None)
    return tuple(
        ImageRequest(
            **{name: row[name] for name in ("prompt_id", "text", "negative_text", "concept", "country", "artifact_id")},
            seed=plan.seed_of(seed, row["prompt_id"], repeat, slot), repeat=repeat, slot=slot, width=width,
            height=height,
        )
        for row in prompts.sort("prompt_id").iter_rows(named=True)
        for repeat in range(plan.repeats)
        for slot in range(plan.slots)
    )  # fmt: skip


def derive_seed(run_seed: int, prompt_id: str, repeat: int, slot: int) -> int:
    """Derive the seed of one image, so that any subset can be made again; 32 bits, which every backend takes."""
    return int(digest([run_seed, prompt_id, repeat, slot])[:8], 16)


def backend_of(spec: str, cspace: Path | None) -> ImageBackend:
    """Give a backend, which may know the cultural space."""
    return BACKENDS.kept(spec) if cspace is None else BACKENDS.kept(spec, cspace=cspace)


def _make_shard(shard: Shard) -> int:
    """Make the images of a shard, then its part of the table."""
    backend = backend_of(shard.maker.backend, shard.maker.cspace)
    journal = _SlotJournal(shard.part.with_suffix(".jsonl"), shard.out, version=backend.version)
    with explained_outside(f"the backend {shard.maker.backend}"):
        rows = [*journal.rows.values()] + [
            image_row(request, reply, shard, backend.version)
            for batch in batches([request for request in shard.requests if _slot_of(request) not in journal.rows])
            for request, reply in zip(batch, backend.generate(batch), strict=True)
        ]
    save_parquet(pl.DataFrame(rows, schema=part_schema(truth_columns(backend))), shard.part)
    seal_pictures(shard.part, shard.out, rows)
    return len(rows)


def _take_over(work: Work, shards: Sequence[Shard]) -> None:
    """Lay the images of a finished folder ready that are not tried again, each where its shard looks for it."""
    if work.before is None:
        return
    images = pl.read_parquet(work.before / f"{IMAGES.name}.parquet").filter(~to_try_again())
    rows = {_slot_in_row(row): row for row in images.iter_rows(named=True)}
    for path in filter(None, images["path"]):
        (work.out / path).parent.mkdir(parents=True, exist_ok=True)
        if not (work.out / path).exists() and not linked(work.before / path, work.out / path):
            copy_file(work.before / path, work.out / path)
    for shard in shards:
        known = [rows[slot] for slot in map(_slot_of, shard.requests) if slot in rows]
        if not is_sealed(shard.part) and not shard.part.with_suffix(".jsonl").exists():
            _SlotJournal(shard.part.with_suffix(".jsonl"), shard.out, version=None).add(known)


# Images of a model that one process holds: batches to its lanes, each picture kept as soon as it is made.

_PILOT = 2


class _SlotJournal:
    """Lines of JSON, one row each; a line that a kill cut short, or whose file is not there, does not count."""

    def __init__(self, path: Path, out: Path, *, version: str | None) -> None:
        """Read what an earlier run of the same model left; rows of another version are left behind."""
        self.path, self.out, self.version = path, out, version
        self.rows: dict[Slot, Mapping[str, Any]] = {}
        if path.exists():
            self.read()

    def read(self) -> None:
        """Take the rows that are whole, and cut the file behind them."""
        whole = 0
        with self.path.open("rb") as file:
            for line in file:
                try:
                    row = json.loads(line) if line.endswith(b"\n") else None
                except ValueError:
                    row = None
                if not isinstance(row, dict):
                    break
                whole += len(line)
                if row["model_version"] == self.version and self.has_file(row):
                    self.rows[_slot_in_row(row)] = row
        os.truncate(self.path, whole)

    def has_file(self, row: Mapping[str, Any]) -> bool:
        """Tell whether the file of a row is there with the bytes that the row promises."""
        path = self.out / row["path"]
        return not row["path"] or (path.is_file() and digest_file(path) == row["sha256"])

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write rows behind the others: from here on they outlive a kill."""
        with self.path.open("ab") as file:
            for row in rows:
                file.write(json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self.rows.update((_slot_in_row(row), row) for row in rows)

    def settle(self) -> None:
        """Wait until the rows are on disk: from here on they outlive a power cut, too."""
        with self.path.open("rb") as file:
            os.fsync(file.fileno())


@dataclass(slots=True)
class _OpenShard:
    """A shard at work: its journal, and its batches that are not answered."""

    shard: Shard
    journal: _SlotJournal
    batches: list[list[ImageRequest]] = field(default_factory=list)
    left: int = 0

    def missing(self, batch: Sequence[ImageRequest]) -> list[ImageRequest]:
        """List the requests of a batch whose image is not there."""
        return [request for request in batch if _slot_of(request) not in self.journal.rows]


# a call of a lane; it holds the same requests as in an undisturbed run, so that it gives the same pictures
_Batch: TypeAlias = tuple[_OpenShard, Sequence[ImageRequest]]


def _slot_of(request: ImageRequest) -> Slot:
    return request.prompt_id, request.repeat, request.slot


def held_shards(
    work: Work, maker: Maker, form: PictureFormat, requests: Sequence[ImageRequest], backend: HeldBackend
) -> list[Shard]:
    """Cut requests into shards of whole batches, each of one size and with or without a negative prompt."""
    size = backend.batch_size * math.ceil(REQUESTS_PER_SHARD / backend.batch_size)
    groups = [
        [request for request in group if (request.negative_text is None) == without]
        for group in batches(requests)
        for without in (True, False)
    ]
    runs = [group[start : start + size] for group in groups for start in range(0, len(group), size)]
    return [
        Shard(maker, work.out, work.scratch / f"images-{number:09d}.parquet", form, tuple(run))
        for number, run in enumerate(runs)
    ]


def make_held(
    do: Callable[[Shard], int], shards: Sequence[Shard], *, backend: HeldBackend, work: Work
) -> Iterator[int]:
    """Make the images of shards that are not done, and say after every batch how many more there are."""
    del do
    if not shards:
        return
    opened = [_open_shard(shard, backend) for shard in shards]
    before = sum(len(one.journal.rows) for one in opened)
    yield before
    for one in opened:
        _finish(one)
    todo: Iterator[_Batch] = ((one, batch) for one in opened for batch in one.batches)
    with (
        explained_outside(f"the backend {shards[0].maker.backend}"),
        backend.lanes(work.engine.workers) as lanes,
        ThreadPoolExecutor(max(work.engine.workers, backend.batch_size)) as writers,  # they wait for the disk
    ):
        for batch, replies in _in_lanes(lanes, todo):
            yield keep(batch, replies, backend, writers)


def _open_shard(shard: Shard, backend: HeldBackend) -> _OpenShard:
    """Read what is there of a shard, and list the batches that are not whole."""
    opened = _OpenShard(shard, _SlotJournal(shard.part.with_suffix(".jsonl"), shard.out, version=backend.version))
    size = backend.batch_size
    runs = [list(shard.requests[start : start + size]) for start in range(0, len(shard.requests), size)]
    opened.batches = [run for run in runs if opened.missing(run)]
    opened.left = len(opened.batches)
    return opened


def keep(batch: _Batch, replies: Sequence[ImageReply], backend: HeldBackend, writers: ThreadPoolExecutor) -> int:
    """Write the pictures of a batch that were not there, then their rows; with its last batch a shard is done."""
    opened, requests = batch
    pairs = [
        (request, reply)
        for request, reply in zip(requests, replies, strict=True)
        if _slot_of(request) not in opened.journal.rows
    ]
    for row in writers.map(lambda pair: image_row(pair[0], pair[1], opened.shard, backend.version), pairs):
        opened.journal.add([row])
    opened.journal.settle()
    opened.left -= 1
    _finish(opened)
    return len(pairs)


def _finish(opened: _OpenShard) -> None:
    """Write the part of a shard that has all its images, in the order in which they were asked for."""
    if opened.left:
        return
    rows = [opened.journal.rows[_slot_of(request)] for request in opened.shard.requests]
    save_parquet(pl.DataFrame(rows, schema=part_schema()), opened.shard.part)
    seal_pictures(opened.shard.part, opened.shard.out, rows)
    opened.journal.path.unlink(missing_ok=True)


def _pilot_held(shards: Sequence[Shard], *, backend: HeldBackend, work: Work) -> Pace | None:
    """Make two images of the run, each with all of its batch, so that it comes out as in the run; time the second.

    Gives None where all images are there.
    """
    opened = [_open_shard(shard, backend) for shard in shards if not is_sealed(shard.part)]
    missing = [(one, batch, request) for one in opened for batch in one.batches for request in one.missing(batch)]
    if not missing:
        return None
    with explained_outside(f"the backend {shards[0].maker.backend}"), backend.lanes(work.engine.workers) as lanes:
        for one, batch, request in missing[:_PILOT]:
            started = time.perf_counter()
            reply = lanes[0].generate(batch)[batch.index(request)]
            one.journal.add([image_row(request, reply, one.shard, backend.version)])
            seconds = time.perf_counter() - started
        return Pace(seconds / (backend.batch_size * len(lanes)), len(missing) - len(missing[:_PILOT]))


def _slot_in_row(row: Mapping[str, Any]) -> Slot:
    return row["prompt_id"], row["repeat"], row["slot"]


def _in_lanes(lanes: Sequence[Lane], batches: Iterator[_Batch]) -> Iterator[tuple[_Batch, list[ImageReply]]]:
    """Let each lane answer one batch after another in a thread of its own, while the caller keeps what was answered."""
    threads = [ThreadPoolExecutor(1, "lane") for _ in lanes]
    failed = threading.Event()
    asked: dict[Future[list[ImageReply] | None], tuple[int, _Batch]] = {}

    def answer(lane: Lane, batch: _Batch) -> list[ImageReply] | None:
        if failed.is_set():
            return None
        try:
            return lane.generate(batch[1])
        except BaseException:
            failed.set()
            raise

    def ask(number: int) -> None:
        batch = next(batches, None)
        if batch is not None:
            asked[threads[number].submit(answer, lanes[number], batch)] = number, batch

    try:
        for number in [*range(len(lanes))] * 2:  # a lane has the next batch at hand when it is done with one
            ask(number)
        while asked:
            done = wait(asked, return_when=FIRST_COMPLETED).done
            for future in sorted(done, key=lambda one: one.exception() is not None):  # what was made is kept first
                number, batch = asked.pop(future)
                replies = future.result()
                if replies is not None:
                    ask(number)
                    yield batch, replies
    finally:  # every lane finishes what it is at, and no more
        for thread in threads:
            thread.shutdown(wait=True, cancel_futures=True)
