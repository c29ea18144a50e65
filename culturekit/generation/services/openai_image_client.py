"""Image models of OpenAI, and of every server that speaks its protocol: the images API, or the tool of responses."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.generation.image_options import OpenAIImageOptions
from culturekit.generation.picture_store import KEPT
from culturekit.generation.services.image_client import (
    ROWS_OF_A_JOB,
    URL,
    Candidate,
    ImageClient,
    ImagePrice,
    KeptResults,
    price_of_images,
    reply_with,
    reply_without,
)
from culturekit.llm.batches import BatchClient, BatchLimits
from culturekit.llm.client import Identity, Outgoing, Reply, Request
from culturekit.llm.clients.openai_client import OpenAIBatches, OpenAIClient, OpenAIConnection
from culturekit.llm.clients.remote_client import WireFormat, model_of
from culturekit.llm.endpoints import OPENAI
from culturekit.llm.failures import shortened
from culturekit.llm.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.models import habits_of, model_for
from culturekit.llm.usage import stated_usage

_ENDPOINTS = {"images": "/images/generations", "responses": "/responses"}
_DEFAULT_SIZE = "1024x1024"
_SAID_OF_ITSELF = ("size", "quality", "background", "output_format")


@dataclass(frozen=True, slots=True)
class _ImageSettings:
    """How the requests of one client look; `sent` goes with every prompt."""

    model: str
    sent: Mapping[str, object]
    price: ImagePrice | None = None
    send_seed: bool = False

    def most(self, images: int) -> int:
        """Give the most output tokens of a call."""
        return images if self.price is None else self.price.most(images)

    def replied(self, body: Mapping[str, Any], candidates: list[Candidate], facts: Mapping[str, Any]) -> Reply:
        pictures = sum(bool(candidate.picture) for candidate in candidates)
        counted = stated_usage(body.get("usage"), "", sent="input_tokens", came="output_tokens")
        usage = None if self.price is None else self.price.counted(counted, pictures)
        return reply_with(candidates, text(body.get("model")), facts, usage or counted)


class _OpenAIImageClient(ImageClient, OpenAIClient):
    """Asks one model for images."""

    def batches(self) -> BatchClient:
        return _OpenAIImageBatches(self)


class _OpenAIImageBatches(KeptResults, OpenAIBatches):
    limits = BatchLimits(rows=ROWS_OF_A_JOB, size=OpenAIBatches.limits.size)

    def __init__(self, client: _OpenAIImageClient) -> None:
        super().__init__(client)
        self.keeper = client


def make(spec: Spec, size: str | None = None) -> _OpenAIImageClient:
    """Make the client; nothing is imported or sent yet. `size` is that of the plan, as width x height."""
    options = spec.read(OpenAIImageOptions)
    base_url = OPENAI.base_url(options.base_url)
    model = model_of(spec, model_for("image-openai"))
    settings = _settings_of(model, options, size)
    compose, read = _FORMATS[options.api]
    endpoint = _ENDPOINTS[options.api]
    client = _OpenAIImageClient(
        Identity("openai-images", base_url, endpoint, model),
        options,
        key=partial(OPENAI.key, options.key_variable, base_url),
        connect=lambda secret: OpenAIConnection(base_url, endpoint, secret, options.timeout),
        written=WireFormat(partial(compose, settings=settings), body_as_it_is, partial(read, settings=settings)),
    )
    client.image_price = settings.price
    client.per_call = options.n
    client.rewriter = options.rewriter or ("on" if options.api == "responses" else habits_of(model, "openai").rewriter)
    client.seeds = None if options.send_seed else False
    client.sent_options = {**settings.sent, "api": options.api}
    client.filters = OPENAI.owns(base_url)
    return client


def body_as_it_is(outgoing: Outgoing) -> bytes:
    """Write the bytes that leave."""
    return outgoing.body


def _settings_of(model: str, options: OpenAIImageOptions, size: str | None) -> _ImageSettings:
    """Choose what the SPEC leaves open, so that what is sent says all that decides a price."""
    if size is not None and options.size is not None and size != options.size:
        raise UsageError("two sizes are given", expected="--size or size= in the SPEC", found=f"{size} {options.size}")
    chosen = size or options.size or _DEFAULT_SIZE
    quality = options.quality or habits_of(model, "openai").quality
    as_stated = ("background", "output_format", "moderation", "style", "response_format")
    sent = {"size": chosen, "quality": quality, **{name: getattr(options, name) for name in as_stated}}
    # the responses API bills two models, so that its price per image must be stated
    priced = options.api == "images" or options.image_price is not None
    price = price_of_images(options, model, provider="openai", quality=quality or "", size=chosen) if priced else None
    stated = {name: value for name, value in sent.items() if value is not None}
    return _ImageSettings(model, stated, price, send_seed=options.send_seed)


def compose(request: Request, settings: _ImageSettings) -> Outgoing:
    """Write a call of the images API."""
    count = int(str(request.data["n"]))
    body = {"model": settings.model, "prompt": request.data["prompt"], "n": count, **settings.sent}
    if settings.send_seed:
        body["seed"] = request.data["seed"]
    return Outgoing(canonical_json(body), (), request.sample, settings.most(count))


def read(raw: bytes, settings: _ImageSettings) -> Reply:
    """Read a reply of the images API."""
    body = record(decoded(raw))
    candidates = [_candidate_of(item) for item in records(body.get("data"))]
    if not candidates:
        return reply_without("unreadable", "no images in the reply" if body else why_no_object(raw))
    if not any(candidate.picture for candidate in candidates):
        return reply_without("blocked", candidates[0].reason)
    return settings.replied(body, candidates, {name: body[name] for name in _SAID_OF_ITSELF if name in body})


def _candidate_of(item: Mapping[str, Any]) -> Candidate:
    picture, address = text(item.get("b64_json")), text(item.get("url"))
    results = item.get("content_filter_results")
    filtered = " ".join(
        sorted(name for name, found in record(results).items() if record(found).get("filtered") is True)
    )
    revised = text(item.get("revised_prompt"))
    kept = next((name for name in (picture, address) if name.startswith(KEPT)), "")
    if kept or address:
        return Candidate(kept or URL + address, revised, filtered, "")
    error = record(item.get("error"))
    message = " ".join(filter(None, [text(error.get("code")), text(error.get("message")) or text(item.get("error"))]))
    why = shortened(message) or filtered or ("its base64 cannot be read" if picture else "no picture and no reason")
    return Candidate("", revised, text(error.get("code")) or filtered, why)


def _compose_responses(request: Request, settings: _ImageSettings) -> Outgoing:
    """Write a call of the responses API that must use the image tool."""
    body = {
        "model": settings.model,
        "input": request.data["prompt"],
        "store": False,
        "tools": [{"type": "image_generation", **settings.sent}],
        "tool_choice": {"type": "image_generation"},
    }
    return Outgoing(canonical_json(body), (), request.sample, settings.most(1))


def _read_responses(raw: bytes, settings: _ImageSettings) -> Reply:
    """Read a reply of the responses API: a call of the tool, or words in its place."""
    body = record(decoded(raw))
    output = records(body.get("output"))
    calls = [item for item in output if item.get("type") == "image_generation_call"]
    pictures = [item for item in calls if text(item.get("result")).startswith(KEPT)]
    if pictures:
        candidates = [Candidate(text(item["result"]), text(item.get("revised_prompt")), "", "") for item in pictures]
        return settings.replied(
            body, candidates, {name: pictures[0][name] for name in _SAID_OF_ITSELF if name in pictures[0]}
        )
    parts = [part for item in output for part in records(item.get("content"))]
    refused = " ".join(filter(None, (text(part.get("refusal")) for part in parts)))
    message = " ".join(filter(None, (text(part.get("text")) for part in parts)))
    if refused or message:
        return reply_without("refusal", shortened(refused or message))
    reason = text(record(body.get("incomplete_details")).get("reason"))
    if reason:
        return reply_without("blocked" if "filter" in reason else "length", reason)
    if calls:
        return reply_without("blocked", f"the image tool ended as {text(calls[0].get('status')) or 'nothing known'}")
    return reply_without("unreadable", "no output in the reply" if body else why_no_object(raw))


_FORMATS: Mapping[str, tuple[Callable[..., Outgoing], Callable[..., Reply]]] = {
    "images": (compose, read),
    "responses": (_compose_responses, _read_responses),
}
