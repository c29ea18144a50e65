"""The journal: every reply as it came, on disk before anybody looks into it, so that none is bought twice.

It is one SQLite file in a folder of its own, `OUT/journal`. One process writes; others may read, also meanwhile.
"""

import secrets
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from culturekit.llm.journal_file import (
    FILE,
    SOUND,
    Entry,
    Reading,
    check_types,
    damaged,
    errors_explained,
    open_for_reading,
    open_for_writing,
)
from culturekit.llm.journal_writer import Fact, JournalWriter, pieces
from culturekit.records.choices import ANSWERED
from culturekit.records.work import Work
from culturekit.storage.atomic import sync_folder, write_atomically
from culturekit.storage.stage_folder import hold

_TAG = "run_tag"
_LAST = "SELECT tag, mode FROM runs JOIN replies ON replies.run = runs.number ORDER BY replies.number DESC LIMIT 1"


def run_tag(work: Work) -> str:
    """Give the tag of this run: a random one that lies in its scratch folder, and so lives as long as the run does."""
    try:
        return (work.scratch / _TAG).read_text(encoding="ascii")
    except FileNotFoundError:
        tag = secrets.token_hex(8)
        go_on_as(tag, work.scratch)
        return tag


def last_run(journal: Path) -> tuple[str, str]:
    """Give the tag and the mode of the run that a journal heard last; empty where it heard none."""
    if not (journal / FILE).is_file():
        return "", ""
    with closing(open_for_reading(journal / FILE)) as connection:
        row = connection.execute(_LAST).fetchone()
    return ("", "") if row is None else (str(row[0]), str(row[1]))


def go_on_as(tag: str, scratch: Path) -> None:
    """Give a run the tag of another, whose failures then count as its own: nothing that failed is asked again."""
    if tag:
        write_atomically(scratch / _TAG, tag.encode("ascii"))
        sync_folder(scratch)


FOUND = f"""
SELECT key, replies.run, attempt, mode, status, kind, raw, at, replies.number, outcome, checksum
FROM requests
CROSS JOIN replies ON replies.request = requests.number
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
WHERE key IN (%s)
  AND (run IN (SELECT number FROM runs WHERE tag = ?)
       OR (kind = 'reply' AND (outcome IS NULL OR outcome IN ({", ".join(repr(name) for name in ANSWERED)}))))
"""
# What the columns of a found reply hold; SQLite keeps whatever is put into them.
ENTRY = (bytes, int, int, str, int, str, bytes, float, int, (str, type(None)), int)


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
                self.learn()
                self.writer = JournalWriter(connection, self.path)
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
            for piece in pieces(keys):
                asked = FOUND % ",".join("?" * len(piece))
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
        check_types(self.path, f"reply {number}", row, ENTRY)
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
        """Give a fact, or None."""
        with self.reading, errors_explained(self.path):
            row = self.reader.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        check_types(self.path, f"the fact {name}", row, (bytes,))
        return bytes(row[0])


def close_to_one_file(connection: sqlite3.Connection, path: Path) -> None:
    """Bring everything into the one file.

    Where a reader is looking in, or the disk is full, the helper files stay beside it: what was committed is in them.
    """
    with errors_explained(path):
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()
