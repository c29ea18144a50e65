"""Gemini models that make images, through generateContent of the Gemini API."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.generation.image_options import GoogleImageOptions
from culturekit.generation.picture_store import KEPT
from culturekit.generation.services.image_client import (
    ROWS_OF_A_JOB,
    Candidate,
    ImageClient,
    ImagePrice,
    KeptResults,
    price_of_images,
    reply_with,
    reply_without,
)
from culturekit.generation.services.openai_image_client import body_as_it_is
from culturekit.llm.batches import BatchClient, BatchLimits
from culturekit.llm.client import Identity, Outgoing, Reply, Request, Usage
from culturekit.llm.clients.google_client import GoogleBatches, GoogleClient, GoogleConnection
from culturekit.llm.clients.google_client import usage as told_usage
from culturekit.llm.clients.remote_client import WireFormat, model_of
from culturekit.llm.endpoints import GOOGLE
from culturekit.llm.failures import shortened
from culturekit.llm.json_values import decoded, record, records, text, why_no_object
from culturekit.llm.models import habits_of, model_for

_ROOM_TO_THINK = 2048
_DEFAULT_SIZE = "1K"
# shapes that Gemini models draw; the pixels of a shape differ between models
_RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9", "1:4", "4:1", "1:8", "8:1")
_SCALES: Mapping[str, float] = {"512": 0.5, "1K": 1, "2K": 2, "4K": 4}
# sides are multiples of 16, so that a shape and a size are met only nearly; by how much, as a share
STEP, SHAPE_SLACK, SCALE_SLACK = 16, 0.035, 0.06

_THRESHOLDS = {
    "low": "BLOCK_LOW_AND_ABOVE", "medium": "BLOCK_MEDIUM_AND_ABOVE", "high": "BLOCK_ONLY_HIGH", "none": "BLOCK_NONE",
}  # fmt: skip
_CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
# the model ended of its own accord, without an image; every other reason is a filter's
_DECLINED = {"STOP", "NO_IMAGE"}


@dataclass(frozen=True, slots=True)
class _GeminiImages:
    """How the requests of one client look."""

    aspect_ratio: str = ""
    image_size: str = ""
    safety: str = ""
    price: ImagePrice | None = None
    send_seed: bool = False

    def image_config(self) -> dict[str, str]:
        """Say what an image is to look like, as far as it is stated."""
        config = {"aspectRatio": self.aspect_ratio, "imageSize": self.image_size}
        return {name: value for name, value in config.items() if value}


class _GoogleImageClient(ImageClient, GoogleClient):
    """Asks one model for images."""

    def batches(self) -> BatchClient:
        return _GoogleImageBatches(self)


class _GoogleImageBatches(KeptResults, GoogleBatches):
    limits = BatchLimits(rows=ROWS_OF_A_JOB, size=GoogleBatches.limits.size)

    def __init__(self, client: _GoogleImageClient) -> None:
        super().__init__(client)
        self.keeper = client

    def compose(self, request: Request) -> Outgoing:
        """Write a request as it leaves in a batch: just as it would alone."""
        return self.keeper.compose(request)


def make(spec: Spec, size: str | None = None) -> _GoogleImageClient:
    """Make the client; nothing is imported or sent yet. `size` is that of the plan, as width x height."""
    options = spec.read(GoogleImageOptions)
    base_url = GOOGLE.base_url(options.base_url)
    model = model_of(spec, model_for("image-google")).removeprefix("models/")
    if habits_of(model, "google").gone:
        raise UsageError(
            "Google has shut this model and all of its kind, and its SDK asks them no more",
            found=model,
            expected=f"a Gemini model that makes images, such as {model_for('image-google')}",
        )
    settings = _settings_of(model, options, size)
    client = _GoogleImageClient(
        Identity("google-images", base_url, f"/{options.api_version}/models/{model}:generateContent", model),
        options,
        key=partial(GOOGLE.key, options.key_variable, base_url),
        connect=lambda secret: GoogleConnection(
            base_url, model, secret, api_version=options.api_version, seconds=options.timeout
        ),
        written=WireFormat(partial(compose, settings=settings), body_as_it_is, partial(_read, settings=settings)),
    )
    client.image_price = settings.price
    client.rewriter = options.rewriter or "unknown"
    client.seeds = None if options.send_seed else False
    client.sent_options = settings.image_config()
    if settings.safety:
        client.sent_options["safety"] = _THRESHOLDS[settings.safety]
    client.filters = GOOGLE.owns(base_url)
    return client


def _settings_of(model: str, options: GoogleImageOptions, size: str | None) -> _GeminiImages:
    """Choose what the SPEC leaves open; a size in pixels stands for a shape and a size of Google's."""
    ratio: str = options.aspect_ratio or ""
    large: str = options.image_size or ""
    if size is not None:
        if ratio or large:
            raise UsageError(
                "two sizes are given", expected="--size, or aspect_ratio and image_size in the SPEC", found=size
            )
        ratio, large = shape_of_size(size)
    price = price_of_images(
        options, model, provider="google", quality="standard", size=large or _DEFAULT_SIZE,
        room=_ROOM_TO_THINK if habits_of(model, "google").thinks else 0,
    )  # fmt: skip
    # a model of one size refuses to be told one, so that the usual size is sent only where the SPEC states it
    size_stated = options.image_size or (large if large != _DEFAULT_SIZE else "")
    return _GeminiImages(ratio, size_stated, options.safety or "", price, send_seed=options.send_seed)


