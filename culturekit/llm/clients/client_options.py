"""What can be written behind the name of a client in a SPEC; checked without any SDK being there."""

import re
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from culturekit.llm.client import Quota
from culturekit.llm.clients.endpoints import check_base_url

__all__ = [
    "LONGEST_TIMEOUT",
    "PATIENCE",
    "Dialect",
    "GoogleOptions",
    "LocalOptions",
    "OpenAIOptions",
    "RemoteOptions",
    "ReplayOptions",
    "ServiceOptions",
]

LONGEST_TIMEOUT = 3600

Dialect: TypeAlias = Literal["openai", "vllm", "llamacpp", "ollama"]
"""Whose dialect of JSON schema a server speaks."""

Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Room: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]
Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=1)]
Temperature: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=2)]
Wait: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=LONGEST_TIMEOUT)]
Patience: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=7 * 86_400)]

PATIENCE = 900.0
"""Seconds without any reply after which a run is given up, where nothing else is stated."""

VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")
PRICE = re.compile(r"(?:\d+(?:\.\d*)?|\.\d+)/(?:\d+(?:\.\d*)?|\.\d+)")
NEVER_ANSWERS = ("timeout", "patience", "rpm", "tpm", "price", "image_price", "api_key")


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What every far service takes, whatever it answers with.

    `rpm` and `tpm` are requests and tokens a minute, `price` is USD per million tokens in and out, `timeout` is in
    seconds and counts from the first byte sent to the last received. `patience` is how many seconds the server may
    bring nothing before the run is given up, to be resumed later: 900, or two timeouts where these are longer.
    """

    base_url: str = ""
    api_key: str = ""
    rpm: Positive | None = None
    tpm: Positive | None = None
    price: str = ""
    timeout: Wait = 120.0
    patience: Patience | None = None

    def __post_init__(self) -> None:
        """Refuse what could never work, and every secret, without repeating it."""
        if self.api_key and not VARIABLE.fullmatch(self.api_key):
            raise ValueError(
                "api_key names an environment variable, such as ${MY_KEY}; the key itself never stands here"
            )
        if self.base_url:
            check_base_url(self.base_url)
        if self.price and not PRICE.fullmatch(self.price):
            raise ValueError("price is USD per million tokens in and out, such as 0.15/0.60")

    @property
    def key_variable(self) -> str:
        """Name the environment variable that holds the key; empty where the SPEC names none."""
        found = VARIABLE.fullmatch(self.api_key)
        return found["name"] if found else ""

    @property
    def quota(self) -> Quota:
        """Give the limits as the user stated them."""
        return Quota(self.rpm, self.tpm, self.patience or patience_for(self.timeout))

    def answering(self) -> dict[str, Any]:
        """Give what can change an answer, as far as it is set."""
        stated = {name: value for name, value in asdict(self).items() if name not in NEVER_ANSWERS}
        return {name: value for name, value in stated.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class RemoteOptions(ServiceOptions):
    """What all far clients that answer in words take.

    `max_tokens` replaces what a task asks for the answer; `thinking_budget` is allowed on top of it.
    """

    temperature: Temperature | None = None
    top_p: Share | None = None
    seed: int | None = None
    max_tokens: Count | None = None
    thinking_budget: Room | None = None


@dataclass(frozen=True, slots=True)
class OpenAIOptions(RemoteOptions):
    """What `openai:MODEL` takes; `schema` and `max_tokens_field` follow from the base URL unless they are given."""

    api: Literal["chat", "responses"] = "chat"
    schema: Dialect | None = None
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    detail: Literal["low", "high", "auto"] | None = None

    def __post_init__(self) -> None:
        """Refuse what the responses API does not know."""
        RemoteOptions.__post_init__(self)
        if self.api == "responses":
            for name in ("seed", "max_tokens_field"):
                if getattr(self, name) is not None:
                    raise ValueError(f"the responses API knows no {name}")


@dataclass(frozen=True, slots=True)
class GoogleOptions(RemoteOptions):
    """What `google:MODEL` takes."""

    api_version: Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+(alpha|beta)?[0-9]*$")] = "v1beta"
    thinking_level: Literal["minimal", "low", "medium", "high"] | None = None
    media_resolution: Literal["low", "medium", "high"] | None = None


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """What `replay:PATH` takes; `client` is the SPEC whose replies the journal at PATH holds."""

    client: str = ""
    run: str = ""
    miss: Literal["error", "default"] = "error"


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What `local:FOLDER` takes; without a temperature the likeliest token is taken each time."""

    temperature: Annotated[float, msgspec.Meta(gt=0, le=2)] | None = None
    top_p: Share | None = None
    seed: int = 0
    max_tokens: Count | None = None
    device: str = "auto"
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    timeout: Wait = 600.0

    @property
    def quota(self) -> Quota:
        """Give the time that one reply may take its turn in."""
        return Quota(patience=patience_for(self.timeout))


def patience_for(timeout: float) -> float:
    """Give how long silence is borne where nobody stated it: one reply that times out is always tried again."""
    return max(PATIENCE, 2.0 * timeout)
