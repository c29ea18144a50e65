"""The journal: every reply as it came, on disk before anybody looks into it, so that none is bought twice.

It is one SQLite file in a folder of its own, `OUT/journal`. One process writes; others may read, also meanwhile.
"""

import asyncio
import errno
import hashlib
import logging
import os
import queue
import secrets
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, TypeAlias
from zlib import crc32

from culturekit.core.atomic import sync_folder, write_atomically
from culturekit.core.choices import ANSWERED
from culturekit.core.digests import canonical_json
from culturekit.core.errors import CultureKitError, IntegrityError
from culturekit.core.stage import Work, hold
from culturekit.llm.client import Identity, Image, Outgoing, Usage
from culturekit.llm.usage import MOST_TOKENS, picodollars

# What is left out of the listing of fields: the body and an image's bytes, which are hashed as bytes. Everything else
# counts, a field that is added tomorrow too. Waits and numbers of tries stand in none of these.
_STANDS_OTHERWISE = {"Outgoing": {"body", "images"}, "Image": {"content"}, "Identity": set[str]()}


_OUTGOING, _IMAGE, _IDENTITY = (
    tuple(field.name for field in fields(kind) if field.name not in _STANDS_OTHERWISE[kind.__name__])
    for kind in (Outgoing, Image, Identity)
)


def key_of(identity: Identity, outgoing: Outgoing) -> bytes:
    """Hash what leaves: the same key is the same question to the same model at the same address.

    BLAKE2b, because half a million bodies of 2 kB are hashed in a replay, and on processors without instructions for
    SHA-256 that takes three times as long.
    """
    parts: dict[str, object] = {name: getattr(outgoing, name) for name in _OUTGOING}
    if outgoing.images:
        parts["images"] = [  # by what they hold, not by what somebody says they hold
            {name: getattr(image, name) for name in _IMAGE} | {"content": hashlib.sha256(image.content).hexdigest()}
            for image in outgoing.images
        ]
    head = b"%b%b\n" % (_identity_parts(identity), canonical_json(parts))
    return hashlib.blake2b(head + outgoing.body, digest_size=32).digest()


@lru_cache(maxsize=64)
def _identity_parts(identity: Identity) -> bytes:
    return canonical_json({name: getattr(identity, name) for name in _IDENTITY}) + b"\n"


