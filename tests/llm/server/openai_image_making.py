"""OpenAI's images API: what is asked for is checked, what comes is a picture in base64 or an address of this server."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.made_replies import Question, count_text
from tests.llm.server.openai_chat import sellable
from tests.llm.server.openai_requests import fitting
from tests.llm.server.pictures import picture_bytes
from tests.llm.server.script import Script
from tests.llm.server.selling import sell
from tests.llm.server.shapes import fields, maybe, one_of, text, whole
from tests.llm.server.wire import Departing

TOKENS = {"low": 272, "medium": 1056, "high": 4160}
_REQUEST = fields(
    {
        "model": text(least=1),
        "prompt": text(32_000, least=1),
        "n": maybe(whole(1, 10)),
        "size": maybe(one_of("auto", "1024x1024", "1536x1024", "1024x1536", "256x256", "512x512", "1792x1024")),
        "quality": maybe(one_of("auto", "low", "medium", "high", "standard", "hd")),
        "background": maybe(one_of("auto", "transparent", "opaque")),
        "moderation": maybe(one_of("auto", "low")),
        "output_format": maybe(one_of("png", "jpeg", "webp")),
        "output_compression": maybe(whole(0, 100)),
        "response_format": maybe(one_of("b64_json", "url")),
        "style": maybe(one_of("vivid", "natural")),
        "user": text(),
        "stream": maybe(one_of()),
        "partial_images": maybe(whole(0, 3)),
    },
    required=("prompt", "model"),
)


def check_image(body: Any) -> None:
    """Refuse a request the service would not take; it knows no seed."""
    fitting(_REQUEST, body)


def make_image(exchange: Exchange) -> Departing:
    """POST /images/generations."""
    body = json_body(exchange)
    check_image(body)
    question = sellable(exchange.service, image_question(body))
    encode = writes_images(exchange.service.script)
    return sell(exchange.service, exchange.record, question, exchange.arrived.body, encode)


def image_question(body: Any, mode: Any = "online") -> Question:
    """Read what is asked; the row is the prompt itself."""
    count = body.get("n") or 1
    return Question(
        provider="openai",
        operation="images",
        model=body["model"],
        instructions="",
        user=body["prompt"],
        data={},
        row=body["prompt"],
        schema=None,
        json_wanted=False,
        max_tokens=count * TOKENS.get(body.get("quality") or "medium", 1000),
        seed=0,
        input_tokens=count_text(body["prompt"]),
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        mode=mode,
        options={**body, "n": count},
    )


def writes_images(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    """Write answers as this script has pictures."""

    def write(question: Question, answer: Answer) -> dict[str, Any]:
        told, asked = script.pictures, question.options
        count = max(0, asked["n"] + told.more)
        stopped = answer.ending != "stop"
        reply: dict[str, Any] = {"created": 1_790_000_000}
        reply["data"] = [filtered() if stopped else picture(question, place, script) for place in range(count)]
        if answer.ending == "no-candidates":
            reply["data"] = []
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


def filtered() -> dict[str, Any]:
    """Write the place of an image that a filter took away, as Azure does."""
    found = {"filtered": True, "severity": "high"}
    return {"content_filter_results": {"violence": found, "hate": {"filtered": False, "severity": "safe"}}}


def picture(question: Question, place: int, script: Script) -> dict[str, Any]:
    """Write one picture."""
    told = script.pictures
    item: dict[str, Any] = {"revised_prompt": f"A photo of {question.user}"} if told.revised else {}
    if told.address:
        return {**item, "url": told.address.replace("{digest}", question.digest).replace("{place}", str(place))}
    return {**item, "b64_json": base64.b64encode(picture_bytes(question.digest, place, told)).decode()}
