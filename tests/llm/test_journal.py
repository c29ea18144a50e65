"""Whatever changes what leaves changes its key; kills, a second process, a full disk and damage lose nothing unsaid."""

import asyncio
import errno
import hashlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.digests import canonical_json
from culturekit.core.errors import CultureKitError, FolderInUse, IntegrityError
from culturekit.core.stage import Staging, Work
from culturekit.llm.client import Identity, Image, Outgoing, Request, Usage
from culturekit.llm.journal import FILE, TABLES, Entry, Journal, Reading, RequestTexts, key_of, run_tag, shared_ends
from culturekit.llm.ledger import latest_exchanges
from tests.core.test_stage_folder import finish


def entry(key: int, raw: bytes = b'{"a":1}', *, run: str = "one", kind: str = "reply", attempt: int = 1) -> Entry:
    body = b'{"instructions":"' + b"judge " * 50 + b'","data":%d,"model":"m"}' % key
    return Entry(key.to_bytes(32, "big"), run, attempt, "online", 200, kind, raw, body)


def test_what_was_appended_is_found_byte_for_byte_also_later(tmp_path: Path) -> None:
    entries = [entry(number, b"\x00\xff{" + str(number).encode()) for number in range(40)]

    async def all_of_them(journal: Journal) -> list[int]:
        return list(await asyncio.gather(*(journal.append(one) for one in entries)))

    with Journal(tmp_path / "journal") as journal:
        numbers = asyncio.run(all_of_them(journal))
        assert sorted(numbers) == list(range(1, 41))
        assert journal.recall("job") is None
        for value in (b"1", b"2"):
            journal.remember("job", value)
    with Journal(tmp_path / "journal") as journal:
        assert journal.recall("job") == b"2"
        found = journal.found([one.key for one in entries] + [b"x" * 32], run="one")
    assert len(found) == 40
    assert "reply" in repr(entries[0]) and "judge" not in repr(entries[0]), "it shows not what was asked and said"
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
        assert journal.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert journal.connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert os.listdir(tmp_path / "journal") == ["replies.sqlite"]


def test_a_run_keeps_its_tag_through_kills_and_the_next_has_another(tmp_path: Path) -> None:
    place = Staging(tmp_path / "s", stage="test")
    work = Work({}, place.out, place.scratch, None, None)  # type: ignore[arg-type]
    tags = []
    for key in ("k1", "k1", "k2"):
        place.open(key)
        tags.append(run_tag(work))
        assert run_tag(work) == tags[-1]
    finish(place, "k2", b"x")
    place.open("k2")
    tags.append(run_tag(work))
    assert tags[0] == tags[1]
    assert len(set(tags)) == 3
    assert all(len(tag) == 16 for tag in tags)


IDENTITY = Identity("openai", "https://api.openai.com/v1", "chat/completions", "gpt-4o-mini")


class Verdict(msgspec.Struct, frozen=True):
    id: str
    verdict: str


class Other(msgspec.Struct, frozen=True):
    id: str


def image(content: bytes = b"png") -> Image:
    return Image(content, "image/png", hashlib.sha256(content).hexdigest(), 8, 8)


DATA, ALLOWED = {"id": "Q1", "label": "pho"}, {"id": ("Q1",)}
REQUEST = Request("cspace.filter", "Judge.", DATA, Verdict, ALLOWED, (image(),), sample=0, max_tokens=64)
CHANGED: dict[str, Any] = {
    "task": "image.judge",
    "instructions": "Judge!",
    "data": {"id": "Q1", "label": "phở"},
    "reply": Other,
    "allowed": {"id": ("Q2",)},
    "images": (image(b"other"),),
    "sample": 1,
    "max_tokens": 65,
    "weighed": ("Yes", "No"),
    "asks": msgspec.defstruct("Asked", [("id", str), ("why", str)]),
}
# Ours alone: it leaves in no body. Two tasks that send the same bytes ask the same question.
NOT_SENT = {"task"}


def compose(request: Request) -> Outgoing:
    body = {
        "system": request.instructions, "user": dict(request.data), "schema": msgspec.json.schema(request.schema_type),
        "allowed": {name: list(values) for name, values in request.allowed.items()},
        "images": [one.sha256 for one in request.images], "max_tokens": request.max_tokens,
        "weighed": list(request.weighed),
    }  # fmt: skip
    return Outgoing(canonical_json(body), request.images, request.sample, request.max_tokens)


