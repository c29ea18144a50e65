"""OpenAI's images API, and the image tool of its responses API, on the wire: what is asked, what the reply says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from culturekit.generation.services.image_client import ImagePrice
from culturekit.generation.services.image_question import Candidate
from culturekit.generation.services.image_replies import KEPT, URL, reply_with, reply_without
from culturekit.llm.client import Outgoing, Reply, Request
from culturekit.llm.clients.error_bodies import shortened
from culturekit.llm.money.counted_here import stated_usage
from culturekit.llm.reading.json_values import decoded, record, records, text, why_no_object
from culturekit.storage.digests import canonical_json

__all__ = ["FORMATS", "ImageSettings"]

SAID_OF_ITSELF = ("size", "quality", "background", "output_format")


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """How the requests of one client look; `sent` goes with every prompt."""

    model: str
    sent: Mapping[str, object]
    price: ImagePrice | None = None
    send_seed: bool = False

    def most(self, images: int) -> int:
        """Give the most output tokens of a call."""
        return images if self.price is None else self.price.most(images)

    def replied(self, body: Mapping[str, Any], candidates: list[Candidate], facts: Mapping[str, Any]) -> Reply:
        """Write a reply that has pictures."""
        made = sum(bool(candidate.picture) for candidate in candidates)
        told = stated_usage(body.get("usage"), "", sent="input_tokens", came="output_tokens")
        usage = None if self.price is None else self.price.counted(told, made)
        return reply_with(candidates, text(body.get("model")), facts, usage or told)


def compose(request: Request, settings: ImageSettings) -> Outgoing:
    """Write a call of the images API."""
    count = int(str(request.data["n"]))
    body = {"model": settings.model, "prompt": request.data["prompt"], "n": count, **settings.sent}
    if settings.send_seed:
        body["seed"] = request.data["seed"]
    return Outgoing(canonical_json(body), (), request.sample, settings.most(count))


def read(raw: bytes, settings: ImageSettings) -> Reply:
    """Read a reply of the images API."""
    body = record(decoded(raw))
    candidates = [candidate_of(item) for item in records(body.get("data"))]
    if not candidates:
        return reply_without("unreadable", "no images in the reply" if body else why_no_object(raw))
    if not any(candidate.picture for candidate in candidates):
        return reply_without("blocked", candidates[0].reason)
    return settings.replied(body, candidates, {name: body[name] for name in SAID_OF_ITSELF if name in body})


def candidate_of(item: Mapping[str, Any]) -> Candidate:
    """Read one image of a reply."""
    picture, address = text(item.get("b64_json")), text(item.get("url"))
    filtered = filtered_by(item.get("content_filter_results"))
    revised = text(item.get("revised_prompt"))
    kept = next((name for name in (picture, address) if name.startswith(KEPT)), "")
    if kept or address:
        return Candidate(kept or URL + address, revised, filtered, "")
    error = record(item.get("error"))
    said = " ".join(filter(None, [text(error.get("code")), text(error.get("message")) or text(item.get("error"))]))
    why = shortened(said) or filtered or ("its base64 cannot be read" if picture else "no picture and no reason")
    return Candidate("", revised, text(error.get("code")) or filtered, why)


def filtered_by(results: object) -> str:
    """Name the filters that struck, as Azure lists them."""
    return " ".join(sorted(name for name, found in record(results).items() if record(found).get("filtered") is True))


def compose_responses(request: Request, settings: ImageSettings) -> Outgoing:
    """Write a call of the responses API that must use the image tool."""
    body = {
        "model": settings.model,
        "input": request.data["prompt"],
        "store": False,
        "tools": [{"type": "image_generation", **settings.sent}],
        "tool_choice": {"type": "image_generation"},
    }
    return Outgoing(canonical_json(body), (), request.sample, settings.most(1))


def read_responses(raw: bytes, settings: ImageSettings) -> Reply:
    """Read a reply of the responses API: a call of the tool, or words in its place."""
    body = record(decoded(raw))
    output = records(body.get("output"))
    calls = [item for item in output if item.get("type") == "image_generation_call"]
    made = [item for item in calls if text(item.get("result")).startswith(KEPT)]
    if made:
        candidates = [Candidate(text(item["result"]), text(item.get("revised_prompt")), "", "") for item in made]
        return settings.replied(body, candidates, {name: made[0][name] for name in SAID_OF_ITSELF if name in made[0]})
    parts = [part for item in output for part in records(item.get("content"))]
    refused = " ".join(filter(None, (text(part.get("refusal")) for part in parts)))
    said = " ".join(filter(None, (text(part.get("text")) for part in parts)))
    if refused or said:
        return reply_without("refusal", shortened(refused or said))
    reason = text(record(body.get("incomplete_details")).get("reason"))
    if reason:
        return reply_without("blocked" if "filter" in reason else "length", reason)
    if calls:
        return reply_without("blocked", f"the image tool ended as {text(calls[0].get('status')) or 'nothing known'}")
    return reply_without("unreadable", "no output in the reply" if body else why_no_object(raw))


FORMATS: Mapping[str, tuple[Callable[..., Outgoing], Callable[..., Reply]]] = {
    "images": (compose, read),
    "responses": (compose_responses, read_responses),
}
