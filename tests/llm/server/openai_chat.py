"""OpenAI chat completions and responses: read a request as a question, sell an answer, write it down."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.error_replies import Refused
from tests.llm.server.exchange import Exchange, json_body
from tests.llm.server.made_replies import Question, count_image, count_text, data_of
from tests.llm.server.openai_requests import check_chat, check_responses
from tests.llm.server.selling import sell
from tests.llm.server.service import Service
from tests.llm.server.wire import Departing

_DATA_URL = re.compile(r"data:image/(png|jpeg|jpg|gif|webp);base64,(.*)", re.DOTALL)


def image_bytes(url: str) -> bytes:
    """Decode a data URL.

    Raises:
        Refused: it is none, or holds no base64.
    """
    found = _DATA_URL.fullmatch(url)
    if found is None:
        raise Refused("bad-request", "Invalid image data URL.", param="url", code="invalid_image_url")
    try:
        return base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise Refused("bad-request", "Invalid base64 image_url.", code="invalid_base64") from None


def image_tokens(image: Mapping[str, Any]) -> int:
    """Count the tokens of an image: 85 in low detail, by tiles otherwise."""
    content = image_bytes(image["url"])
    return 85 if image.get("detail") == "low" else count_image(content, "openai")


_FINISH = {"length": "length", "content-filter": "content_filter", "recitation": "content_filter"}
_FINISH |= {"prohibited": "content_filter", "prompt-blocked": "content_filter"}
_DEFAULT_LIMIT = 16_384


def _said(
    body: Mapping[str, Any], instructions: Sequence[str], user: Sequence[str], schema: Any
) -> dict[str, Any]:  # fmt: skip
    """Give what both ways to ask say alike."""
    text = "\n".join(user)
    data, row = data_of(text)
    return {
        "provider": "openai", "model": body["model"], "instructions": "\n".join(instructions), "user": text,
        "data": data, "row": row, "schema": schema, "json_wanted": schema is not None,
        "digest": hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(),
    }  # fmt: skip


def chat_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before."""
    instructions: list[str] = []
    user: list[str] = []
    tokens = 3
    for message in body["messages"]:
        texts, images = _parts(message.get("content"))
        tokens += 4 + sum(map(count_text, texts)) + images
        (instructions if message["role"] in {"system", "developer"} else user).extend(texts)
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    if schema is not None:
        tokens += count_text(orjson.dumps(schema).decode())
    return Question(
        operation="chat",
        **_said(body, instructions, user, schema),
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or _DEFAULT_LIMIT,
        seed=body.get("seed") or 0,
        input_tokens=tokens,
        mode=mode,
        options={"top_logprobs": body.get("top_logprobs") or 0 if body.get("logprobs") else None},
    )


def _parts(content: Any) -> tuple[list[str], int]:
    """Split a message's content into its texts and the tokens of its images."""
    if isinstance(content, str):
        return [content], 0
    texts = [part["text"] for part in content or () if part["type"] == "text"]
    return texts, sum(image_tokens(part["image_url"]) for part in content or () if part["type"] == "image_url")


