"""Kills, a second process, a full disk, damaged bytes: what the journal does in bad times."""

import asyncio
import errno
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from culturekit.core.errors import CultureKitError, FolderInUse, IntegrityError
from culturekit.llm.journal import FILE, Entry, Journal, Reading
from culturekit.llm.ledger import latest_exchanges
from tests.llm.journal.test_journal import entry

WRITES_FOR_EVER = """
import asyncio, sys
from pathlib import Path
from culturekit.llm.journal import FILE, Entry, Reading
from culturekit.llm.journal import Journal
from tests.llm.journal.test_journal import entry

async def ask(journal, keys):
    for key in keys:
        number = await journal.append(entry(key, b"reply %d" % key))
        print(key, flush=True)
        journal.note(number, Reading("ok"))

async def run(journal, start):
    await asyncio.gather(*(ask(journal, range(start + task, start + 10**6, 16)) for task in range(16)))

with Journal(Path(sys.argv[1])) as journal:
    asyncio.run(run(journal, int(sys.argv[2])))
"""


def killed_after(folder: Path, start: int, count: int) -> set[int]:
    """Let a process write, kill it when it has named some keys, and give all that it named as being on disk."""
    command = [sys.executable, "-c", WRITES_FOR_EVER, str(folder), str(start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.read().splitlines(keepends=True)
    return {int(line) for line in lines if line.endswith(b"\n")}


@pytest.mark.parametrize("kills", [3, pytest.param(30, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_loses_nothing_that_was_told_to_be_on_disk(tmp_path: Path, kills: int) -> None:
    told: set[int] = set()
    for kill in range(kills):
        told |= killed_after(tmp_path, kill * 10**6, 1 + 47 * (kill % 5))
        if kill % 2:
            assert len(list(latest_exchanges(tmp_path / "replies.sqlite", limit=10))) == 10
    assert len(told) >= kills
    with Journal(tmp_path) as journal:
        found = journal.found([key.to_bytes(32, "big") for key in sorted(told)], run="one")
    assert {int.from_bytes(key, "big") for key in found} == told
    assert all(entries[0].raw == b"reply %d" % int.from_bytes(key, "big") for key, entries in found.items())
    assert os.listdir(tmp_path) == ["replies.sqlite"]


def test_a_second_writer_is_refused_by_name_and_readers_are_welcome(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append_all([entry(1)])
        with pytest.raises(FolderInUse, match=f"process {os.getpid()}"), Journal(tmp_path):
            pass
        (seen,) = latest_exchanges(tmp_path / "replies.sqlite", limit=5)
        assert (seen.reply, seen.outcome) == (b'{"a":1}', "unread")
        journal.append_all([entry(2)])
    assert len(list(latest_exchanges(tmp_path / "replies.sqlite", limit=5))) == 2
    assert os.listdir(tmp_path) == ["replies.sqlite"]


def test_a_reader_that_stays_does_not_keep_the_writer_from_closing(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append_all([entry(1)])
        looking = sqlite3.connect(f"file:{tmp_path}/replies.sqlite?mode=ro", uri=True)
        cursor = looking.execute("SELECT raw FROM replies")
        assert cursor.fetchone() is not None
        journal.append_all([entry(2)])
    cursor.close()
    looking.close()
    with Journal(tmp_path) as journal:
        assert len(journal.found([entry(1).key, entry(2).key], run="one")) == 2
    assert os.listdir(tmp_path) == ["replies.sqlite"]


FILLS_THE_DISK = """
import resource, signal, sys
from pathlib import Path
from culturekit.llm.journal import Journal
from tests.llm.journal.test_journal import entry

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
written = 0
try:
    with Journal(Path(sys.argv[1])) as journal:
        journal.append_all([entry(0)])
        written += 1
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
        while True:
            journal.append_all([entry(written, b"x" * 5_000)])
            written += 1
except OSError as error:
    print(written, error.errno, error.filename)
"""


def test_a_disk_that_takes_no_more_is_an_error_of_the_system_and_what_was_written_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FILLS_THE_DISK, str(tmp_path)]
    written, number, file = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(written) > 10
    assert int(number) in {errno.ENOSPC, errno.EIO}
    assert file == str(tmp_path / "replies.sqlite")
    with Journal(tmp_path) as journal:
        keys = [key.to_bytes(32, "big") for key in range(int(written))]
        assert len(journal.found(keys, run="one")) == int(written)


def test_a_full_database_tells_everybody_who_waits_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    async def many(journal: Journal, keys: range) -> list[int | BaseException]:
        waiting = (journal.append(entry(key, b"x" * 4_000)) for key in keys)
        return await asyncio.gather(*waiting, return_exceptions=True)

    with Journal(tmp_path) as journal:
        journal.append_all([entry(0)])
        connection = journal.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 40}")
        ended = asyncio.run(many(journal, range(1, 200)))
        failed = [error for error in ended if isinstance(error, OSError)]
        assert failed
        assert all(error.errno == errno.ENOSPC for error in failed)
        connection.execute("PRAGMA max_page_count = 1000000")
        again = asyncio.run(many(journal, range(1, 200)))
        assert not any(isinstance(error, BaseException) for error in again)
        found = journal.found([key.to_bytes(32, "big") for key in range(200)], run="one")
        assert len(found) == 200
        assert sum(map(len, found.values())) == 200 + len(ended) - len(failed)


def test_a_writer_that_fails_where_nobody_looks_tells_everybody_now_and_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError("no room to commit")

    journal = Journal(tmp_path)
    with pytest.raises(MemoryError, match="no room"), journal:
        journal.append_all([entry(1)])
        monkeypatch.setattr(journal, "commit_group", broken)
        journal.append_all([entry(2)])
    with pytest.raises(CultureKitError, match="the journal is closed"):
        journal.append_all([entry(3)])
    with pytest.raises(CultureKitError, match="the journal is closed"):
        asyncio.run(journal.append(entry(3)))
    with Journal(tmp_path) as again:
        assert len(again.found([entry(1).key, entry(2).key], run="one")) == 1


def test_notes_that_could_not_be_written_are_no_secret(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left on device"), Journal(tmp_path) as journal:
        (number,) = journal.append_all([entry(1)])
        connection = journal.connection
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        for _ in range(2000):
            journal.note(number, Reading("ok" * 4000))
            number += 1


def test_a_failure_of_the_run_is_not_hidden_by_one_of_the_journal_behind_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), Journal(tmp_path) as journal:
        (number,) = journal.append_all([entry(1)])
        journal.connection.execute("PRAGMA query_only = 1")
        journal.note(number, Reading("ok"))
        raise KeyboardInterrupt


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (a)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(IntegrityError, match="not a journal"), Journal(tmp_path):
        pass
    assert path.read_bytes() == before


def test_a_cancelled_wait_still_writes(tmp_path: Path) -> None:
    async def give_up(journal: Journal) -> None:
        task = asyncio.create_task(journal.append(entry(1)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Journal(tmp_path) as journal:
        asyncio.run(give_up(journal))
    with Journal(tmp_path) as journal:
        assert len(journal.found([entry(1).key], run="one")) == 1


def test_those_who_wait_together_share_commits(tmp_path: Path) -> None:
    commits = []

    async def many(journal: Journal) -> None:
        await asyncio.gather(*(journal.append(entry(key)) for key in range(640)))

    with Journal(tmp_path) as journal:
        journal.connection.set_trace_callback(lambda statement: commits.append(statement == "COMMIT"))
        asyncio.run(many(journal))
        journal.connection.set_trace_callback(None)
    assert 1 <= sum(commits) <= 640 / 8


KEYS = [bytes([number]) * 32 for number in range(30)]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal of thirty replies and a fact."""
    with Journal(tmp_path / "journal") as opened:
        opened.append_all([
            Entry(key, "run", 1, "online", 200, "reply", b"{}" * 300, b'{"a": %d}' % place, 1.0, "model")
            for place, key in enumerate(KEYS)
        ])  # fmt: skip
        opened.remember("name", b"value")
    return tmp_path / "journal"


def change(folder: Path, *statements: str) -> None:
    with closing(sqlite3.connect(folder / FILE)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def read_all(folder: Path) -> None:
    with Journal(folder) as opened:
        opened.found(KEYS, run="run")
        opened.recall("name")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE replies SET raw = CAST(raw AS TEXT) WHERE number = 7",
        "UPDATE replies SET raw = NULL",
        "UPDATE replies SET checksum = 'none'",
        "UPDATE replies SET at = 'yesterday'",
        "UPDATE replies SET status = 'fine'",
        "UPDATE replies SET run = 99",
        "UPDATE requests SET key = CAST(key AS TEXT) WHERE number = 3",
        "UPDATE templates SET head = 'text'",
        "UPDATE facts SET value = 'text'",
        "UPDATE facts SET value = 5",
        "DROP TABLE readings",
        "ALTER TABLE replies DROP COLUMN mode",
    ],
)
def test_what_stands_in_a_column_and_does_not_belong_there_is_damage(journal: Path, damage: str) -> None:
    with closing(sqlite3.connect(journal / FILE)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'raw BLOB NOT NULL', 'raw BLOB') WHERE name = 'replies'"
        )
        connection.commit()
    change(journal, "DROP VIEW exchanges", damage)
    with pytest.raises(IntegrityError, match="journal"):
        read_all(journal)


@pytest.mark.parametrize(
    "damage", ["UPDATE replies SET raw = 'text'", "UPDATE requests SET key = 'text' WHERE number = 1"]
)
def test_people_who_look_into_a_journal_hear_of_text_in_it(journal: Path, damage: str) -> None:
    change(journal, damage)
    with pytest.raises(IntegrityError, match="damaged"):
        list(latest_exchanges(journal / FILE, limit=50))


# A header that SQLite takes for that of a read-only disk, one that is none, half of the file, and empty pages.
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "byte 18": lambda whole: whole[:18] + b"\xff" + whole[19:],
    "byte 19": lambda whole: whole[:19] + b"\xff" + whole[20:],
    "byte 47": lambda whole: whole[:47] + b"\xff" + whole[48:],
    "header": lambda whole: b"no database at all, really" + whole[26:],
    "torn": lambda whole: whole[: len(whole) // 2],
    "text": lambda whole: b"a text file, longer than the header of a database " * 100,
    "empty pages": lambda whole: whole[:4096] + bytes(len(whole) - 4096),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_a_damaged_file_is_an_integrity_error_that_says_what_to_do(journal: Path, kind: str) -> None:
    (journal / FILE).write_bytes(DAMAGES[kind]((journal / FILE).read_bytes()))
    with pytest.raises(IntegrityError, match=r"replies\.sqlite.*(backup|recover|another --out)"):
        read_all(journal)


def test_a_damaged_reply_keeps_nobody_waiting(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(journal, "UPDATE replies SET raw = x'00' WHERE number = 5")
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **options: connect(*given, **{**options, "timeout": 0}))
    with pytest.raises(IntegrityError, match="reply 5 is not what was written"):
        read_all(journal)
    assert sorted(path.name for path in journal.iterdir()) == [FILE], "the journal could be closed to one file at once"


@pytest.mark.parametrize("seed", range(20))
def test_bytes_changed_anywhere_are_damage_or_harmless(journal: Path, seed: int) -> None:
    rng = random.Random(seed)
    content = bytearray((journal / FILE).read_bytes())
    for _ in range(rng.choice([1, 5, 50])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    (journal / FILE).write_bytes(content)
    try:
        read_all(journal)
    except IntegrityError as error:
        assert str(journal) in str(error)
