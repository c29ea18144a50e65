import asyncio
import os
from pathlib import Path

import pytest

from culturekit.llm.client import Usage
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry, Reading


def entry(key: int, raw: bytes = b'{"a":1}', *, run: str = "one", kind: str = "reply", attempt: int = 1) -> Entry:
    body = b'{"instructions":"' + b"judge " * 50 + b'","data":%d,"model":"m"}' % key
    return Entry(key.to_bytes(32, "big"), run, attempt, "online", 200, kind, raw, body)


def test_what_was_asked_and_said_is_not_written_where_an_entry_is_shown() -> None:
    shown = repr(Entry(b"k", "one", 1, "online", 200, "reply", b"a soup", b"a dish"))
    assert "a dish" not in shown and "a soup" not in shown


def test_what_was_appended_is_found_byte_for_byte_also_later(tmp_path: Path) -> None:
    entries = [entry(number, b"\x00\xff{" + str(number).encode()) for number in range(40)]

    async def all_of_them(journal: Journal) -> list[int]:
        return list(await asyncio.gather(*(journal.append(one) for one in entries)))

    with Journal(tmp_path / "journal") as journal:
        numbers = asyncio.run(all_of_them(journal))
        assert sorted(numbers) == list(range(1, 41))
    with Journal(tmp_path / "journal") as journal:
        found = journal.found([one.key for one in entries] + [b"x" * 32], run="one")
    assert len(found) == 40
    for one in entries:
        (back,) = found[one.key]
        assert (back.raw, back.run, back.kind) == (one.raw, "one", "reply")


def test_another_run_sees_answers_and_the_unread_only(tmp_path: Path) -> None:
    kinds = {1: "ok", 2: "repaired", 3: "refused", 4: "truncated", 5: "invalid", 6: "blocked"}
    with Journal(tmp_path) as journal:
        numbers = journal.append_all([entry(key) for key in range(1, 8)] + [entry(8, kind="busy")])
        for number in numbers[:6]:
            journal.note(number, Reading(kinds[number], Usage(10, 5), 0.25))
    with Journal(tmp_path) as journal:
        keys = [key.to_bytes(32, "big") for key in range(1, 9)]
        assert set(journal.found(keys, run="one")) == set(keys)
        assert set(journal.found(keys, run="two")) == {keys[0], keys[1], keys[6]}
        assert journal.found(keys[:1], run="two")[keys[0]][0].outcome == "ok"


def test_the_name_of_a_new_journal_reaches_the_disk_as_what_is_in_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_ino))
    with Journal(tmp_path / "journal") as journal:
        assert (tmp_path / "journal").stat().st_ino in synced
        assert journal.writer.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert journal.writer.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert os.listdir(tmp_path / "journal") == ["replies.sqlite"]


def test_facts_are_kept(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        assert journal.recall("job") is None
        journal.remember("job", b"1")
        journal.remember("job", b"2")
    with Journal(tmp_path) as journal:
        assert journal.recall("job") == b"2"