Mode: TypeAlias = Literal["online", "batch"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One request that left, and what came back.

    `kind` is `reply`, or the kind of the failure. `raw` is what came, byte for byte; `request` is the body, for the
    log; `model` is whom it went to, for the ledger. The journal gives `at`, seconds since 1970, unless it is given,
    `number`, and `outcome`: what was noted of it, empty until then.
    """

    key: bytes
    run: str
    attempt: int
    mode: Mode
    status: int
    kind: str
    raw: bytes = field(repr=False)
    request: bytes = field(repr=False)
    at: float = 0.0
    model: str = ""
    number: int = 0
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an exchange turned out to be, and to cost; `usd` is None where the price is not known."""

    outcome: str
    usage: Usage = field(default_factory=Usage)
    usd: float | None = None


FILE = "replies.sqlite"
_OURS = 0x63_6B_6C_6D  # the application id in the header of the file: `cklm`
VERSION = 1

# In kB: the index of keys of half a million requests, which are looked up all over it.
_CACHE = "PRAGMA cache_size = -48000"
TABLES = f"""
PRAGMA application_id = {_OURS};
PRAGMA user_version = {VERSION};
CREATE TABLE IF NOT EXISTS templates (number INTEGER PRIMARY KEY, head BLOB NOT NULL, tail BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    number INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, template INTEGER NOT NULL, middle BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS runs (
    number INTEGER PRIMARY KEY, tag TEXT NOT NULL, model TEXT NOT NULL, UNIQUE (tag, model));
CREATE TABLE IF NOT EXISTS replies (
    number INTEGER PRIMARY KEY, request INTEGER NOT NULL, run INTEGER NOT NULL, attempt INTEGER NOT NULL,
    at REAL NOT NULL, mode TEXT NOT NULL, status INTEGER NOT NULL, kind TEXT NOT NULL,
    checksum INTEGER NOT NULL, raw BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS replies_of_request ON replies (request);
CREATE TABLE IF NOT EXISTS readings (
    number INTEGER PRIMARY KEY, outcome TEXT NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    thinking_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, counted TEXT NOT NULL, picodollars INTEGER);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS exchanges AS
    SELECT replies.number, hex(requests.key) AS key, runs.tag AS run, model, attempt, at, mode, status, kind, outcome,
           input_tokens, output_tokens, thinking_tokens, cached_tokens, counted, picodollars / 1e12 AS usd,
           CAST(templates.head || requests.middle || templates.tail AS TEXT) AS request, CAST(raw AS TEXT) AS reply
    FROM replies
    JOIN requests ON requests.number = replies.request
    JOIN templates ON templates.number = requests.template
    JOIN runs ON runs.number = replies.run
    LEFT JOIN readings ON readings.number = replies.number;
"""

# What every reading has in common whose counts were looked at before they were written down. One that an earlier
# version took from a server as it came, and that cannot be true, counts as none: its reply is read again.
SOUND = f"""
(min(input_tokens, output_tokens, thinking_tokens, cached_tokens, coalesce(picodollars, 0)) >= 0
 AND max(input_tokens, output_tokens) <= {2 * MOST_TOKENS} AND cached_tokens <= input_tokens)
"""
# Sums of both halves, since the sum of what a server claims may be too large for SQLite; see `paid`.
PAID = "coalesce(sum(picodollars >> 32), 0), coalesce(sum(picodollars & 4294967295), 0)"
# What SQLite says of a file that is not as it was written: our statements are right, so tables that lack what they
# ask for are none of ours any more.
_NOT_A_DATABASE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH}
# Bytes come after everything else in an index, so that one look finds a key that is none.
_STRANGE = """
SELECT (SELECT count(*) <> 6 FROM sqlite_schema
        WHERE name IN ('templates', 'requests', 'runs', 'replies', 'readings', 'facts')),
       (SELECT count(*) FROM templates WHERE typeof(head) <> 'blob' OR typeof(tail) <> 'blob'),
       EXISTS (SELECT 1 FROM requests WHERE key < x'')
"""
_SYSTEM_ERRORS = {
    sqlite3.SQLITE_FULL: errno.ENOSPC,
    sqlite3.SQLITE_IOERR: errno.EIO,
    sqlite3.SQLITE_READONLY: errno.EROFS,
    sqlite3.SQLITE_CANTOPEN: errno.EIO,
    sqlite3.SQLITE_PERM: errno.EACCES,
    sqlite3.SQLITE_BUSY: errno.EBUSY,
    sqlite3.SQLITE_PROTOCOL: errno.EBUSY,
    sqlite3.SQLITE_NOMEM: errno.ENOMEM,
}


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the file, or make it, so that what is committed has reached the disk."""
    connection = _opened(path, "rwc")
    with errors_explained(path):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.executescript(f"BEGIN IMMEDIATE;{TABLES}COMMIT;")
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open the file as it is, also while a run writes to it; nothing in it is changed."""
    return _opened(path, "ro")


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    address = f"{path.absolute().as_uri()}?mode={mode}"
    with errors_explained(path):
        connection = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False, timeout=30)
        _check_ours(connection, path)
        connection.execute(_CACHE)
    return connection


