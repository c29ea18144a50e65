"""OpenAI chat completions and responses: read a request as a question, sell an answer, write it down."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.error_replies import Refused
from tests.llm.server.made_replies import Question, count_image, count_text, data_of
from tests.llm.server.openai_requests import check_chat, check_responses
from tests.llm.server.selling import sell
from tests.llm.server.service import Exchange
from tests.llm.server.wire import Departing

_DATA_URL = re.compile(r"data:image/(png|jpeg|jpg|gif|webp);base64,(.*)", re.DOTALL)
_DEFAULT_LIMIT = 16_384
_BLOCKED = ("content-filter", "recitation", "prohibited", "prompt-blocked")
_FINISH = {"length": "length", **dict.fromkeys(_BLOCKED, "content_filter")}
_INCOMPLETE = {"length": "max_output_tokens", **dict.fromkeys(_BLOCKED, "content_filter")}


def _image_tokens(url: str | None, detail: str | None) -> int:
    """Count the tokens of an image by its data URL: 85 in low detail, by tiles otherwise."""
    found = _DATA_URL.fullmatch(url or "")
    if found is None:
        raise Refused("bad-request", "Invalid image data URL.", param="url", code="invalid_image_url")
    try:
        content = base64.b64decode(found[2], validate=True)
    except binascii.Error:
        raise Refused("bad-request", "Invalid base64 image_url.", code="invalid_base64") from None
    return 85 if detail == "low" else count_image(content, "openai")


def _question(
    body: Mapping[str, Any],
    said: Iterable[tuple[str, Any]],
    schema: Any,
    *,
    operation: str,
    limit: int | None,
    mode: Any,
) -> Question:
    """Read what is asked, from who says what, in either protocol."""
    instructions: list[str] = []
    user: list[str] = []
    tokens = 3
    for role, content in said:
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        tokens += 4
        for part in parts:
            if "text" in part:
                tokens += count_text(part["text"])
                (instructions if role in {"system", "developer"} else user).append(part["text"])
            else:
                image = part.get("image_url")
                where = image if isinstance(image, dict) else {"url": image, "detail": part.get("detail")}
                tokens += _image_tokens(where["url"], where.get("detail"))
    text = "\n".join(user)
    data, row = data_of(text)
    return Question(
        provider="openai", operation=operation, model=body["model"], instructions="\n".join(instructions), user=text,
        data=data, row=row, schema=schema, json_wanted=schema is not None, max_tokens=limit or _DEFAULT_LIMIT,
        seed=body.get("seed") or 0,
        input_tokens=tokens + (count_text(orjson.dumps(schema).decode()) if schema is not None else 0),
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(), mode=mode,
        options={"top_logprobs": body.get("top_logprobs") or 0 if body.get("logprobs") else None},
    )  # fmt: skip


def chat_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before."""
    schema = ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    said = ((message["role"], message.get("content")) for message in body["messages"])
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    return _question(body, said, schema, operation="chat", limit=limit, mode=mode)


def responses_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before."""
    schema = ((body.get("text") or {}).get("format") or {}).get("schema")
    said = [("system", body.get("instructions") or ""), *((item["role"], item["content"]) for item in body["input"])]
    return _question(body, said, schema, operation="responses", limit=body.get("max_output_tokens"), mode=mode)


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
    choice = {"index": 0, "message": message, "logprobs": _first_logprobs(question, answer), "finish_reason": finish}
    others = dict.fromkeys(("audio_tokens", "accepted_prediction_tokens", "rejected_prediction_tokens"), 0)
    return {
        "id": f"chatcmpl-{question.digest[:29]}",
        "object": "chat.completion",
        "created": created_at(question),
        "model": question.model,
        "choices": [] if answer.ending == "no-candidates" else [choice],
        "usage": {
            "prompt_tokens": answer.input_tokens,
            "completion_tokens": answer.output_tokens,
            "total_tokens": answer.input_tokens + answer.output_tokens,
            "prompt_tokens_details": {"cached_tokens": answer.cached_tokens, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": answer.thinking_tokens, **others},
        },
        "service_tier": "default",
        "system_fingerprint": "fp_loopback",
    }


def _first_logprobs(question: Question, answer: Answer) -> dict[str, Any] | None:
    """List the likeliest first tokens, where asked for: those of the answer, or drawn by a hash of the question."""
    wanted = question.options.get("top_logprobs")
    if wanted is None or answer.logprobs is None:
        return None
    yes = 0.02 + 0.9 * int(question.digest[:8], 16) / 2**32  # a twentieth is left to other words
    shares = {"Yes": yes, "No": 0.95 - yes, "The": 0.03, "I": 0.02}
    drawn = [(token, math.log(share)) for token, share in sorted(shares.items(), key=lambda item: -item[1])]
    told = [
        {"token": token, "logprob": value, "bytes": list(token.encode())} for token, value in answer.logprobs or drawn
    ]
    return {"content": [{**told[0], "top_logprobs": told[:wanted]}], "refusal": None}


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
    body = exchange.json()
    check_chat(body)
    return sell(exchange, chat_question(body), chat_completion)


def respond(exchange: Exchange) -> Departing:
    """POST /responses."""
    body = exchange.json()
    check_responses(body)
    return sell(exchange, responses_question(body), response)
