"""What a server is told to do: a small declarative schedule, in Python or in JSON."""

from typing import Literal, TypeAlias

import msgspec

# What happens to the connection.
CONNECTION_FAULTS = {
    "stall": "nothing comes for `delay` seconds (None: for ever), then the normal reply",
    "drop-before": "the connection is cut before the request is worked on; nothing is billed",
    "drop-inside": "the connection is cut in the middle of the reply, which is billed",
    "drop-after": "the work is done and billed, the connection cut before a byte of the reply",
    "drip": "the reply comes in small pieces over `delay` seconds",
}
# Replies that say no: their status and what they mean.
STATUS_FAULTS: dict[str, tuple[int, str]] = {
    "busy": (429, "too many requests, with a `hint` of `wait` seconds"),
    "insufficient-quota": (429, "the account is out of money; waiting does not help"),
    "server-error": (500, "an internal error"),
    "unavailable": (503, "the service is overloaded, with a `hint` of `wait` seconds"),
    "gateway-timeout": (504, "a gateway timeout"),
    "unauthorized": (401, "the key is not known"),
    "key-invalid": (400, "the key is not known, as Google says it"),
    "forbidden": (403, "the key may not do this"),
    "not-found": (404, "there is no such model"),
    "bad-request": (400, "the request is not valid: an invalid argument, which `text` names"),
    "content-policy": (400, "the request was rejected by the safety system"),
    "moderation": (400, "the prompt was blocked before an image was made, as gpt-image says it"),
    "too-large": (413, "the request is too large"),
}
# Damage to the body around the answer.
BODY_FAULTS = {
    "broken-json": "200, the JSON ends in the middle",
    "empty-body": "200, no body at all",
    "deep-envelope": "200, lists in lists, `size` deep (100,000), where an answer belongs",
    "error-in-200": "200, an error object inside",
    "html-page": "200, a page for people",
    "null-content": "200, the text is null",
    "no-choices": "200, a list of no choices or candidates",
    "no-usage": "200, no usage in the reply; it is billed all the same",
}
# Ways a model stops that are not the normal one.
ANSWER_FAULTS = {
    "truncated": "the answer ends at the limit of tokens",
    "truncated-empty": "thinking used up all tokens, so there is no text",
    "refusal": "the model declines (a refusal field; plain text where there is no such field)",
    "content-filter": "a filter stopped the answer",
    "recitation": "the answer was stopped as a recitation",
    "prohibited": "the answer was stopped as prohibited content",
    "prompt-blocked": "the question was blocked, `text` names the reason; no candidates",
    "no-candidates": "no candidates and no reason",
    "white-space": "white space without end, until the limit of tokens",
}
# What a model says that is not an answer. `text` names the key that is meant, where one is. They come whole, however
# long, and are billed no more than the limit of tokens.
TEXT_FAULTS = {
    "says": "the model says `text`, in which {id} stands for the row's id",
    "wrong-id": "an id that was never given",
    "missing-key": "one key too few",
    "duplicate-key": "a key twice, with two values",
    "not-in-enum": "a value that the schema does not list",
    "prose": "a sentence, no JSON",
    "code-fence": "the JSON within a code fence",
    "prose-around": "the JSON within sentences",
    "long-string": "a string of `size` bytes (10 MB)",
    "deep-nesting": "lists in lists, `size` deep (100,000)",
    "nan": "NaN among the values",
    "lone-surrogate": "half a surrogate pair among the texts",
    "array": "the object in a list",
    "null": "null instead of the object",
}
FAULT_KINDS: dict[str, str] = {
    "none": "nothing; a rule with it keeps later rules away",
    **CONNECTION_FAULTS,
    **{kind: f"{status}: {meaning}" for kind, (status, meaning) in STATUS_FAULTS.items()},
    **BODY_FAULTS,
    **ANSWER_FAULTS,
    **TEXT_FAULTS,
}

# What can happen to a request that asks no model: files, batches, models.
PLAIN_FAULTS = frozenset(
    {*CONNECTION_FAULTS, *STATUS_FAULTS}
    | {"broken-json", "deep-envelope", "empty-body", "error-in-200", "html-page", "none"}
)
# What can happen to a line of a batch.
_OF_WHOLE_BODIES = {"broken-json", "deep-envelope", "empty-body", "html-page"}
LINE_FAULTS = frozenset(FAULT_KINDS) - frozenset(CONNECTION_FAULTS) - _OF_WHOLE_BODIES


Hint: TypeAlias = Literal["none", "retry-after", "retry-after-date", "retry-after-ms", "retry-info"]
Provider: TypeAlias = Literal["openai", "google"]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


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
    both from 1, as [first, last]; lines of batches are counted apart. `operations` are names such as `chat`,
    `responses`, `generate`, `files.create`, `batches.create`, `batch-line`; `contains` must occur in the body.
    """

    rows: tuple[str, ...] = ()
    row_matches: str = ""
    share: float = 1.0
    salt: str = ""
    attempts: tuple[int, int | None] = (1, None)
    requests: tuple[int, int | None] = (1, None)
    every: int = 1
    providers: tuple[Provider, ...] = ()
    operations: tuple[str, ...] = ()
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


class JobPlan(_Part, frozen=True):
    """How a batch job goes. It ends after `polls` looks at it; `share` of its lines are then done."""

    ends: Literal["completed", "expired", "failed", "cancelled"] = "completed"
    polls: int = 1
    share: float = 1.0
    shuffled: bool = False
    missing: float = 0.0
    duplicated: float = 0.0
    misnamed: float = 0.0
    swapped: float = 0.0
    salt: str = ""
    unsaid: bool = False  # the job is made, but the connection is cut before its id is told


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
    `ignores_schema` is a server that answers 200 without enforcing the schema. `keys` are the API keys that are let in;
    none stated: any.
    """

    rules: tuple[Rule, ...] = ()
    jobs: tuple[JobPlan, ...] = ()
    job: JobPlan = JobPlan()
    pictures: Pictures = Pictures()
    latency: float = 0.0
    jitter: float = 0.0
    thinking: int = 0
    cached: float = 0.0
    ignores_schema: bool = False
    keys: tuple[str, ...] = ()
