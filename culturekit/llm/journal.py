"""The journal: every reply as it came, on disk before anybody looks into it, so that none is bought twice.

It is one SQLite file in a folder of its own, `OUT/journal`. One process writes; others may read, also meanwhile.
"""

import asyncio
import logging
import queue
import secrets
import sqlite3
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar
from zlib import crc32

from culturekit.core.atomic import sync_folder, write_atomically
from culturekit.core.choices import ANSWERED
from culturekit.core.errors import CultureKitError
from culturekit.core.stage_folder import hold
from culturekit.core.work import Work
from culturekit.llm.journal_file import (
    FILE,
    SOUND,
    Entry,
    Reading,
    check_types,
    damaged,
    errors_explained,
    explain,
    open_for_reading,
    open_for_writing,
)
from culturekit.llm.usage import picodollars

_SIZES = (256, 64, 16, 4, 1)

Item = TypeVar("Item")


def _pieces(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Cut a sequence into as few parts of the fixed sizes as will do."""
    start = 0
    for size in _SIZES:
        while start + size <= len(items):
            yield items[start : start + size]
            start += size


def places(count: int) -> str:
    """Write the place holders of a list of values."""
    return f"({','.join('?' * count)})"


def _insert_rows(connection: sqlite3.Connection, insert: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows of equal width; `insert` is the statement up to VALUES."""
    for piece in _pieces(rows):
        values = ",".join([places(len(piece[0]))] * len(piece))
        connection.execute(f"{insert} VALUES {values}", [value for row in piece for value in row])


_WORTH_SHARING = 64  # bytes that a new template has to save beyond twice what an old one saves
_STRANGERS = 8  # bodies that fitted no template well, kept to find what the next one shares with them
_MOST_TEMPLATES = 200


@dataclass(frozen=True, slots=True)
class _Template:
    """The two ends of a body."""

    number: int
    head: bytes
    tail: bytes

    @property
    def saved(self) -> int:
        return len(self.head) + len(self.tail)

    def fits(self, body: bytes) -> bool:
        return len(body) >= self.saved and body.startswith(self.head) and body.endswith(self.tail)


class RequestTexts:
    """Writes bodies as the part in which they differ from others, inside whatever transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Know what is in the file."""
        self.connection = connection
        self.strangers: deque[bytes] = deque(maxlen=_STRANGERS)
        self.learn()

    def learn(self) -> None:
        """Read what is in the file; to be done again after a transaction was undone."""
        self.templates = sorted(read_templates(self.connection).values(), key=lambda template: -template.number)
        (self.count,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()

    def numbers_of(self, requests: Sequence[tuple[bytes, bytes]]) -> dict[bytes, int]:
        """Return the number of each key's request; those that are new are written down."""
        bodies = dict(requests)
        numbers: dict[bytes, int] = {}
        for piece in _pieces(list(bodies)):
            numbers.update(
                self.connection.execute(f"SELECT key, number FROM requests WHERE key IN {places(len(piece))}", piece)
            )
        rows = []
        for key, body in bodies.items():
            if key not in numbers:
                self.count += 1
                numbers[key] = self.count
                template = self.template_for(body)
                rows.append(
                    (self.count, key, template.number, body[len(template.head) : len(body) - len(template.tail)])
                )
        _insert_rows(self.connection, "INSERT INTO requests (number, key, template, middle)", rows)
        return numbers

    def template_for(self, body: bytes) -> _Template:
        """Choose the template that saves most; a new one where this body and an earlier one share far more."""
        fitting = [template for template in self.templates if template.fits(body)]
        best = max(fitting, key=lambda template: template.saved, default=None)
        if best is not None and best.saved * 2 > len(body):
            return best
        head, tail = max((shared_ends(one, body) for one in self.strangers), key=_joint, default=(b"", b""))
        self.strangers.append(body)
        enough = 0 if best is None else best.saved * 2 + _WORTH_SHARING
        if best is not None and (_joint((head, tail)) < enough or len(self.templates) >= _MOST_TEMPLATES):
            return best
        return self.add(head, tail)

    def add(self, head: bytes, tail: bytes) -> _Template:
        """Write a template down."""
        added = self.connection.execute("INSERT INTO templates (head, tail) VALUES (?, ?)", (head, tail))
        template = _Template(int(added.lastrowid or 0), head, tail)
        self.templates.insert(0, template)
        return template


def read_templates(connection: sqlite3.Connection) -> dict[int, _Template]:
    """Read all templates by number."""
    rows = connection.execute("SELECT number, head, tail FROM templates")
    return {number: _Template(number, head, tail) for number, head, tail in rows}


def _joint(ends: tuple[bytes, bytes]) -> int:
    return len(ends[0]) + len(ends[1])


def shared_ends(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    """Return the longest common beginning and, in what is left, the longest common end of two texts."""
    head = shared_length(one, other)
    rest = min(len(one), len(other)) - head
    tail = shared_length(one[len(one) - rest :][::-1], other[len(other) - rest :][::-1])
    return other[:head], other[len(other) - tail :]


def shared_length(one: bytes, other: bytes) -> int:
    """Count how many first bytes two texts share, by halving."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


logger = logging.getLogger(__name__)

_PATIENCE_OF_NOTES = 1.0  # seconds after which notes are written although nothing else is
_NOTES_AT_ONCE = 1024

# Seconds from one commit to the next, at least: replies that come meanwhile share it, and the wire keeps its CPU.
_GATHERING = 0.01
LARGEST = 2**63 - 1  # the largest number that SQLite holds
_INSERT_REPLIES = "INSERT INTO replies (number, request, run, attempt, at, mode, status, kind, checksum, raw)"
_INSERT_READINGS = "INSERT OR REPLACE INTO readings"
_INSERT_FACTS = "INSERT OR REPLACE INTO facts (name, value)"


Fact: TypeAlias = tuple[str, bytes | None]  # a small thing to remember under a name; None forgets it


@dataclass(frozen=True, slots=True)
class Task:
    """Something to commit, and the future of whoever waits until it is on disk; `loop` where that is asyncio's."""

    entries: Sequence[Entry]
    facts: Sequence[Fact] = ()
    future: Any = None
    loop: asyncio.AbstractEventLoop | None = None


class _JournalWriter:
    """Takes tasks from any thread and commits all that wait as one group."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        self.texts = RequestTexts(connection)
        self.learn()
        self.notes: deque[tuple[object, ...]] = deque()
        self.tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.open = threading.RLock()  # a signal may come while this very thread holds it
        self.stopped = False
        self.failure: Exception | None = None  # why what waits was not written, the last time
        self.broken = False
        self.group: list[Task | None] = []
        self.thread = threading.Thread(target=self.work, name="journal", daemon=True)
        self.thread.start()

    async def append(self, entries: Sequence[Entry], facts: Sequence[Fact] = ()) -> list[int]:
        """Wait until these are on disk, while other tasks go on. They are written also when the wait is cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[int]] = loop.create_future()
        self.take(Task(entries, facts, future, loop))
        return await future

    def soon(self, facts: Sequence[Fact]) -> None:
        """Write facts with the next commit, and wait for nothing."""
        self.take(Task((), facts))

    def commit(self, entries: Sequence[Entry], facts: Sequence[Fact] = ()) -> list[int]:
        """Block until all of these are on disk, in one commit."""
        future: Future[list[int]] = Future()
        self.take(Task(entries, facts, future))
        return future.result()

    def note(self, number: int, reading: Reading) -> None:
        """Remember a reading until the next commit; one that no journal can hold is left out, and its reply unread."""
        usage = reading.usage
        counts = (usage.input_tokens, usage.output_tokens, usage.thinking_tokens, usage.cached_tokens)
        paid = None if reading.usd is None else picodollars(reading.usd)  # whole ones, so that sums are exact
        row = (number, reading.outcome, *counts, usage.counted, paid)
        if any(isinstance(value, int) and abs(value) > LARGEST for value in row):
            logger.warning("reply %d has counts beyond all bounds, and is not noted as read", number)
            return
        self.notes.append(row)
        if len(self.notes) % _NOTES_AT_ONCE == 0:
            self.tasks.put(Task(()))

    def take(self, task: Task) -> None:
        """Take a task, unless nobody would ever commit it."""
        with self.open:
            if self.stopped:
                raise CultureKitError(
                    "the journal is closed", where=str(self.path), hint="Open it again to write to it."
                )
            self.tasks.put(task)

    def stop(self) -> None:
        """Write what waits, and end the thread."""
        with self.open:
            self.stopped = True
            self.tasks.put(None)
        self.thread.join()
        if self.failure is not None and (self.notes or self.broken):
            raise self.failure

    def work(self) -> None:
        """Commit until told to stop; if that ever fails, everybody who waits is told, now and later."""
        try:
            self.commit_until_stopped()
        except BaseException as error:
            self.failure = error if isinstance(error, Exception) else CultureKitError(repr(error))
            with self.open:
                self.stopped = self.broken = True
            _tell([(task, self.failure) for task in [*self.group, *self.waiting()] if task is not None])

    def waiting(self) -> list[Task | None]:
        return [self.tasks.get() for _ in range(self.tasks.qsize())]

    def commit_until_stopped(self) -> None:
        """Commit group after group until told to stop."""
        going_on = True
        self.committed = 0.0
        while going_on:
            self.group = []
            with suppress(queue.Empty):
                self.group.append(self.tasks.get(timeout=_PATIENCE_OF_NOTES))
            time.sleep(max(self.committed + _GATHERING - time.monotonic(), 0.0))
            self.group += self.waiting()
            tasks = [task for task in self.group if task is not None]
            going_on = len(tasks) == len(self.group)
            if tasks or self.notes:
                self.commit_group(tasks)
                self.committed = time.monotonic()

    def commit_group(self, tasks: Sequence[Task]) -> None:
        """Write a group in one transaction and tell everybody how it went."""
        notes = [self.notes.popleft() for _ in range(len(self.notes))]
        answers: list[tuple[Task, Answer]]
        try:
            self.begin()
            numbers = iter(self.write([entry for task in tasks for entry in task.entries]))
            self.write_facts(dict(fact for task in tasks for fact in task.facts))
            _insert_rows(self.connection, _INSERT_READINGS, notes)
            self.connection.execute("COMMIT")
        except Exception as error:
            self.notes.extendleft(reversed(notes))
            self.sure = False
            with suppress(Exception):  # a file that cannot even be read will fail the next one too
                self.roll_back()
            self.failure = explain(error, self.path) if isinstance(error, sqlite3.Error) else error
            answers = [(task, self.failure) for task in tasks]
        else:
            self.failure = None
            answers = [(task, [next(numbers) for _ in task.entries]) for task in tasks]
        _tell(answers)

    def write(self, entries: Sequence[Entry]) -> range:
        """Write entries, and give their numbers."""
        requests = self.texts.numbers_of([(entry.key, entry.request) for entry in entries])
        numbers = range(self.count + 1, self.count + 1 + len(entries))
        self.count += len(entries)
        now = time.time()
        rows = [
            (
                number,
                requests[entry.key],
                self.runs.get((entry.run, entry.model)) or self.add_run(entry.run, entry.model),
                entry.attempt,
                entry.at or now,
                entry.mode,
                entry.status,
                entry.kind,
                zlib.crc32(entry.raw),
                entry.raw,
            )
            for number, entry in zip(numbers, entries, strict=True)
        ]
        _insert_rows(self.connection, _INSERT_REPLIES, rows)
        return numbers

    def write_facts(self, facts: Mapping[str, bytes | None]) -> None:
        """Remember and forget."""
        _insert_rows(self.connection, _INSERT_FACTS, [fact for fact in facts.items() if fact[1] is not None])
        forgotten = [(name,) for name, value in facts.items() if value is None]
        if forgotten:
            self.connection.executemany("DELETE FROM facts WHERE name = ?", forgotten)

    def add_run(self, tag: str, model: str) -> int:
        """Write down a run, or a model of it, that is new."""
        added = self.connection.execute("INSERT INTO runs (tag, model) VALUES (?, ?)", (tag, model))
        self.runs[tag, model] = int(added.lastrowid or 0)
        return self.runs[tag, model]

    def learn(self) -> None:
        """Read what is in the file, so that rows can be numbered here."""
        self.texts.learn()
        rows = self.connection.execute("SELECT tag, model, number FROM runs")
        self.runs: dict[tuple[str, str], int] = {(tag, model): number for tag, model, number in rows}
        (self.count,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM replies").fetchone()
        self.sure = True

    def begin(self) -> None:
        """Begin a transaction; after one that failed, with what is in the file, not with what was to be."""
        if not self.sure:
            self.roll_back()
            self.learn()
        self.connection.execute("BEGIN IMMEDIATE")

    def roll_back(self) -> None:
        """Take back a transaction that failed."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")


Answer = list[int] | Exception


def _tell(answers: Sequence[tuple[Task, Answer]]) -> None:
    """Answer everybody who waits, with one call into each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Any, Answer]]] = {}
    for task, answer in answers:
        if task.loop is not None:
            by_loop.setdefault(task.loop, []).append((task.future, answer))
        elif task.future is not None:
            _settle([(task.future, answer)])
    for loop, futures in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(_settle, futures)


