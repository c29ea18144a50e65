"""What the journal keeps: an exchange as it happened, and what reading it afterwards said."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from culturekit.llm.client import Usage

__all__ = ["ANSWERS", "Entry", "Mode", "Reading"]

Mode: TypeAlias = Literal["online", "batch"]

ANSWERS = ("ok", "repaired")
"""The readings of a reply that serve other runs too."""


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
