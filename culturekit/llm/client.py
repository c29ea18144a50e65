"""What a language model client is: a request with data in it, a reply with the usage it cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Client", "Reply", "Request", "Usage"]


@dataclass(frozen=True, slots=True)
class Request:
    """One question.

    `instructions` are ours and constant within a task. `data` comes from outside and is never
    trusted: a client sends it as escaped JSON, apart from the instructions. `answers` lists, per
    key of the reply, the values allowed; None allows any text.
    """

    task: str
    instructions: str
    data: Mapping[str, object]
    answers: Mapping[str, tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply cost, as the provider counts it."""

    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """The raw text of an answer; reading it is the caller's business."""

    text: str
    usage: Usage = Usage()


class Client(Protocol):
    """Something that answers requests."""

    @property
    def model(self) -> str:
        """What exactly answers."""
        ...

    @property
    def caveat(self) -> str:
        """What a reader of the result must know about this client; empty when nothing."""
        ...

    def ask(self, request: Request) -> Reply:
        """Answer one request."""
        ...
