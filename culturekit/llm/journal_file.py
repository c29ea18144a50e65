"""The file of the journal: what it keeps under which key, its tables, how it is opened, and what its errors mean."""

import errno
import hashlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeAlias

from culturekit.core.digests import canonical_json
from culturekit.core.errors import CultureKitError, IntegrityError
from culturekit.llm.client import Identity, Image, Outgoing, Usage
from culturekit.llm.usage import MOST_TOKENS

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
