"""OpenAI chat completions: read a request as a question, write an answer as a completion."""

import base64
import binascii
import hashlib
import math
import re
from collections.abc import Mapping
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.error_replies import Refused
from tests.llm.server.made_replies import Question, count_image, count_text, data_of

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


def chat_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before."""
    instructions: list[str] = []
    user: list[str] = []
    tokens = 3
    for message in body["messages"]:
        texts, images = _parts(message.get("content"))
        tokens += 4 + sum(map(count_text, texts)) + images
        (instructions if message["role"] in {"system", "developer"} else user).extend(texts)
    schema, json_wanted = _wanted(body)
    if schema is not None:
        tokens += count_text(orjson.dumps(schema).decode())
    text = "\n".join(user)
    data, row = data_of(text)
    return Question(
        provider="openai",
        operation="chat",
        model=body["model"],
        instructions="\n".join(instructions),
        user=text,
        data=data,
        row=row,
        schema=schema,
        json_wanted=json_wanted,
        max_tokens=body.get("max_completion_tokens") or body.get("max_tokens") or _DEFAULT_LIMIT,
        seed=body.get("seed") or 0,
        input_tokens=tokens,
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        mode=mode,
        options={"top_logprobs": body.get("top_logprobs") or 0 if body.get("logprobs") else None},
    )


def _parts(content: Any) -> tuple[list[str], int]:
    """Split a message's content into its texts and the tokens of its images."""
    if isinstance(content, str):
        return [content], 0
    texts = [part["text"] for part in content or () if part["type"] == "text"]
    return texts, sum(image_tokens(part["image_url"]) for part in content or () if part["type"] == "image_url")


def _wanted(body: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, bool]:
    """Find the schema, wherever this kind of server takes it."""
    wanted = body.get("response_format") or {}
    kind = wanted.get("type", "text")
    if kind == "json_schema":
        return wanted["json_schema"].get("schema"), True
    given = wanted.get("schema") or body.get("guided_json") or (body.get("structured_outputs") or {}).get("json")
    return given, given is not None or kind == "json_object"


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
