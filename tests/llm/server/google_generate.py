"""Gemini generateContent: read a request as a question, write an answer as a response, in words or in pictures."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.google_requests import camelled, check_generate, check_size
from tests.llm.server.made_replies import Question, count_image, count_text, data_of
from tests.llm.server.pictures import CONTENT_TYPES, picture_bytes
from tests.llm.server.script import Script
from tests.llm.server.selling import sell
from tests.llm.server.service import Exchange
from tests.llm.server.wire import Departing

_DEFAULT_LIMIT = 65_536
# Why an answer in words ends, and why a picture does not come.
_FINISH = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "STOP",
    "content-filter": "SAFETY",
    "recitation": "RECITATION",
    "prohibited": "PROHIBITED_CONTENT",
}
_NO_IMAGE = {
    "content-filter": "IMAGE_SAFETY",
    "prohibited": "IMAGE_PROHIBITED_CONTENT",
    "recitation": "IMAGE_RECITATION",
    "length": "MAX_TOKENS",
}


def _part_tokens(part: Mapping[str, Any]) -> int:
    if image := part.get("inlineData"):
        return count_image(base64.urlsafe_b64decode(image["data"].translate(str.maketrans("+/", "-_"))), "google")
    return count_text(part.get("text") or "")


def generate_question(sent: Any, model: str, mode: Any = "online") -> Question:
    """Read what is asked, where the service would take it. In batches it ignores `responseJsonSchema`."""
    body = camelled(sent)
    check_generate(body)
    config, system = body.get("generationConfig") or {}, body.get("systemInstruction")
    schema = config.get("responseSchema")
    if schema is None and mode == "online":
        schema = config.get("responseJsonSchema")
    contents = [*([system] if system else []), *body["contents"]]
    tokens = sum(2 + sum(map(_part_tokens, content["parts"])) for content in contents)
    text = "\n".join(_texts(content) for content in body["contents"] if content.get("role", "user") == "user")
    data, row = data_of(text)
    drawn = "IMAGE" in (config.get("responseModalities") or ())
    # requests within batches name the model once more: the same question is the same all the same
    asked = {name: held for name, held in sent.items() if name != "model"}
    return Question(
        provider="google", operation="images" if drawn else "generate", model=model, instructions=_texts(system or {}),
        user=text, data=data, row=text if drawn else row, schema=schema,
        json_wanted=config.get("responseMimeType") == "application/json",
        max_tokens=1290 if drawn else config.get("maxOutputTokens") or _DEFAULT_LIMIT, seed=config.get("seed") or 0,
        input_tokens=tokens + (count_text(orjson.dumps(schema).decode()) if schema else 0),
        digest=hashlib.sha256(model.encode() + orjson.dumps(asked, option=orjson.OPT_SORT_KEYS)).hexdigest(), mode=mode,
    )  # fmt: skip


def _texts(content: Mapping[str, Any]) -> str:
    return "\n".join(part["text"] for part in content.get("parts") or () if part.get("text"))


def writes_generated(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    """Write answers in words, or as this script has pictures; a blocked prompt has no candidates.

    Thinking stands apart from the candidates in the counts here, and zero counts are left out.
    """

    def write(question: Question, answer: Answer) -> dict[str, Any]:
        counts = {
            "candidatesTokenCount": answer.output_tokens - answer.thinking_tokens,
            "thoughtsTokenCount": answer.thinking_tokens,
            "cachedContentTokenCount": answer.cached_tokens,
        }
        reply: dict[str, Any] = {
            "usageMetadata": {
                "promptTokenCount": answer.input_tokens,
                "totalTokenCount": answer.input_tokens + answer.output_tokens,
                "promptTokensDetails": [{"modality": "TEXT", "tokenCount": answer.input_tokens}],
                **{name: count for name, count in counts.items() if count},
            },
            "modelVersion": question.model,
            "responseId": question.digest[:22],
        }
        if answer.ending == "prompt-blocked":
            reply["promptFeedback"] = {"blockReason": answer.detail}
        elif answer.ending != "no-candidates":
            drawn = question.operation == "images"
            reply["candidates"] = [_drawn(question, answer, script) if drawn else _said(answer)]
        return reply

    return write


def _said(answer: Answer) -> dict[str, Any]:
    """Write the one candidate; what was blocked has no parts."""
    stopped = answer.ending in {"content-filter", "recitation", "prohibited"}
    candidate: dict[str, Any] = {"finishReason": _FINISH[answer.ending], "index": 0}
    if answer.ending == "content-filter":
        rating = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
        candidate["safetyRatings"] = [rating]
    if answer.detail and stopped:
        candidate["finishMessage"] = answer.detail
    if not stopped:
        candidate["content"] = {**({"parts": [{"text": answer.text}]} if answer.text else {}), "role": "model"}
    return candidate


def _drawn(question: Question, answer: Answer, script: Script) -> dict[str, Any]:
    told = script.pictures
    if answer.ending in _NO_IMAGE:
        return {"index": 0, "finishReason": _NO_IMAGE[answer.ending], "finishMessage": "Unable to show this image."}
    if answer.ending == "refusal":
        return {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": answer.text}]}}
    if told.form == "none":
        return {"index": 0, "finishReason": "NO_IMAGE"}
    kind = CONTENT_TYPES.get(told.form, "image/png")

    def part(content: bytes) -> dict[str, Any]:
        return {"inlineData": {"mimeType": kind, "data": base64.b64encode(content).decode()}}

    pictures = [part(picture_bytes(question.digest, at, told)) for at in range(1 + told.more)]
    ratings = [{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}]
    content = {"role": "model", "parts": [{"thought": True, **part(b"a draft")}, {"text": "Here it is."}, *pictures]}
    return {"index": 0, "finishReason": "STOP", "content": content, "safetyRatings": ratings}


def generate(exchange: Exchange) -> Departing:
    """POST /models/{name}:generateContent."""
    check_size(len(exchange.arrived.body))
    question = generate_question(exchange.json(), exchange.groups["name"])
    return sell(exchange, question, writes_generated(exchange.service.script))
