"""A table of images to vectors: every picture encoded once, in shards that outlive a kill."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.heaps import settle_heaps
from culturekit.index.embedding.embedding_encoders import at_once, encoder_of, encoding_pool, weightless
from culturekit.index.embedding.embedding_memory import SharedMemory
from culturekit.index.embedding.embedding_shards import (
    Arrays,
    PictureFile,
    PictureShard,
    embed_shard,
    encoded,
    plan_shards,
    prepared,
    save_shard,
)
from culturekit.index.encoder import ImageEncoder, Prepared, Vectors
from culturekit.records.work import Engine, Progress
from culturekit.storage.arrays import save_rows
from culturekit.storage.digests import digest
from culturekit.storage.picture_reading import NoPicture

__all__ = ["Embedded", "embed"]

ROWS_AT_ONCE = 16_384
UNREADABLE = {"image_id": pl.String(), "reason": pl.String(), "detail": pl.String()}

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Embedded:
    """What came of a table of images.

    Attributes:
        vectors: float32 (n, dim), one for each row of `kept`; memory-mapped from the scratch folder.
        kept: the rows of the table whose picture could be read, in their order.
        unreadable: image_id, reason and detail of the other rows.
        probabilities: float32 (n, classes) where the encoder classifies pictures, too.
    """

    vectors: Vectors
    kept: pl.DataFrame
    unreadable: pl.DataFrame
    probabilities: NDArray[np.float32] | None = None


def embed(
    images: pl.DataFrame, root: Path, encoder: str, scratch: Path, *, engine: Engine, progress: Progress
) -> Embedded:
    """Embed the pictures of a table in its row order; shards that a cut run finished are not embedded again.

    Args:
        images: with image_id, path and sha256; rows with the same hash share one vector.
        root: the folder that paths are relative to.
        encoder: SPEC of an encoder of pictures.
        scratch: where parts are kept until the stage is done.
        engine: an encoder without weights works in its processes; one with weights is loaded once, in this process,
            with as many threads as the engine has workers.
        progress: hears of every batch.

    Raises:
        IntegrityError: a file is missing, outside `root`, or not the one that its row describes.
    """
    made = encoder_of(encoder)
    pictures = distinct(images)
    exactly = [made.identity.as_options(), made.batch_size, [[one.sha256, *one.paths] for one in pictures]]
    folder = scratch / f"pictures-{digest(exactly)[:16]}"
    folder.mkdir(exist_ok=True)
    shards = plan_shards(pictures, root, encoder, folder, size=at_once(made))
    todo = [shard for shard in shards if not shard.done]
    before = len(pictures) - sum(len(shard.pictures) for shard in todo)
    progress.begin(len(pictures) - before, "pictures")
    if before:
        progress.tell(f"{before:,} were done before")
    for count in engine.map(embed_shard, todo) if weightless(made) else embed_in_threads(todo, workers=engine.workers):
        progress.advance(count)
    return gathered(images, pictures, shards, folder, dim=made.identity.dim)


def distinct(images: pl.DataFrame) -> list[PictureFile]:
    """List the different pictures of a table, in the order in which they first appear."""
    paths = images.group_by("sha256", maintain_order=True).agg(pl.col("path").unique(maintain_order=True))
    return [PictureFile(sha256, tuple(names)) for sha256, names in paths.select("sha256", "path").iter_rows()]


def gathered(
    images: pl.DataFrame, pictures: Sequence[PictureFile], shards: Sequence[PictureShard], folder: Path, *, dim: int
) -> Embedded:
    """Put the parts of all shards together, one row for each row of the table that has a vector."""
    failures = {picture.sha256: found for picture, found in failed(shards)}
    kept = images.filter(~pl.col("sha256").is_in(list(failures)))
    readable = [picture.sha256 for picture in pictures if picture.sha256 not in failures]
    place = {sha256: number for number, sha256 in enumerate(readable)}
    order = np.array([place[sha256] for sha256 in kept["sha256"]], np.int64)
    arrays = {
        name: by_row(shards, folder, name, order, count=len(readable), width=width)
        for name, width in widths(shards, dim).items()
    }
    rows = images.filter(pl.col("sha256").is_in(list(failures))).select("image_id", "sha256").iter_rows()
    unreadable = pl.DataFrame([(image, *failures[sha256]) for image, sha256 in rows], UNREADABLE, orient="row")
    return Embedded(arrays["vectors"], kept, unreadable, arrays.get("probabilities"))


def failed(shards: Sequence[PictureShard]) -> Iterator[tuple[PictureFile, tuple[str, str]]]:
    """List the pictures that could not be read, with reason and detail."""
    for shard in shards:
        path = shard.part("unreadable.parquet")
        if path.exists():
            for place, reason, detail in pl.read_parquet(path).iter_rows():
                yield shard.pictures[place], (reason, detail)


def widths(shards: Sequence[PictureShard], dim: int) -> Mapping[str, int]:
    """Say which arrays there are, and how long a row of each is."""
    first = next((path for shard in shards if (path := shard.part("probabilities.npy")).exists()), None)
    return {"vectors": dim} | ({} if first is None else {"probabilities": opened(first).shape[1]})


def opened(path: Path) -> NDArray[Any]:
    """Open an array without reading it."""
    array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def by_row(
    shards: Sequence[PictureShard], folder: Path, name: str, order: NDArray[np.int64], *, count: int, width: int
) -> NDArray[np.float32]:
    """Write the rows of all shards as one array, then one row for each row of the table, and open it."""
    whole = folder / f"{name}.npy"
    parts = (path for shard in shards if (path := shard.part(f"{name}.npy")).exists())
    save_rows(whole, (opened(path) for path in parts if opened(path).size), shape=(count, width), dtype=np.float32)
    if np.array_equal(order, np.arange(count)):
        return opened(whole)
    each, rows = folder / f"{name}-by-row.npy", opened(whole)
    chunks = (rows[order[start : start + ROWS_AT_ONCE]] for start in range(0, len(order), ROWS_AT_ONCE))
    save_rows(each, chunks, shape=(len(order), width), dtype=np.float32)
    return opened(each)


@dataclass(slots=True)
class Batch:
    """Pictures of one shard that are handed over at once; `seen` counts those that could not be read, too."""

    shard: PictureShard
    ready: list[Prepared] = field(default_factory=list)
    unreadable: list[tuple[int, NoPicture]] = field(default_factory=list)
    seen: int = 0
    last: bool = False


def embed_in_threads(shards: Sequence[PictureShard], *, workers: int) -> Iterator[int]:
    """Embed shards of one encoder, and say how many pictures each batch settled.

    A shard's batches hold the same pictures however many threads there are; it is written when its last one is done.
    """
    if not shards:
        return
    settle_heaps()
    encoder = encoder_of(shards[0].encoder)
    reading = ThreadPoolExecutor(workers, "reading")
    try:
        with encoding_pool(workers) as (encoding, threads):
            waiting: deque[tuple[Batch, Future[Arrays]]] = deque()
            gathered: list[tuple[Batch, Arrays]] = []
            for batch in batches(shards, encoder, reading, workers=workers):
                waiting.append((batch, encoding.submit(encoded, encoder, batch.ready)))
                while len(waiting) > threads or (batch.shard is shards[-1] and batch.last and waiting):
                    yield settle(waiting, gathered)
    finally:
        reading.shutdown(wait=True, cancel_futures=True)


def settle(waiting: deque[tuple[Batch, "Future[Arrays]"]], gathered: list[tuple[Batch, Arrays]]) -> int:
    """Wait for the batch that was sent off first, and write its shard if it was the last one of it."""
    batch, future = waiting.popleft()
    gathered.append((batch, future.result()))
    batch.ready.clear()
    if batch.last:
        unreadable = [found for done, _ in gathered for found in done.unreadable]
        save_shard(batch.shard, [arrays for _, arrays in gathered], unreadable)
        gathered.clear()
    return batch.seen


def batches(
    shards: Sequence[PictureShard], encoder: ImageEncoder, pool: ThreadPoolExecutor, *, workers: int
) -> Iterator[Batch]:
    """Read pictures ahead, and give them in batches; every shard ends with a batch of its own, which may be empty."""
    gate = SharedMemory()
    pictures = ((shard, picture) for shard in shards for picture in shard.pictures)

    def read(item: tuple[PictureShard, PictureFile]) -> Prepared | NoPicture:
        return prepared(item[1], item[0].root, encoder, gate)

    full = at_once(encoder)
    found = ahead(pool, read, pictures, count=full + 2 * workers)
    for shard in shards:
        batch = Batch(shard)
        for place in range(len(shard.pictures)):
            one = next(found)
            batch.seen += 1
            if isinstance(one, NoPicture):
                batch.unreadable.append((place, one))
            else:
                batch.ready.append(one)
            if len(batch.ready) == full and place + 1 < len(shard.pictures):
                yield batch
                batch = Batch(shard)
        batch.last = True
        yield batch


def ahead(
    pool: ThreadPoolExecutor, function: Callable[[Item], Result], items: Iterable[Item], *, count: int
) -> Iterator[Result]:
    """Give results in the order of the items, with up to `count` of them under way or waiting."""
    coming: deque[Future[Result]] = deque()
    for item in items:
        coming.append(pool.submit(function, item))
        if len(coming) >= count:
            yield coming.popleft().result()
    while coming:
        yield coming.popleft().result()
