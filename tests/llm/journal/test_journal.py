"""Whatever of a request changes what leaves, changes its key."""

import asyncio
import hashlib
import os
import random
import sqlite3
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.digests import canonical_json
from culturekit.core.stage import Staging, Work
from culturekit.llm.client import Identity, Image, Outgoing, Request, Usage
from culturekit.llm.journal import TABLES, Entry, Journal, Reading, RequestTexts, key_of, run_tag, shared_ends
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
    "asks": Other,
}
# Ours alone: it leaves in no body. Two tasks that send the same bytes ask the same question.
NOT_SENT = {"task"}


def compose(request: Request) -> Outgoing:
    """Write a request as a provider's body would hold it."""
    body = {
        "system": request.instructions, "user": dict(request.data), "schema": msgspec.json.schema(request.schema_type),
        "allowed": {name: list(values) for name, values in request.allowed.items()},
        "images": [one.sha256 for one in request.images], "max_tokens": request.max_tokens,
        "weighed": list(request.weighed),
    }  # fmt: skip
    return Outgoing(canonical_json(body), request.images, request.sample, request.max_tokens)


def test_every_field_of_a_request_is_tried() -> None:
    assert set(CHANGED) == {field.name for field in fields(Request)}


@pytest.mark.parametrize("name", sorted(set(CHANGED) - NOT_SENT))
def test_a_changed_request_has_another_key(name: str) -> None:
    changed = replace(REQUEST, **{name: CHANGED[name]})
    assert key_of(IDENTITY, compose(changed)) != key_of(IDENTITY, compose(REQUEST))


@pytest.mark.parametrize("name", [field.name for field in fields(Identity)])
def test_another_address_is_another_key(name: str) -> None:
    other = replace(IDENTITY, **{name: getattr(IDENTITY, name) + "x"})
    assert key_of(other, compose(REQUEST)) != key_of(IDENTITY, compose(REQUEST))


@pytest.mark.parametrize("field", fields(Image), ids=lambda field: field.name)
def test_an_image_counts_with_everything_it_is(field: Any) -> None:
    change: Any = {"content": b"pnG", "media_type": "image/webp", "sha256": "0" * 64, "width": 9, "height": 9}[
        field.name
    ]
    one, other = (Outgoing(b"{}", (picture,)) for picture in (image(), replace(image(), **{field.name: change})))
    assert key_of(IDENTITY, other) != key_of(IDENTITY, one)


def test_the_order_and_number_of_images_count() -> None:
    a, b = image(b"a"), image(b"b")
    assert len({key_of(IDENTITY, Outgoing(b"{}", images)) for images in ((), (a,), (b,), (a, b), (b, a), (a, a))}) == 6


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


def test_a_request_is_written_once_per_key() -> None:
    kept = texts()
    first = kept.numbers_of([(b"k" * 32, b"body"), (b"k" * 32, b"body")])
    assert kept.numbers_of([(b"k" * 32, b"body")]) == first
    assert kept.connection.execute("SELECT count(*) FROM requests").fetchone() == (1,)
