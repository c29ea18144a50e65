"""Questions and replies of the size of those of `cspace filter`, for benchmarks."""

import hashlib

from culturekit.core.digests import canonical_json
from culturekit.llm.client import Identity, Outgoing
from culturekit.llm.journal import Entry, key_of

__all__ = ["IDENTITY", "entry_of", "outgoing_of"]

IDENTITY = Identity("openai", "https://api.openai.com/v1", "chat/completions", "gpt-4o-mini")
INSTRUCTIONS = "You judge whether a candidate is an artifact of the culture of a country. Answer for its id only. " * 10
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "verdict": {"enum": ["keep", "remove", "review"]}}}


def outgoing_of(number: int) -> Outgoing:
    """Write a question as it leaves."""
    data = {
        "id": f"Q{number}",
        "label": f"dish number {number}",
        "description": "a stew of beans and maize, eaten warm",
    }
    fence = hashlib.sha256(canonical_json(data)).hexdigest()[:16]
    body = {
        "max_completion_tokens": 256,
        "messages": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": f"<{fence}>{canonical_json(data).decode()}</{fence}>"},
        ],
        "model": IDENTITY.model,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA},
        },
    }
    return Outgoing(canonical_json(body))


def entry_of(number: int) -> Entry:
    """Write a question and the reply to it, as the journal keeps them."""
    outgoing = outgoing_of(number)
    usage: dict[str, object] = {"prompt_tokens": 300, "completion_tokens": 14, "total_tokens": 314}
    usage |= {"prompt_tokens_details": {"cached_tokens": 0}, "completion_tokens_details": {"reasoning_tokens": 0}}
    content = f'{{"id":"Q{number}","verdict":"keep"}}'
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": content, "refusal": None},
        "finish_reason": "stop",
    }
    raw = {"id": f"chatcmpl-{number}", "object": "chat.completion", "model": "gpt-4o-mini-2024-07-18"}
    reply = canonical_json({**raw, "choices": [choice], "usage": usage, "system_fingerprint": "fp_0"})
    key = key_of(IDENTITY, outgoing)
    return Entry(key, "run", 1, "online", 200, "reply", reply, outgoing.body, model=IDENTITY.model)
