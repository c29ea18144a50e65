"""Whatever of a request changes what leaves, changes its key."""

import hashlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import canonical_json
from culturekit.core.stage_folder import Staging
from culturekit.core.work import Work
from culturekit.llm.client import Identity, Image, Outgoing, Request
from culturekit.llm.journal import run_tag
from culturekit.llm.journal_file import key_of
from tests.core.test_stage_folder import finish


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


REQUEST = Request(
    "cspace.filter",
    "Judge.",
    {"id": "Q1", "label": "pho"},
    Verdict,
    {"id": ("Q1",)},
    (image(),),
    sample=0,
    max_tokens=64,
)
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
NOT_SENT = {"task"}
"""Ours alone: it leaves in no body. Two tasks that send the same bytes ask the same question."""


def compose(request: Request) -> Outgoing:
    """Write a request as a provider's body would hold it."""
    body = {
        "system": request.instructions,
        "user": dict(request.data),
        "schema": msgspec.json.schema(request.schema_type),
        "allowed": {name: list(values) for name, values in request.allowed.items()},
        "images": [one.sha256 for one in request.images],
        "max_tokens": request.max_tokens,
        "weighed": list(request.weighed),
    }
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
    keys = {key_of(IDENTITY, Outgoing(b"{}", images)) for images in ((), (a,), (b,), (a, b), (b, a), (a, a))}
    assert len(keys) == 6


@given(st.binary(max_size=64), st.binary(max_size=64), st.integers(0, 9), st.integers(0, 9))
def test_keys_are_equal_exactly_when_what_leaves_is_equal(one: bytes, other: bytes, first: int, second: int) -> None:
    same = (one, first) == (other, second)
    keys = key_of(IDENTITY, Outgoing(one, sample=first)), key_of(IDENTITY, Outgoing(other, sample=second))
    assert (keys[0] == keys[1]) is same
    assert len(keys[0]) == 32