def paid(high: int, low: int) -> int:
    """Put the sums of both halves together: picodollars."""
    return (high << 32) + low


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Check that the file is a journal, and one that this version understands."""
    with path.open("rb") as file:
        header = file.read(20)
    if not set(header[18:20]) <= {1, 2}:  # SQLite would call it a disk that cannot be written
        raise damaged(path, f"a header of the unknown format {header[18]}, {header[19]}")
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and (application, version) != (_OURS, VERSION):
        raise IntegrityError(
            "this file is not a journal of replies that this culturekit can read",
            where=str(path),
            expected=f"application id {_OURS:#x}, version {VERSION}",
            found=f"application id {application:#x}, version {version}",
            hint="Use the culturekit that wrote it, or choose another --out.",
        )
    if tables and any(connection.execute(_STRANGE).fetchone()):
        raise damaged(path, "a table that is gone, or text where bytes were written")


def check_types(path: Path, what: str, row: Sequence[object], types: Sequence[type | tuple[type, ...]]) -> None:
    """Check that a row holds what was written: SQLite keeps text where bytes belong, and numbers where text is."""
    if not all(map(isinstance, row, types)):
        raise damaged(path, f"{what} is not of the types that were written")


@contextmanager
def errors_explained(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into what a caller of ours expects."""
    try:
        yield
    except sqlite3.Error as error:
        raise explain(error, path) from error
    except UnicodeDecodeError as error:
        raise damaged(path, str(error)) from error


