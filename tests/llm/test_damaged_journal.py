"""A journal that is not what was written is said to be damaged, at once, wherever the damage is."""

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from culturekit.core.errors import IntegrityError
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import FILE, Entry
from culturekit.llm.ledger import latest_exchanges

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
