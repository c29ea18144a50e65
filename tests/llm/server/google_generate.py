"""Gemini generateContent: read a request as a question, write an answer as a response, in words or in pictures."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.google_requests import check_generate, pick
from tests.llm.server.made_replies import Question, count_image, count_text, data_of
from tests.llm.server.pictures import CONTENT_TYPES, picture_bytes
from tests.llm.server.script import Script
from tests.llm.server.selling import sell
from tests.llm.server.service import Service
from tests.llm.server.wire import Departing

_FINISH = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "refusal": "STOP",
    "content-filter": "SAFETY",
    "recitation": "RECITATION",
    "prohibited": "PROHIBITED_CONTENT",
}
_DEFAULT_LIMIT = 65_536


def counted_tokens(body: Mapping[str, Any]) -> int:
    """Count the input tokens of a request."""
    system = pick(body, "systemInstruction")
    contents = [*([system] if system else []), *(body.get("contents") or ())]
    return sum(2 + sum(map(_part_tokens, content.get("parts") or ())) for content in contents)


def _part_tokens(part: Mapping[str, Any]) -> int:
    image = pick(part, "inlineData")
    if image:
        return count_image(base64.urlsafe_b64decode(image["data"].translate(str.maketrans("+/", "-_"))), "google")
    return count_text(part.get("text") or "")


def generate_question(body: Mapping[str, Any], model: str, mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before. In batches the service ignores `responseJsonSchema`."""
    config = pick(body, "generationConfig") or {}
    schema = pick(config, "responseSchema")
    if schema is None and mode == "online":
        schema = pick(config, "responseJsonSchema")
    tokens = counted_tokens(body) + (count_text(orjson.dumps(schema).decode()) if schema else 0)
    text = "\n".join(_texts(content) for content in body["contents"] if content.get("role", "user") == "user")
    data, row = data_of(text)
    drawn = "IMAGE" in (pick(config, "responseModalities") or ())
    return Question(
        provider="google",
        operation="images" if drawn else "generate",
        model=model,
        instructions=_texts(pick(body, "systemInstruction") or {}),
        user=text,
        data=data,
        row=text if drawn else row,
        schema=schema,
        json_wanted=pick(config, "responseMimeType") == "application/json",
        max_tokens=1290 if drawn else pick(config, "maxOutputTokens") or _DEFAULT_LIMIT,
        seed=config.get("seed") or 0,
        input_tokens=tokens,
        digest=hashlib.sha256(model.encode() + orjson.dumps(_asked(body), option=orjson.OPT_SORT_KEYS)).hexdigest(),
        mode=mode,
    )


def _asked(body: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the model, which requests within batches name once more, so that the same question is the same."""
    return {name: held for name, held in body.items() if name != "model"}


def _texts(content: Mapping[str, Any]) -> str:
    return "\n".join(part["text"] for part in content.get("parts") or () if part.get("text"))


def usage_of(answer: Answer) -> dict[str, Any]:
    """Write what an answer cost; thinking stands apart from the candidates here, zero counts are left out."""
    visible = answer.output_tokens - answer.thinking_tokens
    usage: dict[str, Any] = {
        "promptTokenCount": answer.input_tokens,
        "totalTokenCount": answer.input_tokens + answer.output_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": answer.input_tokens}],
    }
    if visible:
        usage["candidatesTokenCount"] = visible
    if answer.thinking_tokens:
        usage["thoughtsTokenCount"] = answer.thinking_tokens
    if answer.cached_tokens:
        usage["cachedContentTokenCount"] = answer.cached_tokens
    return usage


def generate_response(question: Question, answer: Answer) -> dict[str, Any]:
    """Write an answer as a response; what was blocked has no parts, a blocked prompt no candidates."""
    response: dict[str, Any] = {}
    if answer.ending == "prompt-blocked":
        response["promptFeedback"] = {"blockReason": answer.detail}
    elif answer.ending != "no-candidates":
        response["candidates"] = [_candidate(answer)]
    response["usageMetadata"] = usage_of(answer)
    response["modelVersion"] = question.model
    response["responseId"] = question.digest[:22]
    return response


def _candidate(answer: Answer) -> dict[str, Any]:
    stopped = answer.ending in {"content-filter", "recitation", "prohibited"}
    candidate: dict[str, Any] = {"finishReason": _FINISH[answer.ending], "index": 0}
    if answer.ending == "content-filter":
        rating = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}
        candidate["safetyRatings"] = [rating]
    if answer.detail and stopped:
        candidate["finishMessage"] = answer.detail
    if not stopped:
        parts = [{"text": answer.text}] if answer.text else []
        candidate["content"] = {**({"parts": parts} if parts else {}), "role": "model"}
    return candidate


_IMAGE_FINISH = {
    "content-filter": "IMAGE_SAFETY",
    "prohibited": "IMAGE_PROHIBITED_CONTENT",
    "recitation": "IMAGE_RECITATION",
    "length": "MAX_TOKENS",
}


def writes_generated(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    """Write answers as this script has pictures, and those in words as they are."""

    def write(question: Question, answer: Answer) -> dict[str, Any]:
        if question.operation != "images":
            return generate_response(question, answer)
        reply: dict[str, Any] = {
            "usageMetadata": usage_of(answer),
            "modelVersion": question.model,
            "responseId": question.digest[:22],
        }
        if answer.ending == "prompt-blocked":
            return {**reply, "promptFeedback": {"blockReason": answer.detail}}
        if answer.ending == "no-candidates":
            return reply
        return {**reply, "candidates": [candidate(question, answer, script)]}

    return write


def candidate(question: Question, answer: Answer, script: Script) -> dict[str, Any]:
    """Write the one candidate there is."""
    told = script.pictures
    if answer.ending in _IMAGE_FINISH:
        return {"index": 0, "finishReason": _IMAGE_FINISH[answer.ending], "finishMessage": "Unable to show this image."}
    if answer.ending == "refusal":
        return {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": answer.text}]}}
    if told.form == "none":
        return {"index": 0, "finishReason": "NO_IMAGE"}
    kind = CONTENT_TYPES.get(told.form, "image/png")
    parts = [
        {"inlineData": {"mimeType": kind, "data": base64.b64encode(picture_bytes(question.digest, at, told)).decode()}}
        for at in range(1 + told.more)
    ]
    draft = {"thought": True, "inlineData": {"mimeType": kind, "data": base64.b64encode(b"a draft").decode()}}
    ratings = [{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}]
    content = {"role": "model", "parts": [draft, {"text": "Here it is."}, *parts]}
    return {"index": 0, "finishReason": "STOP", "content": content, "safetyRatings": ratings}


def generate(exchange: Exchange) -> Departing:
    """POST /models/{name}:generateContent."""
    service, model = exchange.service, exchange.groups["name"]
    body = json_body(exchange)
    check_model(service, model)
    check_generate(body, size=len(exchange.arrived.body))
    question = generate_question(body, model)
    if question.input_tokens > service.script.context:
        counts = f"({question.input_tokens}) exceeds the maximum number of tokens allowed ({service.script.context})."
        raise Refused("context-length", f"The input token count {counts}")
    return sell(service, exchange.record, question, exchange.arrived.body, writes_generated(service.script))


def check_model(service: Service, model: str) -> None:
    """Refuse a model that is not there."""
    if service.script.models and model not in service.script.models:
        raise Refused("not-found", f"models/{model} is not found for API version v1beta.")