def explain(error: sqlite3.Error, path: Path) -> OSError | CultureKitError:
    """Return what an error of SQLite means: a full or failing disk, or a broken file, an IntegrityError."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    undecodable = isinstance(error, sqlite3.OperationalError) and code == 0  # a text that is none, says Python
    if code in _SYSTEM_ERRORS:
        number = _SYSTEM_ERRORS[code]
        return OSError(number, f"{os.strerror(number)} ({error})", str(path))
    if code in _NOT_A_DATABASE or undecodable:
        return damaged(path, str(error))
    return CultureKitError(f"the journal could not be used: {error}", where=str(path))


def damaged(path: Path, found: str) -> IntegrityError:
    """Return what can be done about a broken journal."""
    return IntegrityError(
        "the journal of replies is damaged",
        where=str(path),
        found=found,
        hint=(
            f"Put a backup in its place, or save what is left: sqlite3 {path.name} .recover | sqlite3 new.sqlite. "
            "Without the file every reply is bought again."
        ),
    )


logger = logging.getLogger(__name__)

_LOOKED_UP = 256  # keys in one query
_WORTH_SHARING = 64  # bytes that a new template has to save beyond twice what an old one saves
_STRANGERS = 8  # bodies that fitted no template well, kept to find what the next one shares with them
_MOST_TEMPLATES = 200
_PATIENCE_OF_NOTES = 1.0  # seconds after which notes are written although nothing else is
_NOTES_AT_ONCE = 1024
# Seconds from one commit to the next, at least: replies that come meanwhile share it, and the wire keeps its CPU.
_GATHERING = 0.01
_LARGEST = 2**63 - 1  # the largest number that SQLite holds

_INSERT_REPLIES = "INSERT INTO replies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_READINGS = "INSERT OR REPLACE INTO readings VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
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


class _Template(NamedTuple):
    """The two ends of a body."""

    number: int
    head: bytes
    tail: bytes

    @property
    def saved(self) -> int:
        return len(self.head) + len(self.tail)


class RequestTexts:
    """Writes bodies as the part in which they differ from others, inside whatever transaction is open."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Know what is in the file."""
        self.connection = connection
        self.strangers: deque[bytes] = deque(maxlen=_STRANGERS)
        self.learn()

    def learn(self) -> None:
        """Read what is in the file; to be done again after a transaction was undone."""
        rows = self.connection.execute("SELECT number, head, tail FROM templates ORDER BY number DESC")
        self.templates = [_Template(*row) for row in rows]
        (self.count,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM requests").fetchone()

    def numbers_of(self, requests: Sequence[tuple[bytes, bytes]]) -> dict[bytes, int]:
        """Return the number of each key's request; those that are new are written down."""
        bodies = dict(requests)
        numbers = {
            key: number
            for piece in _pieces(list(bodies))
            for key, number in self.connection.execute(
                f"SELECT key, number FROM requests WHERE key IN ({_marks(piece)})", piece
            )
        }
        rows = []
        for key, body in bodies.items():
            if key not in numbers:
                self.count += 1
                numbers[key] = self.count
                template = self._template_for(body)
                middle = body[len(template.head) : len(body) - len(template.tail)]
                rows.append((self.count, key, template.number, middle))
        self.connection.executemany("INSERT INTO requests (number, key, template, middle) VALUES (?, ?, ?, ?)", rows)
        return numbers

    def _template_for(self, body: bytes) -> _Template:
        """Choose the template that saves most; a new one where this body and an earlier one share far more."""
        fitting = [
            template
            for template in self.templates
            if len(body) >= template.saved and body.startswith(template.head) and body.endswith(template.tail)
        ]
        best = max(fitting, key=lambda template: template.saved, default=None)
        if best is not None and best.saved * 2 > len(body):
            return best
        ends = (shared_ends(one, body) for one in self.strangers)
        head, tail = max(ends, key=lambda both: len(both[0]) + len(both[1]), default=(b"", b""))
        self.strangers.append(body)
        enough = 0 if best is None else best.saved * 2 + _WORTH_SHARING
        if best is not None and (len(head) + len(tail) < enough or len(self.templates) >= _MOST_TEMPLATES):
            return best
        added = self.connection.execute("INSERT INTO templates (head, tail) VALUES (?, ?)", (head, tail))
        self.templates.insert(0, _Template(int(added.lastrowid or 0), head, tail))
        return self.templates[0]


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


def _pieces(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    return (keys[start : start + _LOOKED_UP] for start in range(0, len(keys), _LOOKED_UP))


def _marks(values: Sequence[bytes]) -> str:
    return ",".join("?" * len(values))


Fact: TypeAlias = tuple[str, bytes | None]  # a small thing to remember under a name; None forgets it


class _Task(NamedTuple):
    """Something to commit, and the future of whoever waits until it is on disk."""

    entries: Sequence[Entry]
    facts: Sequence[Fact]
    written: "Future[list[int]]"


class Journal:
    """The replies of a folder; a context manager that holds the folder for this process.

    A thread takes tasks from all others and commits all that wait as one group.
    """

    def __init__(self, folder: Path) -> None:
        """Name the folder; nothing is touched yet."""
        self.folder, self.path = folder, folder / FILE
        self.stack = ExitStack()
        self.reading = threading.Lock()
        self.notes: deque[tuple[object, ...]] = deque()
        self.tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self.open = threading.RLock()  # a signal may come while this very thread holds it
        self.stopped, self.broken, self.sure = True, False, True  # sure of what is in the file
        self.failure: Exception | None = None  # why what waits was not written, the last time
        self.group: list[_Task | None] = []

    def __enter__(self) -> Self:
        """Open the journal, or make a new one.

        Raises:
            FolderInUse: another process writes to it.
            IntegrityError: the file is damaged, or no journal.
        """
        with ExitStack() as stack:
            self.folder.mkdir(parents=True, exist_ok=True)
            stack.enter_context(hold(self.folder / ".lock"))
            self.connection = open_for_writing(self.path)
            stack.callback(self._close_to_one_file)
            sync_folder(self.folder)
            self.reader = open_for_reading(self.path)
            stack.callback(self.reader.close)
            with errors_explained(self.path):
                self.texts = RequestTexts(self.connection)
                self._learn()
                self.known_runs = self._runs(self.reader)
            self.stopped = False
            self.thread = threading.Thread(target=self._work, name="journal", daemon=True)
            self.thread.start()
            stack.callback(self._stop)
            self.stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what waits, and leave one file; where something is wrong already, that counts."""
        try:
            self.stack.close()
        except Exception:
            if error is None:
                raise

    def found(self, keys: Sequence[bytes], *, run: str) -> dict[bytes, list[Entry]]:
        """Look up many keys at once; a key nobody asked about is left out.

        Entries come in order of arrival: all of this run, failures and refusals too; of other runs the replies noted as
        answers, and those that a kill left unread: what these say decides whether they count. An entry without
        `outcome` has still to be read, and noted. None of them has its `request`: whoever has the key knows it.
        """
        found: dict[bytes, list[Entry]] = {}
        with self.reading, errors_explained(self.path):
            for piece in _pieces(keys):
                query = _FOUND % _marks(piece)
                with closing(self.reader.execute(query, (*piece, run))) as rows:  # left open, closing waits for it
                    for row in rows:
                        found.setdefault(row[0], []).append(self._entry_of(row))
        for entries in found.values():
            entries.sort(key=lambda entry: entry.number)
        return found

    def _entry_of(self, row: tuple[Any, ...]) -> Entry:
        """Make an entry of a row of the query, and make sure that its bytes are those that came."""
        key, run, attempt, mode, status, kind, raw, at, number, outcome, checksum = row
        check_types(self.path, f"reply {number}", row, _ENTRY)
        if crc32(raw) != checksum:
            raise damaged(self.path, f"reply {number} is not what was written")
        if run not in self.known_runs:
            self.known_runs = self._runs(self.reader)
        if run not in self.known_runs:
            raise damaged(self.path, f"reply {number} is of a run that is not there")
        tag, model = self.known_runs[run]
        return Entry(key, tag, attempt, mode, status, kind, raw, b"", at, model, number, outcome or "")

    def recall(self, name: str) -> bytes | None:
        """Return a fact, or None."""
        with self.reading, errors_explained(self.path):
            row = self.reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        check_types(self.path, f"the fact {name}", row, (bytes,))
        return bytes(row[0])

    def append_all(self, entries: Sequence[Entry], facts: Sequence[Fact] = ()) -> list[int]:
        """Write entries and facts in one commit, and block until they are on disk.

        Raises:
            OSError: the disk is full or failing.
        """
        return self._take(entries, facts).result()

    async def append(self, entry: Entry, facts: Sequence[Fact] = ()) -> int:
        """Write an entry, and facts in the same commit; they are on disk when this returns, and also if it is left."""
        return (await asyncio.wrap_future(self._take((entry,), facts)))[0]

    async def write(self, facts: Sequence[Fact]) -> None:
        """Keep or forget facts; that is on disk when this returns, as above."""
        await asyncio.wrap_future(self._take((), facts))

    def write_now(self, facts: Sequence[Fact]) -> None:
        """Keep or forget facts, and block until these and all notes before are on disk."""
        self._take((), facts).result()

    def write_soon(self, facts: Sequence[Fact]) -> None:
        """Keep or forget facts with the next commit."""
        self._take((), facts)

    def remember(self, name: str, value: bytes) -> None:
        """Keep a small fact; it is on disk when this returns."""
        self._take((), [(name, value)]).result()

    def note(self, number: int, reading: Reading) -> None:
        """Note what an entry came and cost; it goes with the next commit, and is lost in a kill: read again then.

        A reading that no journal can hold is left out, and its reply unread.
        """
        usage = reading.usage
        counts = (usage.input_tokens, usage.output_tokens, usage.thinking_tokens, usage.cached_tokens)
        paid = None if reading.usd is None else picodollars(reading.usd)  # whole ones, so that sums are exact
        if any(abs(value) > _LARGEST for value in (number, *counts, paid or 0)):
            logger.warning("reply %d has counts beyond all bounds, and is not noted as read", number)
            return
        self.notes.append((number, reading.outcome, *counts, usage.counted, paid))
        if len(self.notes) % _NOTES_AT_ONCE == 0:
            self.tasks.put(_Task((), (), Future()))

    def _take(self, entries: Sequence[Entry], facts: Sequence[Fact]) -> "Future[list[int]]":
        """Take a task, unless nobody would ever commit it."""
        task = _Task(entries, facts, Future())
        task.written.set_running_or_notify_cancel()  # whoever stops waiting does not stop the writing
        with self.open:
            if self.stopped:
                raise CultureKitError(
                    "the journal is closed", where=str(self.path), hint="Open it again to write to it."
                )
            self.tasks.put(task)
        return task.written

    def _stop(self) -> None:
        with self.open:
            self.stopped = True
            self.tasks.put(None)
        self.thread.join()
        if self.failure is not None and (self.notes or self.broken):
            raise self.failure

    def _work(self) -> None:
        """Commit until told to stop; if that ever fails, everybody who waits is told, now and later."""
        try:
            self._commit_until_stopped()
        except BaseException as error:
            self.failure = error if isinstance(error, Exception) else CultureKitError(repr(error))
            with self.open:
                self.stopped = self.broken = True
            for task in [*self.group, *self._waiting()]:
                if task is not None and not task.written.done():
                    task.written.set_exception(self.failure)

    def _waiting(self) -> list[_Task | None]:
        return [self.tasks.get() for _ in range(self.tasks.qsize())]

    def _commit_until_stopped(self) -> None:
        """Commit group after group until told to stop."""
        going_on, committed = True, 0.0
        while going_on:
            self.group = []
            with suppress(queue.Empty):
                self.group.append(self.tasks.get(timeout=_PATIENCE_OF_NOTES))
            time.sleep(max(committed + _GATHERING - time.monotonic(), 0.0))
            self.group += self._waiting()
            tasks = [task for task in self.group if task is not None]
            going_on = len(tasks) == len(self.group)
            if tasks or self.notes:
                self.commit_group(tasks)
                committed = time.monotonic()

    def commit_group(self, tasks: Sequence[_Task]) -> None:
        """Write a group in one transaction and tell everybody how it went."""
        notes = [self.notes.popleft() for _ in range(len(self.notes))]
        try:
            if not self.sure:  # after a transaction that failed, with what is in the file, not with what was to be
                self._roll_back()
                self.texts.learn()
                self._learn()
            self.connection.execute("BEGIN IMMEDIATE")
            numbers = iter(self._write([entry for task in tasks for entry in task.entries]))
            facts = dict(fact for task in tasks for fact in task.facts)
            kept = [fact for fact in facts.items() if fact[1] is not None]
            self.connection.executemany("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", kept)
            forgotten = [(name,) for name, value in facts.items() if value is None]
            self.connection.executemany("DELETE FROM facts WHERE name = ?", forgotten)
            self.connection.executemany(_INSERT_READINGS, notes)
            self.connection.execute("COMMIT")
        except Exception as error:
            self.notes.extendleft(reversed(notes))
            self.sure = False
            with suppress(Exception):  # a file that cannot even be read will fail the next one too
                self._roll_back()
            self.failure = explain(error, self.path) if isinstance(error, sqlite3.Error) else error
            for task in tasks:
                task.written.set_exception(self.failure)
        else:
            self.failure = None
            for task in tasks:
                task.written.set_result([next(numbers) for _ in task.entries])

    def _write(self, entries: Sequence[Entry]) -> range:
        requests = self.texts.numbers_of([(entry.key, entry.request) for entry in entries])
        numbers = range(self.count + 1, self.count + 1 + len(entries))
        self.count += len(entries)
        now, rows = time.time(), []
        for number, entry in zip(numbers, entries, strict=True):
            run = self.runs.get((entry.run, entry.model))
            if run is None:
                added = self.connection.execute("INSERT INTO runs (tag, model) VALUES (?, ?)", (entry.run, entry.model))
                run = self.runs[entry.run, entry.model] = int(added.lastrowid or 0)
            came = (entry.mode, entry.status, entry.kind, crc32(entry.raw), entry.raw)
            rows.append((number, requests[entry.key], run, entry.attempt, entry.at or now, *came))
        self.connection.executemany(_INSERT_REPLIES, rows)
        return numbers

    def _learn(self) -> None:
        """Read what is in the file, so that rows can be numbered here."""
        self.runs = {run: number for number, run in self._runs(self.connection).items()}
        (self.count,) = self.connection.execute("SELECT coalesce(max(number), 0) FROM replies").fetchone()
        self.sure = True

    def _runs(self, connection: sqlite3.Connection) -> dict[int, tuple[str, str]]:
        rows = connection.execute("SELECT number, tag, model FROM runs")
        return {number: (tag, model) for number, tag, model in rows}

    def _roll_back(self) -> None:
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def _close_to_one_file(self) -> None:
        """Bring everything into the one file.

        Where a reader is looking in, or the disk is full, the helper files stay beside it: what was committed is there.
        """
        with errors_explained(self.path):
            with suppress(sqlite3.OperationalError):
                self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                self.connection.execute("PRAGMA journal_mode = DELETE")
            self.connection.close()


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
