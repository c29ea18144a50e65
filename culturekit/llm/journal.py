"""The journal: every reply as it came, on disk before anybody looks into it, so that none is bought twice.

It is one SQLite file in a folder of its own, `OUT/journal`. One process writes; others may read, also meanwhile.
"""

import sqlite3
import threading
import zlib
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from culturekit.llm.journal_entry import ANSWERS, Entry, Mode, Reading
from culturekit.llm.journal_file import FILE, damaged, errors_explained, open_for_reading, open_for_writing
from culturekit.llm.journal_writer import JournalWriter
from culturekit.storage.atomic import sync_folder
from culturekit.storage.locks import hold

__all__ = ["ANSWERS", "Entry", "Journal", "Mode", "Reading"]

KEYS_AT_ONCE = 500

FOUND = f"""
SELECT replies.number, key, tag, attempt, at, mode, status, kind, checksum, raw, head, middle, tail, outcome
FROM requests
JOIN replies ON replies.request = requests.number
JOIN templates ON templates.number = requests.template
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number
WHERE key IN (%s)
  AND (tag = ? OR (kind = 'reply' AND (outcome IS NULL OR outcome IN ({", ".join(repr(name) for name in ANSWERS)}))))
"""


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
            stack.callback(close_to_one_file, connection, self.path)
            sync_folder(self.folder)
            self.reader = open_for_reading(self.path)
            stack.callback(self.reader.close)
            with errors_explained(self.path):
                self.writer = JournalWriter(connection, self.path)
            stack.callback(self.writer.stop)
            self.stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write what waits, and leave one file."""
        self.close()

    def close(self) -> None:
        """Write what waits, and leave one file."""
        self.stack.close()

    def found(self, keys: Sequence[bytes], *, run: str) -> dict[bytes, list[Entry]]:
        """Look up many keys at once; a key nobody asked about is left out.

        Entries come in order of arrival: all of this run, failures and refusals too; of other runs the replies noted as
        answers, and those that a kill left unread: what these say decides whether they count. An entry without
        `outcome` has still to be read, and noted.
        """
        found: dict[bytes, list[Entry]] = {}
        for start in range(0, len(keys), KEYS_AT_ONCE):
            some = keys[start : start + KEYS_AT_ONCE]
            with self.reading, errors_explained(self.path):
                rows = self.reader.execute(FOUND % ",".join("?" * len(some)), (*some, run)).fetchall()
            for row in sorted(rows):
                entry = self.entry_of(row)
                found.setdefault(entry.key, []).append(entry)
        return found

    def entry_of(self, row: tuple[object, ...]) -> Entry:
        """Make an entry of a row of the query, and make sure that its bytes are those that came."""
        number, key, tag, attempt, at, mode, status, kind, checksum, raw, head, middle, tail, outcome = row
        if zlib.crc32(raw) != checksum:  # type: ignore[arg-type]
            raise damaged(self.path, f"reply {number} is not what was written")
        request = head + middle + tail  # type: ignore[operator]
        return Entry(key, tag, attempt, mode, status, kind, raw, request, at, number, outcome or "")  # type: ignore[arg-type]

    async def append(self, entry: Entry) -> int:
        """Write an entry; it is on disk when this returns. Entries that wait together share one commit.

        Raises:
            OSError: the disk is full or failing.
        """
        return await self.writer.append(entry)

    def append_all(self, entries: Sequence[Entry]) -> list[int]:
        """Write entries in one commit, and block until they are on disk."""
        return self.writer.commit(entries)

    def note(self, number: int, reading: Reading) -> None:
        """Note what an entry said and cost; it goes with the next commit, and is lost in a kill: read again then."""
        self.writer.note(number, reading)

    def remember(self, name: str, value: bytes) -> None:
        """Keep a small fact; it is on disk when this returns."""
        self.writer.commit((), [(name, value)])

    def recall(self, name: str) -> bytes | None:
        """Give a fact, or None."""
        with self.reading, errors_explained(self.path):
            row = self.reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else bytes(row[0])


def close_to_one_file(connection: sqlite3.Connection, path: Path) -> None:
    """Bring everything into the one file; a reader that is looking in keeps the helper files there until it leaves."""
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError as error:
        if (error.sqlite_errorcode & 0xFF) not in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
            raise
    finally:
        connection.close()
