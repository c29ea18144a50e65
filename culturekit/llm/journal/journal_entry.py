"""What the journal keeps under which key: an exchange as it happened, and what reading it afterwards said."""

import hashlib
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Literal, TypeAlias

from culturekit.llm.client import Identity, Image, Outgoing, Usage
from culturekit.storage.digests import canonical_json

__all__ = ["Entry", "Mode", "Reading", "key_of"]

STANDS_OTHERWISE = {"Outgoing": {"body", "images"}, "Image": {"content"}, "Identity": set[str]()}
"""What is left out of the listing of fields: the body and an image's bytes, which are hashed as bytes.

Everything else counts, a field that is added tomorrow too. Waits and numbers of tries stand in none of these.
"""


def listed(kind: type) -> tuple[str, ...]:
    """Name the fields of a type that count as they are."""
    return tuple(field.name for field in fields(kind) if field.name not in STANDS_OTHERWISE[kind.__name__])


OUTGOING, IMAGE, IDENTITY = listed(Outgoing), listed(Image), listed(Identity)


def key_of(identity: Identity, outgoing: Outgoing) -> bytes:
    """Hash what leaves: the same key is the same question to the same model at the same address.

    BLAKE2b, because half a million bodies of 2 kB are hashed in a replay, and on processors without instructions for
    SHA-256 that takes three times as long.
    """
    parts: dict[str, object] = {name: getattr(outgoing, name) for name in OUTGOING}
    if outgoing.images:
        parts["images"] = [image_parts(image) for image in outgoing.images]
    head = b"%b%b\n" % (identity_parts(identity), canonical_json(parts))
    return hashlib.blake2b(head + outgoing.body, digest_size=32).digest()


@lru_cache(maxsize=64)
def identity_parts(identity: Identity) -> bytes:
    """Write down whom a request goes to."""
    return canonical_json({name: getattr(identity, name) for name in IDENTITY}) + b"\n"


def image_parts(image: Image) -> dict[str, object]:
    """Write down an image by what it holds, not by what somebody says it holds."""
    parts: dict[str, object] = {name: getattr(image, name) for name in IMAGE}
    return parts | {"content": hashlib.sha256(image.content).hexdigest()}


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