def shape_of_size(size: str) -> tuple[str, str]:
    """Say a width and a height in Google's words: the shape and the size that come closest.

    How many pixels come back is for the model to decide, and read from the picture.
    """
    width, height = (int(side) for side in size.split("x"))
    sides = {name: name.split(":") for name in _RATIOS}
    ratio, unlike = _closest(width / height, {name: int(wide) / int(high) for name, (wide, high) in sides.items()})
    large, apart = _closest(math.sqrt(width * height) / 1024, _SCALES)
    if unlike <= SHAPE_SLACK and apart <= SCALE_SLACK and width % STEP == height % STEP == 0:
        return ratio, large
    raise UsageError(
        "Gemini does not draw images of this size",
        found=size,
        expected="about as many pixels as 1024x1024, or a quarter, 4 or 16 times as many, in one of the shapes "
        f"{', '.join(_RATIOS)}, both sides multiples of {STEP}",
        where="--size",
        hint="Or state aspect_ratio and image_size in the SPEC, which are sent as they are.",
    )


def _closest(value: float, named: Mapping[str, float]) -> tuple[str, float]:
    """Find the name whose number is closest, and how far away it is, as a share."""
    apart = {name: abs(math.log(value / number)) for name, number in named.items()}
    return min(apart.items(), key=lambda one: one[1])


def compose(request: Request, settings: _GeminiImages) -> Outgoing:
    """Write a call; what comes back is an image and no words."""
    config: dict[str, Any] = {"responseModalities": ["IMAGE"]}
    if settings.image_config():
        config["imageConfig"] = settings.image_config()
    if settings.send_seed:
        seed = int(str(request.data["seed"]))
        config["seed"] = seed - 2**32 if seed >= 2**31 else seed
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": request.data["prompt"]}]}],
        "generationConfig": config,
    }
    if settings.safety:
        threshold = _THRESHOLDS[settings.safety]
        body["safetySettings"] = [{"category": f"HARM_CATEGORY_{name}", "threshold": threshold} for name in _CATEGORIES]
    most = 1 if settings.price is None else settings.price.most(1)
    return Outgoing(canonical_json(body), (), request.sample, most)


def _read(raw: bytes, settings: _GeminiImages) -> Reply:
    """Read a reply; an image that was filtered or declined comes as a 200 without one."""
    body = record(decoded(raw))
    candidates = records(body.get("candidates"))
    blocked = text(record(body.get("promptFeedback")).get("blockReason"))
    pictures = [candidate for each in candidates for candidate in _pictures_of(each)]
    counted = told_usage(body.get("usageMetadata"), "")
    usage = counted if settings.price is None else settings.price.counted(counted, len(pictures))
    if pictures:
        return reply_with(pictures, text(body.get("modelVersion")), {}, usage)
    if blocked and blocked != "BLOCK_REASON_UNSPECIFIED":
        return reply_without("blocked", f"prompt: {blocked}", usage)
    if not candidates:
        return reply_without("unreadable", "no candidates in the reply" if body else why_no_object(raw))
    return _without_picture(candidates[0], usage)


def _without_picture(candidate: Mapping[str, Any], usage: Usage) -> Reply:
    """Tell why a candidate has no picture."""
    reason = text(candidate.get("finishReason"))
    message = shortened(" ".join(text(part.get("text")) for part in _parts_of(candidate)).strip())
    why = ": ".join(filter(None, [reason, message or shortened(text(candidate.get("finishMessage")))]))
    if reason == "MAX_TOKENS":
        return reply_without("length", why, usage)
    if reason in _DECLINED:
        return reply_without("refusal", why, usage)
    if reason in ("", "FINISH_REASON_UNSPECIFIED"):
        return (
            reply_without("refusal", message, usage)
            if message
            else reply_without("unreadable", "nothing, and no reason")
        )
    return reply_without("blocked", why, usage)


def _parts_of(candidate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the parts of a candidate, its thoughts left out, among which are drafts of images."""
    parts = records(record(candidate.get("content")).get("parts"))
    return [part for part in parts if part.get("thought") is not True]


def _pictures_of(candidate: Mapping[str, Any]) -> list[Candidate]:
    ratings = records(candidate.get("safetyRatings"))
    safety = " ".join(
        f"{text(rating.get('category')).removeprefix('HARM_CATEGORY_')}={text(rating.get('probability'))}"
        for rating in ratings
    )
    blobs = [record(part.get("inlineData") or part.get("inline_data")) for part in _parts_of(candidate)]
    return [Candidate(text(blob["data"]), "", safety, "") for blob in blobs if text(blob.get("data")).startswith(KEPT)]
