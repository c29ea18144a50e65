"""The one thread that writes the journal: whoever waits together is committed together."""

import asyncio
import queue
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from culturekit.llm.journal_entry import Entry, Reading
from culturekit.llm.journal_file import explain
from culturekit.llm.request_texts import RequestTexts

__all__ = ["JournalWriter"]

PATIENCE_OF_NOTES = 1.0
"""Seconds after which notes are written although nothing else is."""

NOTES_AT_ONCE = 512
PICO = 10**12

INSERT_REPLY = (
    "INSERT INTO replies (request, run, attempt, at, mode, status, kind, checksum, raw) VALUES (?,?,?,?,?,?,?,?,?)"
)
INSERT_READING = "INSERT OR REPLACE INTO readings VALUES (?,?,?,?,?,?,?,?)"
INSERT_FACT = "INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class Task:
    """Something to commit, and who is told when it is on disk, or why it is not."""

    entries: Sequence[Entry]
    facts: Sequence[tuple[str, bytes]]
    done: Callable[[list[int]], None]
    failed: Callable[[BaseException], None]
    loop: asyncio.AbstractEventLoop | None = None


class JournalWriter:
    """Takes tasks from any thread and commits all that wait as one group."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        """Start the thread; from now on the connection is its own."""
        self.connection = connection
        self.path = path
        self.texts = RequestTexts(connection)
        self.runs: dict[str, int] = {}
        self.notes: deque[tuple[int, Reading]] = deque()
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.work, name="journal", daemon=True)
        self.thread.start()

    async def append(self, entry: Entry) -> int:
        """Wait until an entry is on disk, while other tasks go on. It is written also when the wait is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[int]] = loop.create_future()

        def done(numbers: list[int]) -> None:
            if not future.done():
                future.set_result(numbers)

        def failed(error: BaseException) -> None:
            if not future.done():
                future.set_exception(error)

        self.tasks.put(Task((entry,), (), done, failed, loop))
        return (await future)[0]

    def commit(self, entries: Sequence[Entry], facts: Sequence[tuple[str, bytes]] = ()) -> list[int]:
        """Block until all of these are on disk, in one commit."""
        future: Future[list[int]] = Future()
        self.tasks.put(Task(entries, facts, future.set_result, future.set_exception))
        return future.result()

    def note(self, number: int, reading: Reading) -> None:
        """Remember a reading until the next commit."""
        self.notes.append((number, reading))
        if len(self.notes) % NOTES_AT_ONCE == 0:
            self.tasks.put(Task((), (), lambda _: None, lambda _: None))

    def stop(self) -> None:
        """Write what waits, and end the thread."""
        self.tasks.put(None)
        self.thread.join()

    def work(self) -> None:
        """Commit group after group until told to stop."""
        going_on = True
        while going_on:
            try:
                waiting = [self.tasks.get(timeout=PATIENCE_OF_NOTES)]
            except queue.Empty:
                waiting = []
            while not self.tasks.empty():
                waiting.append(self.tasks.get())
            tasks = [task for task in waiting if task is not None]
            going_on = len(tasks) == len(waiting)
            if tasks or self.notes:
                self.commit_group(tasks)

    def commit_group(self, tasks: Sequence[Task]) -> None:
        """Write a group in one transaction and tell everybody how it went."""
        notes = [self.notes.popleft() for _ in range(len(self.notes))]
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            numbers = [[self.insert(entry) for entry in task.entries] for task in tasks]
            self.connection.executemany(INSERT_FACT, [fact for task in tasks for fact in task.facts])
            self.connection.executemany(INSERT_READING, [reading_row(*note) for note in notes])
            self.connection.execute("COMMIT")
        except Exception as error:
            self.notes.extendleft(reversed(notes))
            self.undo()
            reason = explain(error, self.path) if isinstance(error, sqlite3.Error) else error
            tell((task.loop, partial(task.failed, reason)) for task in tasks)
            return
        tell((task.loop, partial(task.done, given)) for task, given in zip(tasks, numbers, strict=True))

    def insert(self, entry: Entry) -> int:
        """Write one entry."""
        added = self.connection.execute(
            INSERT_REPLY,
            (
                self.texts.number_of(entry.key, entry.request),
                self.run_number(entry.run),
                entry.attempt,
                entry.at or time.time(),
                entry.mode,
                entry.status,
                entry.kind,
                zlib.crc32(entry.raw),
                entry.raw,
            ),
        )
        return int(added.lastrowid or 0)

    def run_number(self, tag: str) -> int:
        """Give the number of a run, which is written down when it is new."""
        if tag not in self.runs:
            self.connection.execute("INSERT OR IGNORE INTO runs (tag) VALUES (?)", (tag,))
            (self.runs[tag],) = self.connection.execute("SELECT number FROM runs WHERE tag = ?", (tag,)).fetchone()
        return self.runs[tag]

    def undo(self) -> None:
        """Take back a transaction that failed, and what was remembered of it."""
        try:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            self.runs.clear()
            self.texts.learn()
        except sqlite3.Error:
            self.texts.templates.clear()


def reading_row(number: int, reading: Reading) -> tuple[object, ...]:
    """Write a reading as a row; money in whole millionths of a millionth of a dollar, so that sums are exact."""
    usage = reading.usage
    return (
        number,
        reading.outcome,
        usage.input_tokens,
        usage.output_tokens,
        usage.thinking_tokens,
        usage.cached_tokens,
        usage.counted,
        None if reading.usd is None else round(reading.usd * PICO),
    )


def tell(calls: Iterable[tuple[asyncio.AbstractEventLoop | None, Callable[[], None]]]) -> None:
    """Call everybody back, each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}
    for loop, call in calls:
        if loop is None:
            call()
        else:
            by_loop.setdefault(loop, []).append(call)
    for waiting_loop, waiting in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            waiting_loop.call_soon_threadsafe(call_all, waiting)


def call_all(calls: Sequence[Callable[[], None]]) -> None:
    """Make the calls."""
    for call in calls:
        call()
