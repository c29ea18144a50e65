"""Google's generateContent where it makes images, on the wire: what is asked, what the reply says."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from culturekit.generation.services.image_client import ImagePrice
from culturekit.generation.services.image_question import Candidate
from culturekit.generation.services.image_replies import KEPT, reply_with, reply_without
from culturekit.llm.client import Outgoing, Reply, Request, Usage
from culturekit.llm.clients.error_bodies import shortened
from culturekit.llm.clients.gemini_api import usage as told_usage
from culturekit.llm.reading.json_values import decoded, record, records, text, why_no_object
from culturekit.storage.digests import canonical_json

__all__ = ["GeminiImages", "compose", "read"]

THRESHOLDS = {
    "low": "BLOCK_LOW_AND_ABOVE",
    "medium": "BLOCK_MEDIUM_AND_ABOVE",
    "high": "BLOCK_ONLY_HIGH",
    "none": "BLOCK_NONE",
}
CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
DECLINED = {"STOP", "NO_IMAGE"}
"""The model ended of its own accord, without an image; every other reason is a filter's."""


@dataclass(frozen=True, slots=True)
class GeminiImages:
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

    def said(self) -> dict[str, object]:
        """Give what goes with every prompt."""
        return {**self.image_config(), **({"safety": THRESHOLDS[self.safety]} if self.safety else {})}


def compose(request: Request, settings: GeminiImages) -> Outgoing:
    """Write a call; what comes back is an image and no words."""
    config: dict[str, Any] = {"responseModalities": ["IMAGE"]}
    if settings.image_config():
        config["imageConfig"] = settings.image_config()
    if settings.send_seed:
        config["seed"] = signed(int(str(request.data["seed"])))
    body: dict[str, Any] = {
        "contents": [{"role": "user", "parts": [{"text": request.data["prompt"]}]}],
        "generationConfig": config,
    }
    if settings.safety:
        threshold = THRESHOLDS[settings.safety]
        body["safetySettings"] = [{"category": f"HARM_CATEGORY_{name}", "threshold": threshold} for name in CATEGORIES]
    most = 1 if settings.price is None else settings.price.most(1)
    return Outgoing(canonical_json(body), (), request.sample, most)


def signed(seed: int) -> int:
    """Write the 32 bits of a seed as Google takes them, with a sign."""
    return seed - 2**32 if seed >= 2**31 else seed


def read(raw: bytes, settings: GeminiImages) -> Reply:
    """Read a reply; an image that was filtered or declined comes as a 200 without one."""
    body = record(decoded(raw))
    candidates = records(body.get("candidates"))
    blocked = text(record(body.get("promptFeedback")).get("blockReason"))
    made = [candidate for each in candidates for candidate in pictures_of(each)]
    told = told_usage(body.get("usageMetadata"), "")
    usage = told if settings.price is None else settings.price.counted(told, len(made))
    if made:
        return reply_with(made, text(body.get("modelVersion")), {}, usage)
    if blocked and blocked != "BLOCK_REASON_UNSPECIFIED":
        return reply_without("blocked", f"prompt: {blocked}", usage)
    if not candidates:
        return reply_without("unreadable", "no candidates in the reply" if body else why_no_object(raw))
    return without_picture(candidates[0], usage)


def without_picture(candidate: Mapping[str, Any], usage: Usage) -> Reply:
    """Tell why a candidate has no picture."""
    reason = text(candidate.get("finishReason"))
    said = shortened(" ".join(text(part.get("text")) for part in parts_of(candidate)).strip())
    why = ": ".join(filter(None, [reason, said or shortened(text(candidate.get("finishMessage")))]))
    if reason == "MAX_TOKENS":
        return reply_without("length", why, usage)
    if reason in DECLINED:
        return reply_without("refusal", why, usage)
    if reason in ("", "FINISH_REASON_UNSPECIFIED"):
        return reply_without("refusal", said, usage) if said else reply_without("unreadable", "nothing, and no reason")
    return reply_without("blocked", why, usage)


def parts_of(candidate: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Give the parts of a candidate, its thoughts left out, among which are drafts of images."""
    parts = records(record(candidate.get("content")).get("parts"))
    return [part for part in parts if part.get("thought") is not True]


def pictures_of(candidate: Mapping[str, Any]) -> list[Candidate]:
    """Read the images of a candidate."""
    ratings = records(candidate.get("safetyRatings"))
    safety = " ".join(
        f"{text(rating.get('category')).removeprefix('HARM_CATEGORY_')}={text(rating.get('probability'))}"
        for rating in ratings
    )
    blobs = [record(part.get("inlineData") or part.get("inline_data")) for part in parts_of(candidate)]
    return [Candidate(text(blob["data"]), "", safety, "") for blob in blobs if text(blob.get("data")).startswith(KEPT)]
