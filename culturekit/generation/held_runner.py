"""Images of a model that one process holds: batches to its lanes, each picture kept as soon as it is made."""

import json
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl

from culturekit.core.atomic import explained_outside
from culturekit.core.choices import PictureFormat
from culturekit.core.defaults import REQUESTS_PER_SHARD
from culturekit.core.digests import digest_file
from culturekit.core.stage_folder import is_sealed, seal_pictures
from culturekit.core.tables import save_parquet
from culturekit.core.work import Work
from culturekit.generation.backend import HeldBackend, ImageReply, ImageRequest, Lane
from culturekit.generation.comparability import Slot
from culturekit.generation.picture_store import Maker, Shard, batches, image_row, part_schema

PILOT = 2

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Answered(Generic[Item]):
    """An item and what a lane said to it."""

    item: Item
    replies: Sequence[ImageReply]


class SlotJournal:
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
                row = row_in_line(line)
                if row is None:
                    break
                whole += len(line)
                if row["model_version"] == self.version and self.has_file(row):
                    self.rows[slot_in_row(row)] = row
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
        self.rows.update((slot_in_row(row), row) for row in rows)

    def settle(self) -> None:
        """Wait until the rows are on disk: from here on they outlive a power cut, too."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """Let go of it: the shard's part is written."""
        self.path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Pace:
    """How long an image takes when all lanes are at work, and how many are still to be made."""

    seconds_per_image: float
    left: int


@dataclass(slots=True)
class OpenShard:
    """A shard at work: its journal, and its batches that are not answered."""

    shard: Shard
    journal: SlotJournal
    batches: list[list[ImageRequest]] = field(default_factory=list)
    left: int = 0

    def missing(self, batch: Sequence[ImageRequest]) -> list[ImageRequest]:
        """List the requests of a batch whose image is not there."""
        return [request for request in batch if slot_of(request) not in self.journal.rows]


@dataclass(frozen=True, slots=True)
class Batch:
    """A call of a lane; it holds the same requests as in an undisturbed run, so that it gives the same pictures."""

    opened: OpenShard
    requests: Sequence[ImageRequest]


def slot_of(request: ImageRequest) -> Slot:
    """Say which image a request is for."""
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
    opened = [open_shard(shard, backend) for shard in shards]
    before = sum(len(one.journal.rows) for one in opened)
    yield before
    for one in opened:
        finish(one)
    todo = (Batch(one, batch) for one in opened for batch in one.batches)
    with (
        explained_outside(f"the backend {shards[0].maker.backend}"),
        backend.lanes(work.engine.workers) as lanes,
        ThreadPoolExecutor(max(work.engine.workers, backend.batch_size)) as writers,  # they wait for the disk
    ):
        for answered in in_lanes(lanes, todo, lambda batch: batch.requests):
            yield keep(answered, backend, writers)


def open_shard(shard: Shard, backend: HeldBackend) -> OpenShard:
    """Read what is there of a shard, and list the batches that are not whole."""
    journal = SlotJournal(shard.part.with_suffix(".jsonl"), shard.out, version=backend.version)
    opened = OpenShard(shard, journal)
    size = backend.batch_size
    runs = [list(shard.requests[start : start + size]) for start in range(0, len(shard.requests), size)]
    opened.batches = [run for run in runs if opened.missing(run)]
    opened.left = len(opened.batches)
    return opened


def keep(answered: Answered[Batch], backend: HeldBackend, writers: ThreadPoolExecutor) -> int:
    """Write the pictures of a batch that were not there, then their rows; with its last batch a shard is done."""
    opened = answered.item.opened
    pairs = [
        (request, reply)
        for request, reply in zip(answered.item.requests, answered.replies, strict=True)
        if slot_of(request) not in opened.journal.rows
    ]
    write = partial(row_of, opened.shard, backend.version)
    for row in writers.map(write, pairs):
        opened.journal.add([row])
    opened.journal.settle()
    opened.left -= 1
    finish(opened)
    return len(pairs)