def usage_of(answer: Answer) -> dict[str, Any]:
    """Write what an answer cost."""
    return {
        "prompt_tokens": answer.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": answer.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": answer.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": answer.thinking_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def created_at(question: Question) -> int:
    """Date an answer by what was asked, so that the same question brings the same bytes at any time."""
    return 1_780_000_000 + int(question.digest[:6], 16)


def chat_completion(question: Question, answer: Answer) -> dict[str, Any]:
    """Write an answer as a completion; the same answer always has the same id."""
    declined = answer.ending == "refusal"
    message: dict[str, Any] = {
        "role": "assistant",
        "content": None if declined else answer.text,
        "refusal": answer.text if declined else None,
        "annotations": [],
    }
    finish = _FINISH.get(answer.ending, "stop")
    choice = {"index": 0, "message": message, "logprobs": first_logprobs(question, answer), "finish_reason": finish}
    return {
        "id": f"chatcmpl-{question.digest[:29]}",
        "object": "chat.completion",
        "created": created_at(question),
        "model": question.model,
        "choices": [] if answer.ending == "no-candidates" else [choice],
        "usage": usage_of(answer),
        "service_tier": "default",
        "system_fingerprint": "fp_loopback",
    }


def first_logprobs(question: Question, answer: Answer) -> dict[str, Any] | None:
    """List the likeliest first tokens, where asked for: those of the answer, or drawn by a hash of the question."""
    wanted = question.options.get("top_logprobs")
    if wanted is None or answer.logprobs is None:
        return None
    listed = answer.logprobs or drawn_logprobs(question)
    told = [{"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in listed]
    return {"content": [{**told[0], "top_logprobs": told[:wanted]}], "refusal": None}


def drawn_logprobs(question: Question) -> tuple[tuple[str, float], ...]:
    """Draw how probable Yes and No are; a twentieth is left to other words."""
    yes = 0.02 + 0.9 * int(question.digest[:8], 16) / 2**32
    listed = {"Yes": yes, "No": 0.95 - yes, "The": 0.03, "I": 0.02}
    return tuple((token, math.log(share)) for token, share in sorted(listed.items(), key=lambda item: -item[1]))


_INCOMPLETE = {"length": "max_output_tokens"}
_INCOMPLETE |= dict.fromkeys(("content-filter", "recitation", "prohibited", "prompt-blocked"), "content_filter")


def responses_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before."""
    instructions: list[str] = [body.get("instructions") or ""]
    user: list[str] = []
    tokens = 3 + count_text(instructions[0])
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        texts, images = _input_parts(item["content"])
        tokens += 4 + sum(map(count_text, texts)) + images
        (instructions if item["role"] in {"system", "developer"} else user).extend(texts)
    wanted = (body.get("text") or {}).get("format") or {}
    schema = wanted.get("schema")
    tokens += count_text(orjson.dumps(schema).decode()) if schema is not None else 0
    return Question(
        operation="responses",
        **_said(body, instructions, user, schema),
        max_tokens=body.get("max_output_tokens") or _DEFAULT_LIMIT,
        seed=0,
        input_tokens=tokens,
        mode=mode,
    )


def _input_parts(content: Any) -> tuple[list[str], int]:
    if isinstance(content, str):
        return [content], 0
    images = 0
    for part in content:
        if part["type"] == "input_image":
            if part.get("image_url") is None:
                raise Refused("bad-request", "Only images by data URL are known here.", param="input")
            images += image_tokens({"url": part["image_url"], "detail": part.get("detail")})
    return [part["text"] for part in content if part["type"] in {"input_text", "output_text"}], images


def response(question: Question, answer: Answer) -> dict[str, Any]:
    """Write an answer as a response; the same answer always has the same id."""
    reason = _INCOMPLETE.get(answer.ending)
    part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    if answer.ending == "refusal":
        part = {"type": "refusal", "refusal": answer.text}
    status = "incomplete" if reason else "completed"
    message = {"id": f"msg_{question.digest[:40]}", "type": "message", "role": "assistant", "status": status}
    said = answer.ending != "no-candidates" and (answer.text or not reason)
    return {
        "id": f"resp_{question.digest[:40]}",
        "object": "response",
        "created_at": created_at(question),
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": reason} if reason else None,
        "instructions": question.instructions,
        "metadata": {},
        "model": question.model,
        "output": [{**message, "content": [part]}] if said else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": answer.input_tokens,
            "input_tokens_details": {"cached_tokens": answer.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": answer.output_tokens,
            "output_tokens_details": {"reasoning_tokens": answer.thinking_tokens},
            "total_tokens": answer.input_tokens + answer.output_tokens,
        },
    }


def chat(exchange: Exchange) -> Departing:
    """POST /chat/completions."""
    body = json_body(exchange)
    check_chat(body, exchange.service.script.dialect)
    question = sellable(exchange.service, chat_question(body))
    return sell(exchange.service, exchange.record, question, exchange.arrived.body, chat_completion)


def respond(exchange: Exchange) -> Departing:
    """POST /responses."""
    body = json_body(exchange)
    check_responses(body)
    question = sellable(exchange.service, responses_question(body))
    return sell(exchange.service, exchange.record, question, exchange.arrived.body, response)


def sellable(service: Service, question: Question) -> Question:
    """Refuse what the model is not there for, or has no room for.

    Raises:
        Refused: in the provider's words.
    """
    script = service.script
    if script.models and question.model not in script.models:
        raise Refused("not-found", f"The model `{question.model}` does not exist or you do not have access to it.")
    if question.input_tokens > script.context:
        length = f"This model's maximum context length is {script.context} tokens."
        raise Refused("context-length", f"{length} However, your messages resulted in {question.input_tokens} tokens.")
    return question
