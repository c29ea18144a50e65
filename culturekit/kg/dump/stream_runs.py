"""One reader, many decoders: chunks that can only be read one after the other, grouped while others are decoded."""

import queue
import threading
from collections.abc import Iterable, Iterator

from culturekit.kg.dump.members import Chunk

__all__ = ["chunk_groups"]

RUN_BYTES = 8_000_000
"""Plain bytes that one worker takes at a time."""


def chunk_groups(chunks: Iterable[Chunk], *, at_once: int) -> Iterator[list[tuple[Chunk, ...]]]:
    """Give lists of at most `at_once` runs of chunks, while a thread reads the next list.

    What the reader raises is raised here, after what it had read before.
    """
    waiting: queue.Queue[list[tuple[Chunk, ...]] | BaseException | None] = queue.Queue(maxsize=1)
    stopped = threading.Event()

    def put(what: list[tuple[Chunk, ...]] | BaseException | None) -> None:
        while not stopped.is_set():
            try:
                waiting.put(what, timeout=0.1)
            except queue.Full:
                continue
            return

    def read() -> None:
        try:
            for group in grouped(chunks, at_once):
                put(group)
                if stopped.is_set():
                    return
        except BaseException as error:
            put(error)
        else:
            put(None)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (group := waiting.get()) is not None:
            if isinstance(group, BaseException):
                raise group
            yield group
    finally:
        stopped.set()


def grouped(chunks: Iterable[Chunk], at_once: int) -> Iterator[list[tuple[Chunk, ...]]]:
    """Group chunks into runs, and runs into lists."""
    runs: list[tuple[Chunk, ...]] = []
    run: list[Chunk] = []
    size = 0
    for chunk in chunks:
        run.append(chunk)
        size += len(chunk.content)
        if size >= RUN_BYTES:
            runs.append(tuple(run))
            run, size = [], 0
        if len(runs) == at_once:
            yield runs
            runs = []
    if run:
        runs.append(tuple(run))
    if runs:
        yield runs