def _settle(futures: Sequence[tuple[Any, Answer]]) -> None:
    """Return each future its answer, unless it was cancelled."""
    for future, answer in futures:
        if future.done():
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)


_TAG = "run_tag"
_LAST = "SELECT tag, mode FROM runs JOIN replies ON replies.run = runs.number ORDER BY replies.number DESC LIMIT 1"


def run_tag(work: Work) -> str:
    """Return the tag of this run: random, in its scratch folder, and so there as long as the run lives."""
    try:
        return (work.scratch / _TAG).read_text(encoding="ascii")
    except FileNotFoundError:
        tag = secrets.token_hex(8)
        go_on_as(tag, work.scratch)
        return tag


def last_run(journal: Path) -> tuple[str, str]:
    """Return the tag and the mode of the run that a journal heard last; empty where it heard none."""
    if not (journal / FILE).is_file():
        return "", ""
    with closing(open_for_reading(journal / FILE)) as connection:
        row = connection.execute(_LAST).fetchone()
    return ("", "") if row is None else (str(row[0]), str(row[1]))


def go_on_as(tag: str, scratch: Path) -> None:
    """Return a run the tag of another, whose failures then count as its own: nothing that failed is asked again."""
    if tag:
        write_atomically(scratch / _TAG, tag.encode("ascii"))
        sync_folder(scratch)


