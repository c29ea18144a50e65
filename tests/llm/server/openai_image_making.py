"""OpenAI's images API: what is asked for is checked, what comes is a picture in base64 or an address of this server."""

import base64
import hashlib
from collections.abc import Callable
from typing import Annotated, Any, Literal

import orjson
from msgspec import Meta

from tests.llm.server.answers import Answer
from tests.llm.server.made_replies import Question, count_text
from tests.llm.server.pictures import picture_bytes
from tests.llm.server.script import Script
from tests.llm.server.selling import sell
from tests.llm.server.service import Exchange
from tests.llm.server.shapes import Strict, fitting
from tests.llm.server.wire import Departing

_TOKENS = {"low": 272, "medium": 1056, "high": 4160}


class _MakeImage(Strict):
    """The body of a request; it knows no seed."""

    model: Annotated[str, Meta(min_length=1)]
    prompt: Annotated[str, Meta(min_length=1, max_length=32_000)]
    n: Annotated[int, Meta(ge=1, le=10)] | None = None
    size: Annotated[str, Meta(pattern=r"^(auto|\d{3,4}x\d{3,4})$")] | None = None
    quality: Literal["auto", "low", "medium", "high", "standard", "hd"] | None = None
    background: Literal["auto", "transparent", "opaque"] | None = None
    moderation: Literal["auto", "low"] | None = None
    output_format: Literal["png", "jpeg", "webp"] | None = None
    output_compression: Annotated[int, Meta(ge=0, le=100)] | None = None
    response_format: Literal["b64_json", "url"] | None = None
    style: Literal["vivid", "natural"] | None = None
    user: str = ""


def make_image(exchange: Exchange) -> Departing:
    """POST /images/generations."""
    return sell(exchange, image_question(exchange.json()), writes_images(exchange.service.script))


def image_question(body: Any, mode: Any = "online") -> Question:
    """Read what is asked, where the service would take it; the row is the prompt itself."""
    fitting(_MakeImage, body)
    count = body.get("n") or 1
    return Question(
        provider="openai", operation="images", model=body["model"], instructions="", user=body["prompt"], data={},
        row=body["prompt"], schema=None, json_wanted=False,
        max_tokens=count * _TOKENS.get(body.get("quality") or "medium", 1000), seed=0,
        input_tokens=count_text(body["prompt"]),
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(), mode=mode,
        options={**body, "n": count},
    )  # fmt: skip


def writes_images(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    """Write answers as this script has pictures."""

    def write(question: Question, answer: Answer) -> dict[str, Any]:
        asked = question.options
        count = max(0, asked["n"] + script.pictures.more) if answer.ending != "no-candidates" else 0
        item = _picture if answer.ending == "stop" else _filtered
        reply: dict[str, Any] = {"created": 1_790_000_000, "data": [item(question, at, script) for at in range(count)]}
        if question.model.startswith("gpt-image"):
            reply |= {name: asked.get(name) or "auto" for name in ("size", "quality", "background")}
            reply["usage"] = {
                "input_tokens": answer.input_tokens,
                "input_tokens_details": {"text_tokens": answer.input_tokens, "image_tokens": 0},
                "output_tokens": answer.output_tokens,
                "total_tokens": answer.input_tokens + answer.output_tokens,
            }
        return reply

    return write


def _filtered(question: Question, at: int, script: Script) -> dict[str, Any]:
    """Write the place of an image that a filter took away, as Azure does."""
    found = {"filtered": True, "severity": "high"}
    return {"content_filter_results": {"violence": found, "hate": {"filtered": False, "severity": "safe"}}}


def _picture(question: Question, at: int, script: Script) -> dict[str, Any]:
    told = script.pictures
    item: dict[str, Any] = {"revised_prompt": f"A photo of {question.user}"} if told.revised else {}
    if told.address:
        return {**item, "url": told.address.replace("{digest}", question.digest).replace("{place}", str(at))}
    return {**item, "b64_json": base64.b64encode(picture_bytes(question.digest, at, told)).decode()}
