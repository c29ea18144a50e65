"""What a language model client is: a request composed to bytes that leave, the bytes that come back, what these say.

A client is asked in four steps, so that what was paid for is on disk before anybody looks into it: `compose` a request,
`send` it, let the engine journal the raw bytes, then `read` them. Free clients that answer in this process only `ask`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import msgspec

LONGEST_TIMEOUT = 3600
PATIENCE = 900.0  # seconds without any reply after which a run is given up, where nothing else is stated
# The shape of a reply: a frozen msgspec struct whose fields are texts, numbers, enums, lists or structs of them.
Answers: TypeAlias = type[msgspec.Struct]
# Why a model stopped: it was done; it ran out of tokens; it declined; a filter stopped it; the bytes say nothing.
Stop: TypeAlias = Literal["end", "length", "refusal", "blocked", "unreadable"]
# `busy`, `server`, `timeout`, `connection` may pass; `rejected` and `blocked` close the row; `fatal` ends the run.
FailureKind: TypeAlias = Literal["busy", "server", "timeout", "connection", "rejected", "blocked", "fatal"]


@dataclass(frozen=True, slots=True)
class Image:
    """A picture that goes with a request; it is known by its content."""

    content: bytes = field(repr=False)
    media_type: str
    sha256: str
    width: int
    height: int


@dataclass(frozen=True, slots=True)
class Request:
    """One question.

    `instructions` are ours and constant within a task. `data` comes from outside and is never trusted: a client sends
    it as escaped JSON, fenced, apart from the instructions. `reply` is the shape of the answer; `allowed` lists, for
    some of its keys, the values that this very request allows, such as the id it is about. `asks` is a narrower shape
    than `reply`, where there is one: it goes into the schema, so that a server which enforces that brings no more than
    was asked for, while what a reply has too much is left to the task. `sample` tells apart
    several answers to the same question. With `weighed` no answer in words is wanted, but how probable the reply begins
    with each of these texts: the shape is then a listing of tokens, and the reply's `tokens` fill it.
    """

    task: str
    instructions: str
    data: Mapping[str, object]
    reply: Answers
    allowed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    images: Sequence[Image] = ()
    sample: int = 0
    max_tokens: int = 256
    weighed: tuple[str, ...] = ()
    asks: Answers | None = None

    @property
    def schema_type(self) -> Answers:
        """The shape that the schema is made from."""
        return self.asks or self.reply


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply cost, as the provider counts it; `counted` is `here` where its counts are missing or not believed.

    Thinking tokens are part of the output tokens, cached tokens part of the input tokens. `doubt` says which of them
    cannot be true. A budget reckons with the worst where tokens were counted here, since nobody knows what is billed.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    counted: Literal["provider", "here"] = "provider"
    doubt: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """What the raw bytes of a reply say: its text, why it ended, what it cost.

    `tokens` are beginnings of the reply and the natural logarithms of their probabilities, where these were asked for.
    """

    text: str
    usage: Usage = Usage()
    stop: Stop = "end"
    detail: str = ""
    model_version: str = ""
    tokens: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """What leaves for a request: the body as JSON, in which each image stands as its SHA-256.

    `body` is canonical JSON: keys sorted, no white space. It is what the key of a reply is made from, what the log
    shows, and what `send` makes the wire's bytes of. `sample` is not sent, but tells keys apart. `max_tokens` is the
    most that can come back.
    """

    body: bytes
    images: Sequence[Image] = ()
    sample: int = 0
    max_tokens: int = 256


@dataclass(frozen=True, slots=True)
class Identity:
    """Whom a request goes to; part of every key. `base_url` carries no credentials."""

    provider: str
    base_url: str
    endpoint: str
    model: str


@dataclass(frozen=True, slots=True)
class Quota:
    """What a provider allows a minute, and how many seconds it may be silent, as far as the user stated it."""

    requests: float | None = None
    tokens: float | None = None
    patience: float | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """US dollars per million tokens; `batch` is what a batch costs of it, `cached` the price of cached input."""

    input: float
    output: float
    batch: float = 0.5
    source: str = ""
    cached: float | None = None


@dataclass(eq=False, repr=False)
class Failure(Exception):
    """A request that brought no reply; `wait` is the hint of the server, in seconds, where it gave one.

    `raw` is the body of the error as it came, for the journal; `fatal` failures say in `detail` what to do. A request
    that was not `sent` reached nobody: its row was not asked, and it cannot have been sold. `patience` is for how many
    seconds it is worth asking again, where that is less than usual.
    """

    kind: FailureKind
    detail: str
    _: KW_ONLY
    status: int = 0
    wait: float | None = None
    raw: bytes = b""
    sent: bool = True
    patience: float | None = None

    def __post_init__(self) -> None:
        """Say the detail only."""
        super().__init__(self.detail)

    @property
    def may_be_sold(self) -> bool:
        """Whether the provider may have done the work although nothing came of it."""
        return self.sent and self.kind in {"timeout", "connection"}


@runtime_checkable
class FreeClient(Protocol):
    """A client that answers in this process, free of charge and always the same; it needs no journal."""

    @property
    def model(self) -> str:
        """What exactly answers."""

    @property
    def caveat(self) -> str:
        """What a reader of the result must know about this client; empty when nothing."""

    def ask(self, request: Request) -> Reply:
        """Answer one request."""


@runtime_checkable
class Client(Protocol):
    """Something far away that answers requests for money, or for time."""

    @property
    def identity(self) -> Identity:
        """Whom the requests go to."""

    @property
    def model(self) -> str:
        """What exactly answers."""

    @property
    def caveat(self) -> str:
        """What a reader of the result must know about this client; empty when nothing."""

    @property
    def options(self) -> Mapping[str, object]:
        """Give the options that decide answers; they are part of the key of a stage, and hold no secrets."""

    @property
    def quota(self) -> Quota:
        """What the provider allows."""

    @property
    def rate(self) -> Rate | None:
        """What tokens cost; None where neither the SPEC nor the price list says."""

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it will leave; nothing is sent."""

    async def send(self, outgoing: Outgoing) -> bytes:
        """Send once and give the raw bytes of the reply, whatever they say.

        Raises:
            Failure: there is no reply.
        """

    def read(self, raw: bytes) -> Reply:
        """Read the raw bytes of a reply; bytes that cannot be read are a reply with the stop `unreadable`."""

    async def close(self) -> None:
        """Close the connections."""


@runtime_checkable
class KeyHolder(Protocol):
    """A client that may hold a key, and keeps it out of what is stored."""

    def ready(self) -> None:
        """Check that a request could be sent; nothing is sent.

        Raises:
            MissingDependency: an SDK or a key is not there.
        """

    def without_key(self, received: bytes) -> bytes:
        """Take the key out of what a server echoes."""


def for_storage(client: Client, raw: bytes) -> bytes:
    """Return what may be stored of bytes that a client brought."""
    return client.without_key(raw) if isinstance(client, KeyHolder) else raw


def how_cut(reply_text: str) -> str:
    """Tell a reply that was too long from one that was only white space, and from one that was only thought."""
    if not reply_text:
        return "nothing was said within the limit of tokens"
    if len(reply_text.rstrip()) * 2 < len(reply_text):
        return "white space up to the limit of tokens"
    return "cut off at the limit of tokens"