_FOUND = f"""
SELECT key, replies.run, attempt, mode, status, kind, raw, at, replies.number, outcome, checksum
FROM requests
CROSS JOIN replies ON replies.request = requests.number
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
WHERE key IN (%s)
  AND (run IN (SELECT number FROM runs WHERE tag = ?)
       OR (kind = 'reply' AND (outcome IS NULL OR outcome IN ({", ".join(repr(name) for name in ANSWERED)}))))
"""
# What the columns of a found reply hold; SQLite keeps whatever is put into them.
_ENTRY = (bytes, int, int, str, int, str, bytes, float, int, (str, type(None)), int)


class Journal:
    """The replies of a folder; a context manager that holds the folder for this process."""

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is touched yet."""
        self.folder = folder
        self.path = folder / FILE
        self.stack = ExitStack()
        self.reading = threading.Lock()

    def __enter__(self) -> Self:
        """Open the journal, or make a new one.

        Raises:
            FolderInUse: another process writes to it.
            IntegrityError: the file is damaged, or no journal.
        """
        with ExitStack() as stack:
            self.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(hold(self.folder / ".lock"))
            connection = open_for_writing(self.path)
            stack.callback(_close_to_one_file, connection, self.path)
            sync_folder(self.folder)
            self.reader = open_for_reading(self.path)
            stack.callback(self.reader.close)
            with errors_explained(self.path):
                self.learn()
                self.writer = _JournalWriter(connection, self.path)
            stack.callback(self.writer.stop)
            self.stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what waits, and leave one file; where something is wrong already, that counts."""
        try:
            self.close()
        except Exception:
            if error is None:
                raise

    def close(self) -> None:
        """Write what waits, and leave one file."""
        self.stack.close()

    def found(self, keys: Sequence[bytes], *, run: str) -> dict[bytes, list[Entry]]:
        """Look up many keys at once; a key nobody asked about is left out.

        Entries come in order of arrival: all of this run, failures and refusals too; of other runs the replies noted as
        answers, and those that a kill left unread: what these say decides whether they count. An entry without
        `outcome` has still to be read, and noted. None of them has its `request`: whoever has the key knows it.
        """
        found: dict[bytes, list[Entry]] = {}
        with self.reading, errors_explained(self.path):
            for piece in _pieces(keys):
                asked = _FOUND % ",".join("?" * len(piece))
                with closing(self.reader.execute(asked, (*piece, run))) as rows:  # left open, closing waits for it
                    for row in rows:
                        found.setdefault(row[0], []).append(self.entry_of(row))
        for entries in found.values():
            if len(entries) > 1:
                entries.sort(key=lambda entry: entry.number)
        return found

    def entry_of(self, row: tuple[Any, ...]) -> Entry:
        """Make an entry of a row of the query, and make sure that its bytes are those that came."""
        key, run, attempt, mode, status, kind, raw, at, number, outcome, checksum = row
        check_types(self.path, f"reply {number}", row, _ENTRY)
        if crc32(raw) != checksum:
            raise damaged(self.path, f"reply {number} is not what was written")
        if run not in self.runs:
            self.learn()
        if run not in self.runs:
            raise damaged(self.path, f"reply {number} is of a run that is not there")
        tag, model = self.runs[run]
        return Entry(key, tag, attempt, mode, status, kind, raw, b"", at, model, number, outcome or "")

    def learn(self) -> None:
        """Read the small table that replies point to."""
        rows = self.reader.execute("SELECT number, tag, model FROM runs")
        self.runs: dict[int, tuple[str, str]] = {number: (tag, model) for number, tag, model in rows}

    async def append(self, entry: Entry, facts: Sequence[Fact] = ()) -> int:
        """Write an entry, and facts in the same commit; they are on disk when this returns.

        What waits together shares one commit.

        Raises:
            OSError: the disk is full or failing.
        """
        return (await self.writer.append((entry,), facts))[0]

    async def write(self, facts: Sequence[Fact]) -> None:
        """Keep or forget facts; that is on disk when this returns, as above."""
        await self.writer.append((), facts)

    def write_soon(self, facts: Sequence[Fact]) -> None:
        """Keep or forget facts with the next commit."""
        self.writer.soon(facts)

    def write_now(self, facts: Sequence[Fact]) -> None:
        """Keep or forget facts, and block until these and all notes before are on disk."""
        self.writer.commit((), facts)

    def append_all(self, entries: Sequence[Entry], facts: Sequence[Fact] = ()) -> list[int]:
        """Write entries and facts in one commit, and block until they are on disk."""
        return self.writer.commit(entries, facts)

    def note(self, number: int, reading: Reading) -> None:
        """Note what an entry said and cost; it goes with the next commit, and is lost in a kill: read again then."""
        self.writer.note(number, reading)

    def remember(self, name: str, value: bytes) -> None:
        """Keep a small fact; it is on disk when this returns."""
        self.writer.commit((), [(name, value)])

    def recall(self, name: str) -> bytes | None:
        """Return a fact, or None."""
        with self.reading, errors_explained(self.path):
            row = self.reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        check_types(self.path, f"the fact {name}", row, (bytes,))
        return bytes(row[0])


def _close_to_one_file(connection: sqlite3.Connection, path: Path) -> None:
    """Bring everything into the one file.

    Where a reader is looking in, or the disk is full, the helper files stay beside it: what was committed is in them.
    """
    with errors_explained(path):
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
