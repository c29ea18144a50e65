"""What a server is told to do: a small declarative schedule, in Python or in JSON."""

from typing import Any, Literal, TypeAlias

import msgspec

from tests.llm.server.fault_kinds import FAULT_KINDS, LINE_FAULTS

__all__ = ["Fault", "Hint", "JobPlan", "Pictures", "Prices", "Quota", "Rule", "Script", "When", "script_from_json"]

Hint: TypeAlias = Literal["none", "retry-after", "retry-after-date", "retry-after-ms", "x-ratelimit", "retry-info"]
Provider: TypeAlias = Literal["openai", "google"]
Dialect: TypeAlias = Literal["openai", "vllm", "llamacpp", "ollama"]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a script; unknown fields are a mistake of the writer."""


class Fault(_Part, frozen=True):
    """What goes wrong, see `fault_kinds`.

    `hint` and `wait` go with the kinds `busy`, `overloaded` and every other status; `delay` comes before any kind
    (None: for ever); `text` is what the model says for the kind `says`, or the word a kind is about; `size` is the
    length of long strings and white space, and the depth of nesting.
    """

    kind: str
    hint: Hint = "none"
    wait: float = 0.0
    delay: float | None = 0.0
    text: str = ""
    size: int = 0

    def __post_init__(self) -> None:
        """Refuse kinds nobody knows."""
        if self.kind not in FAULT_KINDS:
            raise ValueError(f"no fault is called {self.kind!r}; known: {', '.join(sorted(FAULT_KINDS))}")


class When(_Part, frozen=True):
    """Which requests a rule is about: those that meet every condition stated.

    `rows` are ids of rows, `row_matches` a regular expression they match, `share` a share of all rows drawn by the
    hash of id and `salt`. `attempts` counts the requests for a row, `requests` all requests since the script began,
    both from 1, as [first, last]; lines of batches are counted apart. `since` and `until` are seconds since the script
    began. `operations` are names such as `chat`, `responses`, `generate`, `files.create`, `batches.create`,
    `batch-line`; `contains` must occur in the body.
    """

    rows: tuple[str, ...] = ()
    row_matches: str = ""
    share: float = 1.0
    salt: str = ""
    attempts: tuple[int, int | None] = (1, None)
    requests: tuple[int, int | None] = (1, None)
    every: int = 1
    since: float = 0.0
    until: float | None = None
    providers: tuple[Provider, ...] = ()
    operations: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    modes: tuple[Literal["online", "batch"], ...] = ()
    contains: str = ""


class Rule(_Part, frozen=True):
    """When something goes wrong, what does; `times` limits how often, None: always. The first rule that fits wins."""

    then: Fault
    when: When = When()
    times: int | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that could never come true."""
        if self.when.modes == ("batch",) and self.then.kind not in LINE_FAULTS:
            raise ValueError(f"a line of a batch cannot be {self.then.kind!r}; a connection can")


class Quota(_Part, frozen=True):
    """What the server allows each model in `period` seconds, enforced over a sliding window or a token bucket."""

    requests: float | None = None
    tokens: float | None = None
    period: float = 60.0
    kind: Literal["window", "bucket"] = "window"
    burst: float = 1.0
    """How much of a period's allowance a bucket holds."""
    hint: Hint = "retry-after-ms"
    counts: Literal["provider", "asked", "input", "used"] = "provider"
    """Which tokens count: input and the most that may come out (as OpenAI), input only (as Google), or what is used."""


class JobPlan(_Part, frozen=True):
    """How a batch job goes. It ends after `polls` looks at it and `seconds`; `share` of its lines are then done."""

    ends: Literal["completed", "expired", "failed", "cancelled"] = "completed"
    polls: int = 1
    seconds: float = 0.0
    share: float = 1.0
    shuffled: bool = False
    missing: float = 0.0
    duplicated: float = 0.0
    misnamed: float = 0.0
    swapped: float = 0.0
    salt: str = ""
    reason: str = "internal_error"
    """Why a job that is to fail does, as a code of the provider's: `token_limit_exceeded`, for one."""
    rest_told: bool = True
    """Whether the error file names the lines that were not done."""
    unsaid: bool = False
    """The job is made, but the connection is cut before its id is told."""


class Prices(_Part, frozen=True):
    """US dollars per million tokens; `batch` is what a batch costs of it, `cached` what a cached token does."""

    input: float = 0.15
    output: float = 0.60
    cached: float = 0.5
    batch: float = 0.5


class Pictures(_Part, frozen=True):
    """How image models answer.

    `form` is what a picture is; `more` is how many there are beyond those asked for, below zero too few; `address`,
    with {digest} and {place} in it, stands in place of base64. At such an address of this server: `busy` times a 503,
    then a `status`, a `type` of content, so many zeros of `padding`, or a redirect to where it `moves`.
    """

    form: Literal["png", "jpeg", "webp", "page", "bomb", "cut", "svg", "none", "torn"] = "png"
    side: int = 16
    more: int = 0
    revised: bool = False
    address: str = ""
    busy: int = 0
    status: int = 200
    type: str = ""
    padding: int = 0
    moves: str = ""


class Script(_Part, frozen=True):
    """All a server is told. `jobs` are the plans of the jobs in the order of their making, then `job` for all others.

    `thinking` tokens are billed with every answer, `cached` is the share of the input said to have been cached.
    `ignores_schema` is a server that answers 200 without enforcing the schema. `page` is how many jobs a list tells
    at most. `keys` are the API keys that are let in; none stated: any.
    """

    rules: tuple[Rule, ...] = ()
    quota: Quota | None = None
    jobs: tuple[JobPlan, ...] = ()
    job: JobPlan = JobPlan()
    prices: Prices = Prices()
    pictures: Pictures = Pictures()
    latency: float = 0.0
    jitter: float = 0.0
    thinking: int = 0
    cached: float = 0.0
    dialect: Dialect = "openai"
    ignores_schema: bool = False
    models: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    page: int = 20
    salt: str = ""
    context: int = 128_000


def script_from_json(text: bytes | str) -> Script:
    """Read a script from JSON.

    Raises:
        msgspec.ValidationError: naming the place of what is not a part of a script.
    """
    return msgspec.json.decode(text, type=Script)


def script_to_builtins(script: Script) -> Any:
    """Give a script as plain values, for JSON."""
    return msgspec.to_builtins(script)
