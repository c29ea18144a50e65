"""How a row of questions can end: each in exactly one of these ways, with its raw reply."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import msgspec

__all__ = ["FENCED", "OUTCOMES", "Answered", "RowOutcome"]

RowOutcome: TypeAlias = Literal[
    "ok", "repaired", "refused", "blocked", "truncated", "invalid", "exhausted", "over-budget"
]

OUTCOMES: dict[RowOutcome, str] = {
    "ok": "the first reply that could be read was an answer",
    "repaired": "the answer came after the model was told what was wrong with its reply",
    "refused": "the model declined to answer",
    "blocked": "a filter of the provider stopped the question or the answer",
    "truncated": "the reply ended at the limit of its tokens",
    "invalid": "what came back is not an answer, also after one repair, or the provider rejected the request",
    "exhausted": "no reply came in as many tries as are allowed",
    "over-budget": "the money allowed would not have covered the question",
}


FENCED = "fenced"
"""The detail of an answer whose code fence was taken off here."""


@dataclass(frozen=True, slots=True)
class Answered:
    """How one request ended. `value` is there for `ok` and `repaired` only; `raw` is the text of the last reply.

    `detail` says why there is no answer, or, as `fenced`, what was done here to read one.
    """

    outcome: RowOutcome
    value: msgspec.Struct | None = None
    detail: str = ""
    raw: str = ""
    bought: bool = False
    """Whether anything was sent for it in this run; False when the journal had all of it."""
