"""What can be written behind the name of a client in a SPEC; checked without any SDK being there."""

import re
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from culturekit.core.literal_keys import NAMED_KEY
from culturekit.llm.client import LONGEST_TIMEOUT, PATIENCE, Quota
from culturekit.llm.endpoints import check_base_url

Dialect: TypeAlias = Literal["openai", "vllm", "llamacpp", "ollama"]  # whose dialect of JSON schema a server speaks
_Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
_Room: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
_Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Temperature: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=2)]
_Wait: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_TIMEOUT)]
_Patience: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=7 * 86_400)]

_PRICE = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)/(?:\d+(?:\.\d*)?|\.\d+)")
_NEVER_ANSWERS = ("timeout", "patience", "rpm", "tpm", "price", "image_price", "api_key")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What every far service takes, whatever it answers with.

    Attributes:
        base_url: Address of the server, where it is not the provider's own; no key and no `?` in it.
        api_key: Name of the variable that holds the key, as `${MY_KEY}`; else the provider's usual ones.
        rpm: Requests a minute that the account allows.
        tpm: Tokens a minute that the account allows.
        price: USD per million tokens in and out, such as 0.15/0.60; else that of the dated list.
        timeout: Seconds from the first byte sent to the last received; connecting may take half of them, 10 at most.
        patience: Seconds that the server may bring nothing before the run is given up with exit code 3, to be resumed
            later: 900, or two timeouts where these are longer.
    """

    base_url: str = ""
    api_key: str = ""
    rpm: _Positive | None = None
    tpm: _Positive | None = None
    price: str = ""
    timeout: _Wait = 120.0
    patience: _Patience | None = None

    def __post_init__(self) -> None:
        """Reject what could never work, and every secret, without repeating it."""
        if self.api_key and not NAMED_KEY.fullmatch(self.api_key):
            raise ValueError(
                "api_key names an environment variable, such as ${MY_KEY}; the key itself never stands here"
            )
        if self.base_url:
            check_base_url(self.base_url)
        if self.price and not _PRICE.fullmatch(self.price):
            raise ValueError("price is USD per million tokens in and out, such as 0.15/0.60")

    @property
    def key_variable(self) -> str:
        """Name the environment variable that holds the key; empty where the SPEC names none."""
        found = NAMED_KEY.fullmatch(self.api_key)
        return found[1] if found else ""

    @property
    def quota(self) -> Quota:
        """Return the limits as the user stated them."""
        return Quota(self.rpm, self.tpm, self.patience or _patience_for(self.timeout))

    def answering(self) -> dict[str, Any]:
        """Return what can change an answer, as far as it is set."""
        stated = {name: value for name, value in asdict(self).items() if name not in _NEVER_ANSWERS}
        return {name: value for name, value in stated.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class RemoteOptions(ServiceOptions):
    """What all far clients that answer in words take.

    Attributes:
        temperature: How freely a reply is drawn: 0 where the model is known to take one, else not sent.
        top_p: The share of likely tokens that a reply is drawn from; else not sent.
        seed: Sample n of a question is drawn from seed + n; else not sent.
        max_tokens: Tokens of the answer, in place of what the task asks for.
        thinking_budget: Tokens for thinking, on top of the answer's: 4096 for models that think, else 0.
    """

    temperature: _Temperature | None = None
    top_p: _Share | None = None
    seed: int | None = None
    max_tokens: Count | None = None
    thinking_budget: _Room | None = None


@dataclass(frozen=True, slots=True)
class OpenAIOptions(RemoteOptions):
    """What `openai:MODEL` takes: OpenAI, or with `base_url` any server that speaks its chat completions.

    - refused: a `refusal`. Truncated: `length`, `max_output_tokens`. Invalid: 400, 413, 422.
    - blocked: `content_filter`, or a policy's code in an HTTP 400.
    - asked again, after the server's hint: 408, 409, 429, 5xx, broken connections, an error or nothing inside a 200.
    - the run ends: 401, 403, 404, no credit, an option that the model does not take.

    Attributes:
        api: Chat completions, or the responses API with `store: false`, which has no seed.
        schema: Whose dialect of JSON schema the server speaks; `openai` where nothing is stated.
        max_tokens_field: How the limit of tokens is called; it follows from the base URL.
        reasoning_effort: How much the model thinks, in a word that it is known to take; else not sent.
        detail: How closely images are looked at; else not sent.
    """

    api: Literal["chat", "responses"] = "chat"
    schema: Dialect | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    detail: Literal["low", "high", "auto"] | None = None

    def __post_init__(self) -> None:
        """Reject what the responses API does not know."""
        RemoteOptions.__post_init__(self)
        if self.api == "responses":
            for name in ("seed", "max_tokens_field"):
                if getattr(self, name) is not None:
                    raise ValueError(f"the responses API knows no {name}")


@dataclass(frozen=True, slots=True)
class GoogleOptions(RemoteOptions):
    """What `google:MODEL` takes: `generateContent` of Gemini, never Vertex AI.

    - blocked: a `blockReason`, or a `finishReason` of `SAFETY`, `RECITATION`, `BLOCKLIST`, `PROHIBITED_CONTENT`,
      `SPII`, `OTHER` or one not known. Truncated: `MAX_TOKENS`, said apart whether cut, white space, or only thought.
    - asked again, after `RetryInfo`: 429, 5xx, no candidates and no reason, `MALFORMED_...`.
    - the run ends: an invalid key (a 400 there), 403, 404.

    Thoughts are billed as output, and left out of the text; 2.5 Flash is asked not to think.

    Attributes:
        api_version: Version of the API; part of the key of a reply.
        thinking_level: How much Gemini 3 thinks; else not sent.
        media_resolution: How closely images are looked at; else not sent.
    """

    api_version: Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+(alpha|beta)?[0-9]*$")] = "v1beta"
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = None
    media_resolution: Literal["low", "medium", "high"] | None = None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    r"""What `replay:PATH` takes: the folder of a finished run, whose journal is only read, or a file of JSON lines.

    Other data, wording or options find no reply in a journal. A file has one line a reply:

    ```json
    {"task": "cspace.filter", "id": "Q1", "text": "{\"id\":\"Q1\",\"verdict\":\"keep\"}"}
    {"task": "cspace.filter", "id": "Q2", "sample": 1, "reply": {"id": "${id}", "verdict": "remove"}}
    {"task": "cspace.filter", "id": "Q3", "text": "", "stop": "refusal"}
    {"task": "cspace.filter", "reply": {"id": "${id}", "verdict": "review"}}
    ```

    `stop` is `end`, `length`, `refusal`, `blocked` or `unreadable`. The line without an id answers all other rows with
    `miss=default`. `key` (hex) can replace `task` and `id`, together with `client`.

    Attributes:
        client: The SPEC whose replies the journal at PATH holds, its `?` and `&` written `%3F` and `%26`.
        run: Tag of the one run whose replies are taken.
        miss: What a row without a reply does: end the run, or take the file's line without an id.
    """

    client: str = ""
    run: str = ""
    miss: Literal["error", "default"] = "error"


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What `local:FOLDER` takes: a transformers model, text or vision, by its own chat template; nothing is downloaded.

    It is known by the hash of its folder. No schema is enforced while it writes.

    Attributes:
        temperature: How freely a reply is drawn; without it the likeliest token is taken each time.
        top_p: The share of likely tokens that a reply is drawn from.
        seed: Sample n of a question is drawn from seed + n.
        max_tokens: Tokens of the answer, in place of what the task asks for.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        dtype: The numbers it is computed in.
        timeout: Seconds for one reply.
    """

    temperature: Annotated[float, msgspec.Meta(gt=0, le=2)] | None = None
    top_p: _Share | None = None
    seed: int = 0
    max_tokens: Count | None = None
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    timeout: _Wait = 600.0

    @property
    def quota(self) -> Quota:
        """Return the time that one reply may take its turn in."""
        return Quota(patience=_patience_for(self.timeout))


def _patience_for(timeout: float) -> float:
    """Return how long silence is borne where nobody stated it: one reply that times out is always tried again."""
    return max(PATIENCE, 2.0 * timeout)
