"""What a model says instead of an answer, fault by fault."""

import json
from collections.abc import Callable
from typing import Any

from tests.llm.server.questions import Question
from tests.llm.server.script import Fault

__all__ = ["mischievous_text"]

_TEN_MEGABYTES = 10_000_000
_DEEP = 100_000


def mischievous_text(fault: Fault, question: Question, value: Any, *, other: Any) -> str:
    """Say the answer wrongly; `other` is the answer to another row."""
    if fault.kind == "says":
        return fault.text.replace("{id}", question.row)
    if fault.kind == "other-row":
        return _json(other)
    return _MISCHIEF[fault.kind](fault, value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _with(value: Any, key: str, new: Any) -> dict[str, Any]:
    return {**value, key: new} if isinstance(value, dict) else {key: new}


def _first_text(value: Any) -> str:
    """Name the first key that holds a text and is not the id; `note` where there is none."""
    pairs = value.items() if isinstance(value, dict) else ()
    return next((key for key, held in pairs if isinstance(held, str) and key != "id"), "note")


def _wrong_id(fault: Fault, value: Any) -> str:
    return _json(_with(value, "id", fault.text or "Q999999999"))


def _missing_key(fault: Fault, value: Any) -> str:
    gone = fault.text or (list(value)[-1] if isinstance(value, dict) and value else "")
    return _json({key: held for key, held in value.items() if key != gone} if isinstance(value, dict) else None)


def _duplicate_key(fault: Fault, value: Any) -> str:
    key = fault.text or "id"
    held = value.get(key) if isinstance(value, dict) else ""
    return f"{{{_json(key)}:{_json(held)},{_json(_with(value, key, f'{held}0'))[1:]}"


def _wrong_type(fault: Fault, value: Any) -> str:
    return _json(_with(value, fault.text or _first_text(value), 7))


def _placed(value: Any, key: str, written: str) -> str:
    """Write a value with one of its keys holding JSON that no encoder would write."""
    marker = "\x00placed\x00"
    return _json(_with(value, key, marker)).replace(_json(marker), written)


_MISCHIEF: dict[str, Callable[[Fault, Any], str]] = {
    "wrong-id": _wrong_id,
    "missing-key": _missing_key,
    "unknown-key": lambda fault, value: _json(_with(value, fault.text or "confidence", 1)),
    "duplicate-key": _duplicate_key,
    "not-in-enum": lambda fault, value: _json(_with(value, _first_text(value), fault.text or "perhaps")),
    "wrong-type": _wrong_type,
    "prose": lambda fault, value: fault.text or "I believe this one should be kept, but it is hard to be sure.",
    "code-fence": lambda fault, value: f"```json\n{_json(value)}\n```",
    "prose-around": lambda fault, value: f"Sure! Here is the answer:\n{_json(value)}\nLet me know if you need more.",
    "two-objects": lambda fault, value: f"{_json(value)}\n{_json(value)}",
    "cut-text": lambda fault, value: _json(value)[: max(1, len(_json(value)) // 2)],
    "long-string": lambda fault, value: _json(_with(value, _first_text(value), "a" * (fault.size or _TEN_MEGABYTES))),
    "deep-nesting": lambda fault, value: _placed(
        value, _first_text(value), "[" * (fault.size or _DEEP) + "]" * (fault.size or _DEEP)
    ),
    "nan": lambda fault, value: _placed(value, _first_text(value), "NaN"),
    "lone-surrogate": lambda fault, value: _placed(value, _first_text(value), '"half \\ud83d a pair"'),
    "empty-text": lambda fault, value: "",
    "array": lambda fault, value: _json([value]),
    "null": lambda fault, value: "null",
}