def test_whatever_of_a_request_an_address_or_an_image_changes_the_key_is_another() -> None:
    assert set(CHANGED) == {field.name for field in fields(Request)}
    asked = [REQUEST, *(replace(REQUEST, **{name: CHANGED[name]}) for name in set(CHANGED) - NOT_SENT)]
    elsewhere = [replace(IDENTITY, **{one.name: getattr(IDENTITY, one.name) + "x"}) for one in fields(Identity)]
    keys = [key_of(IDENTITY, compose(one)) for one in asked] + [key_of(who, compose(REQUEST)) for who in elsewhere]
    other: dict[str, Any] = {"content": b"pnG", "media_type": "image/webp", "sha256": "0" * 64, "width": 9, "height": 9}
    assert set(other) == {field.name for field in fields(Image)}
    seen = [(replace(image(), **{name: value}),) for name, value in other.items()]
    a, b = image(b"a"), image(b"b")
    several = ((), (image(),), *seen, (a,), (b,), (a, b), (b, a), (a, a))
    keys += [key_of(IDENTITY, Outgoing(b"{}", images)) for images in several]
    assert len(set(keys)) == len(keys) == 26


@given(st.binary(max_size=64), st.binary(max_size=64), st.integers(0, 9), st.integers(0, 9))
def test_keys_are_equal_exactly_when_what_leaves_is_equal(one: bytes, other: bytes, first: int, second: int) -> None:
    same = (one, first) == (other, second)
    keys = key_of(IDENTITY, Outgoing(one, sample=first)), key_of(IDENTITY, Outgoing(other, sample=second))
    assert (keys[0] == keys[1]) is same
    assert len(keys[0]) == 32


def texts() -> RequestTexts:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript(TABLES)
    return RequestTexts(connection)


def stored(kept: RequestTexts) -> dict[bytes, bytes]:
    rows = kept.connection.execute(
        "SELECT key, CAST(head || middle || tail AS BLOB) FROM requests JOIN templates ON templates.number = template"
    )
    return dict(rows)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_shared_ends_are_ends_of_both_and_do_not_overlap(one: bytes, other: bytes) -> None:
    head, tail = shared_ends(one, other)
    assert one.startswith(head) and other.startswith(head)
    assert one.endswith(tail) and other.endswith(tail)
    assert len(head) + len(tail) <= min(len(one), len(other))
    left, right = (text[len(head) : len(text) - len(tail)] for text in (one, other))
    assert not left or not right or (left[0] != right[0] and left[-1] != right[-1])


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from([b"a" * 70, b"b" * 90, b"{}", b"Q1", b"\xff"]), max_size=5).map(b"".join)))
def test_every_body_comes_back_whatever_it_shares(bodies: list[bytes]) -> None:
    kept = texts()
    wanted = {number.to_bytes(32, "big"): body for number, body in enumerate(bodies)}
    for key, body in wanted.items():
        kept.numbers_of([(key, body)])
    assert stored(kept) == wanted


def test_constant_instructions_are_written_once() -> None:
    kept = texts()
    system = b"You judge candidates. " * 100
    openai = [(b"o%031d" % n, b'{"messages":["%b","Q%d"],"model":"m"}' % (system, n)) for n in range(500)]
    google = [(b"g%031d" % n, b'{"contents":"Q%d","systemInstruction":"%b"}' % (n, system)) for n in range(500)]
    mixed = [request for pair in zip(openai, google, strict=True) for request in pair]
    for start in range(0, len(mixed), 64):
        kept.numbers_of(mixed[start : start + 64])
    assert stored(kept) == dict(mixed)
    first = kept.numbers_of([mixed[0], mixed[0]])
    assert kept.numbers_of([mixed[0]]) == first, "a request is written once per key"
    assert kept.connection.execute("SELECT count(*) FROM requests").fetchone() == (1000,)
    (written,) = kept.connection.execute("SELECT sum(length(middle)) FROM requests").fetchone()
    (shared,) = kept.connection.execute("SELECT sum(length(head) + length(tail)) FROM templates").fetchone()
    assert written < 1000 * 50
    assert shared < 5 * len(system)


def test_a_template_is_added_only_where_it_saves_far_more_than_the_best_one() -> None:
    kept, rng = texts(), random.Random(1)
    for number in range(50):
        rest = rng.randbytes(600) if number < 40 else b"b" * 600 + rng.randbytes(900)
        kept.numbers_of([(b"k%031d" % number, b"a" * 200 + rest)])
        assert number >= 40 or len(kept.templates) <= 3
    assert max(template.saved for template in kept.templates) >= 800


WRITES_FOR_EVER = """
import asyncio, sys
from pathlib import Path
from culturekit.llm.journal import FILE, Entry, Reading
from culturekit.llm.journal import Journal
from tests.llm.test_journal import entry

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
from tests.llm.test_journal import entry

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
    if "CAST" in damage:
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
