"""OpenAI responses: read a request as a question, write an answer as a response."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from tests.llm.server.answers import Answer
from tests.llm.server.error_replies import Refused
from tests.llm.server.made_replies import Question, count_text, data_of
from tests.llm.server.openai_chat import created_at, image_tokens

_DEFAULT_LIMIT = 16_384
_INCOMPLETE = {"length": "max_output_tokens"}
_INCOMPLETE |= dict.fromkeys(("content-filter", "recitation", "prohibited", "prompt-blocked"), "content_filter")


def responses_question(body: Mapping[str, Any], mode: Any = "online") -> Question:
    """Read what is asked; the body was checked before."""
    instructions: list[str] = [body.get("instructions") or ""]
    user: list[str] = []
    tokens = 3 + count_text(instructions[0])
    given = body["input"]
    for item in [{"role": "user", "content": given}] if isinstance(given, str) else given:
        texts, images = _parts(item["content"])
        tokens += 4 + sum(map(count_text, texts)) + images
        (instructions if item["role"] in {"system", "developer"} else user).extend(texts)
    wanted = (body.get("text") or {}).get("format") or {}
    schema = wanted.get("schema")
    tokens += count_text(orjson.dumps(schema).decode()) if schema is not None else 0
    text = "\n".join(user)
    data, row = data_of(text)
    return Question(
        provider="openai",
        operation="responses",
        model=body["model"],
        instructions="\n".join(instructions),
        user=text,
        data=data,
        row=row,
        schema=schema,
        json_wanted=wanted.get("type") in {"json_schema", "json_object"},
        max_tokens=body.get("max_output_tokens") or _DEFAULT_LIMIT,
        seed=0,
        input_tokens=tokens,
        digest=hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest(),
        mode=mode,
    )


def _parts(content: Any) -> tuple[list[str], int]:
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