def row_of(shard: Shard, version: str | None, pair: tuple[ImageRequest, ImageReply]) -> dict[str, Any]:
    """Write one picture and describe it."""
    return image_row(*pair, shard, version)


def finish(opened: OpenShard) -> None:
    """Write the part of a shard that has all its images, in the order in which they were asked for."""
    if opened.left:
        return
    rows = [opened.journal.rows[slot_of(request)] for request in opened.shard.requests]
    save_parquet(pl.DataFrame(rows, schema=part_schema()), opened.shard.part)
    seal_pictures(opened.shard.part, opened.shard.out, rows)
    opened.journal.remove()


def pilot_held(shards: Sequence[Shard], *, backend: HeldBackend, work: Work) -> Pace | None:
    """Make two images of the run, each with all of its batch, so that it comes out as in the run; time the second.

    Gives None where all images are there.
    """
    opened = [open_shard(shard, backend) for shard in shards if not is_sealed(shard.part)]
    missing = [(one, batch, request) for one in opened for batch in one.batches for request in one.missing(batch)]
    if not missing:
        return None
    with explained_outside(f"the backend {shards[0].maker.backend}"), backend.lanes(work.engine.workers) as lanes:
        for one, batch, request in missing[:PILOT]:
            started = time.perf_counter()
            reply = lanes[0].generate(batch)[batch.index(request)]
            one.journal.add([image_row(request, reply, one.shard, backend.version)])
            seconds = time.perf_counter() - started
        return Pace(seconds / (backend.batch_size * len(lanes)), len(missing) - len(missing[:PILOT]))


def slot_in_row(row: Mapping[str, Any]) -> Slot:
    """Say which image a row is of."""
    return row["prompt_id"], row["repeat"], row["slot"]


def row_in_line(line: bytes) -> dict[str, Any] | None:
    """Read a line; None where it was cut."""
    try:
        row = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


class _Rounds(Generic[Item]):
    """The items that are handed out, and the answers that wait: at most one for each lane, so few are in flight."""

    def __init__(
        self, lanes: Sequence[Lane], items: Iterator[Item], requests: Callable[[Item], Sequence[ImageRequest]]
    ) -> None:
        """Take the lanes and the work."""
        self.items, self.requests = items, requests
        self.taking = threading.Lock()
        self.ended = threading.Event()
        self.ready: queue.Queue[Answered[Item] | BaseException | None] = queue.Queue(len(lanes))
        self.threads = [threading.Thread(target=self.work, args=(lane,), daemon=True) for lane in lanes]

    def next_item(self) -> Item | None:
        """Hand out the next item, unless nobody waits any more."""
        with self.taking:
            return None if self.ended.is_set() else next(self.items, None)

    def work(self, lane: Lane) -> None:
        """Let a lane answer items until none is left."""
        try:
            while (item := self.next_item()) is not None:
                self.ready.put(Answered(item, lane.generate(self.requests(item))))
        except BaseException as error:
            self.ready.put(error)
        else:
            self.ready.put(None)

    def answers(self) -> Iterator[Answered[Item]]:
        """Give answers until every lane has none left; an error of a lane is raised here."""
        going = len(self.threads)
        while going:
            answer = self.ready.get()
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                going -= 1
            else:
                yield answer

    def stop(self) -> None:
        """Let every lane finish what it is at, and no more."""
        self.ended.set()
        for thread in self.threads:
            while thread.is_alive():
                try:
                    self.ready.get(timeout=0.05)
                except queue.Empty:
                    continue


def in_lanes(
    lanes: Sequence[Lane], items: Iterator[Item], requests: Callable[[Item], Sequence[ImageRequest]]
) -> Iterator[Answered[Item]]:
    """Let lanes answer items, each one after another, while the caller keeps what was answered before.

    Args:
        lanes: each has a thread of its own.
        items: handed out in their order.
        requests: what a lane is asked for an item.
    """
    rounds = _Rounds(lanes, items, requests)
    for thread in rounds.threads:
        thread.start()
    try:
        yield from rounds.answers()
    finally:
        rounds.stop()
