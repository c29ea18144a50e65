"""What can be written behind `openai:MODEL`, `google:MODEL` and `service:FILE` where they make images."""

from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import msgspec

from culturekit.llm.clients.client_options import ServiceOptions

Rewriter: TypeAlias = Literal["on", "off", "unknown"]
_Amount: TypeAlias = Annotated[float, msgspec.Meta(ge=0, le=1000)]
_Count: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
_Candidates: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10)]
_Wait: TypeAlias = Annotated[float, msgspec.Meta(gt=0, le=3600)]
_Size: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,4}x[1-9][0-9]{0,4}$")]
_Ratio: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]?:[1-9][0-9]?$")]
_Scale: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,4}K?$")]
_Word: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_-]{1,32}$")]


@dataclass(frozen=True, slots=True)
class ImageOptions(ServiceOptions):
    """What both take.

    Attributes:
        image_price: USD per image, in place of all that a call costs; 0 for a server of your own.
        image_tokens: Output tokens that one image takes, for a `price` per token, where the list has no line.
        rewriter: What you know of a service that does not say whether it rewrites prompts.
        send_seed: Send the seed of an image; OpenAI and Google ignore or refuse it, a server of your own may not.
    """

    timeout: _Wait = 300.0
    image_price: _Amount | None = None
    image_tokens: _Count | None = None
    rewriter: Rewriter | None = None
    send_seed: bool = False


@dataclass(frozen=True, slots=True)
class OpenAIImageOptions(ImageOptions):
    """What `openai:MODEL` takes.

    Attributes:
        api: The images API, or `responses` for the image tool of a language model, which bills two models.
        size: Pixels, such as 1024x1024, which is the default.
        quality: Such as `low`, `medium`, `high`, `xhigh` or `max`; `medium` for GPT Image where nothing is stated.
        background: Sent as it is.
        output_format: Sent as it is.
        response_format: Sent as it is.
        moderation: Sent as it is.
        style: Sent as it is.
        n: Slots of one prompt and repeat that one call asks for.
    """

    api: Literal["images", "responses"] = "images"
    size: _Size | Literal["auto"] | None = None
    quality: _Word | None = None
    background: Literal["transparent", "opaque", "auto"] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    response_format: Literal["b64_json", "url"] | None = None
    moderation: Literal["auto", "low"] | None = None
    style: Literal["vivid", "natural"] | None = None
    n: _Candidates = 1

    def __post_init__(self) -> None:
        """Refuse what the responses API does not know."""
        ServiceOptions.__post_init__(self)
        if self.send_seed and self.n != 1:
            raise ValueError("a call has one seed: with send_seed leave n away")
        if self.api == "responses":
            if self.n != 1:
                raise ValueError("the responses API makes one image a call: leave n away")
            if self.send_seed or self.style is not None or self.response_format is not None:
                raise ValueError("the responses API knows no send_seed, style or response_format")


@dataclass(frozen=True, slots=True)
class GoogleImageOptions(ImageOptions):
    """What `google:MODEL` takes.

    Attributes:
        api_version: Version of the API; part of the key of a reply.
        aspect_ratio: Width to height, such as 16:9, as far as the model takes it; `--size 1344x768` says the same.
        image_size: Pixels of the longer side, in Google's words, such as 512, 1K, 2K or 4K.
        safety: From which level on Google's filters block.
    """

    api_version: Annotated[str, msgspec.Meta(pattern=r"^v[0-9]+(alpha|beta)?[0-9]*$")] = "v1beta"
    aspect_ratio: _Ratio | None = None
    image_size: _Scale | None = None
    safety: Literal["low", "medium", "high", "none"] | None = None


@dataclass(frozen=True, slots=True)
class ServiceImageOptions(ServiceOptions):
    """What `service:FILE.yaml` takes; all else stands in the file, of which `examples/services` has three.

    - `model`, `base_url`, `key` (`variable`, `header`, `prefix`), `hosts` that may see the key too: `.bfl.ai` is all
      below it.
    - `submit`: `url`, `body`, `encoding` (`json`, `multipart`), `headers`, and `keep`: names for parts of the reply,
      each by its JSON path, such as `data[0].id`, for later addresses. A body names `{prompt}`, `{negative}`, `{seed}`,
      `{seed31}` (31 bits of it), `{width}`, `{height}`, `{size}`; a header `{call}`, the same for each try of a call.
    - `poll`, for services that do not answer at once: `url`, the path of the `status`, the words for `done`, `refused`
      and `failed` (submitted once more), and the seconds `every` and `longest` between two looks.
    - `result`: the paths of `images` (addresses or base64), `revised` prompts, `reason`, `safe` and `version`; a last
      `url`, where the pictures stand in another reply.
    - `size`, where `--size` says nothing; `price` an image and `price_source`; `rpm`; `rewriter`.

    Attributes:
        timeout: Seconds for one call, from its submission to its end; a job that takes longer is asked after again.
        image_price: USD per image, in place of what the file says; 0 for a server of your own.
    """

    timeout: _Wait = 300.0
    image_price: _Amount | None = None

    def __post_init__(self) -> None:
        """Refuse what is about tokens."""
        ServiceOptions.__post_init__(self)
        if self.price or self.tpm is not None:
            raise ValueError("a service bills images, not tokens: state image_price in place of price, and no tpm")
