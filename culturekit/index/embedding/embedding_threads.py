"""Pictures to vectors in one process: threads read and prepare the next pictures while others encode these."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from culturekit.index.embedding.embedding_encoders import at_once, encoder_of, encoding_pool
from culturekit.index.embedding.embedding_memory import SharedMemory, keep_heaps_small
from culturekit.index.embedding.embedding_shards import Arrays, PictureFile, PictureShard, encoded, prepared, save_shard
from culturekit.index.encoder import ImageEncoder, Prepared
from culturekit.storage.picture_reading import NoPicture

__all__ = ["embed_in_threads"]

Item = TypeVar("Item")
Result = TypeVar("Result")


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
    keep_heaps_small()
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
