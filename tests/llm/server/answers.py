"""What a model answers, before a protocol writes it down: text, why it stopped, what it cost."""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import orjson

from tests.llm.server.made_replies import Question, count_text, fraction_of, made_value
from tests.llm.server.script import ANSWER_FAULTS, TEXT_FAULTS, Fault, Script

_TEN_MEGABYTES = 10_000_000
_DEEP = 100_000


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _with(value: Any, key: str, new: Any) -> dict[str, Any]:
    return {**value, key: new} if isinstance(value, dict) else {key: new}


def _first_text(value: Any) -> str:
    """Name the first key that holds a text and is not the id; `note` where there is none."""
    pairs = value.items() if isinstance(value, dict) else ()
    return next((key for key, held in pairs if isinstance(held, str) and key != "id"), "note")


def _missing_key(fault: Fault, value: Any) -> str:
    gone = fault.text or next(reversed(value), "") if isinstance(value, dict) else ""
    return _json({key: held for key, held in value.items() if key != gone} if isinstance(value, dict) else None)


def _duplicate_key(fault: Fault, value: Any) -> str:
    key = fault.text or "id"
    held = value.get(key) if isinstance(value, dict) else ""
    return f"{{{_json(key)}:{_json(held)},{_json(_with(value, key, f'{held}0'))[1:]}"


def _placed(value: Any, key: str, written: str) -> str:
    """Write a value with one of its keys holding JSON that no encoder would write."""
    marker = "\x00placed\x00"
    return _json(_with(value, key, marker)).replace(_json(marker), written)


_MISCHIEF: dict[str, Callable[[Fault, Any], str]] = {
    "wrong-id": lambda fault, value: _json(_with(value, "id", fault.text or "Q999999999")),
    "missing-key": _missing_key,
    "duplicate-key": _duplicate_key,
    "not-in-enum": lambda fault, value: _json(_with(value, _first_text(value), fault.text or "perhaps")),
    "prose": lambda fault, value: fault.text or "I believe this one should be kept, but it is hard to be sure.",
    "code-fence": lambda fault, value: f"```json\n{_json(value)}\n```",
    "prose-around": lambda fault, value: f"Sure! Here is the answer:\n{_json(value)}\nLet me know if you need more.",
    "long-string": lambda fault, value: _json(_with(value, _first_text(value), "a" * (fault.size or _TEN_MEGABYTES))),
    "deep-nesting": lambda fault, value: _placed(
        value, _first_text(value), "[" * (fault.size or _DEEP) + "]" * (fault.size or _DEEP)
    ),
    "nan": lambda fault, value: _placed(value, _first_text(value), "NaN"),
    "lone-surrogate": lambda fault, value: _placed(value, _first_text(value), '"half \\ud83d a pair"'),
    "array": lambda fault, value: _json([value]),
    "null": lambda fault, value: "null",
}


Ending: TypeAlias = Literal[
    "stop", "length", "refusal", "content-filter", "recitation", "prohibited", "prompt-blocked", "no-candidates"
]

# A model of the test's own: what it says to a question; None leaves it to the server's.
Model: TypeAlias = Callable[[Question], "str | Answer | None"]
_SPACE_AT_MOST = 200_000
_DECLINES = "I'm sorry, but I can't help with that."


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer. `output_tokens` are all that is billed as output, thinking among them."""

    text: str
    ending: Ending = "stop"
    detail: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cached_tokens: int = 0
    # Of the first token, the likeliest first; empty: drawn by a hash; None: the server lists none.
    logprobs: tuple[tuple[str, float], ...] | None = ()


def answer_to(question: Question, fault: Fault | None, script: Script, model: Model | None) -> Answer:
    """Answer a question as the script has it."""
    own = model(question) if model is not None else None
    if isinstance(own, Answer):
        answer = own
    elif question.operation == "images" and (fault is None or fault.kind not in ANSWER_FAULTS):
        answer = Answer(question.user, output_tokens=question.max_tokens)
    elif fault is not None and fault.kind in ANSWER_FAULTS:
        answer = _stopped(question, fault, own, script)
    else:
        answer = Answer(_text(question, fault, own, script))
        if fault is None or fault.kind not in TEXT_FAULTS:
            answer = _limited(answer, question, script)
    return _counted(answer, question, script)


def _text(question: Question, fault: Fault | None, own: str | None, script: Script) -> str:
    if fault is not None and fault.kind == "says":
        return fault.text.replace("{id}", question.row)
    if fault is not None and fault.kind in TEXT_FAULTS:
        return _MISCHIEF[fault.kind](fault, made_value(question))
    if own is not None:
        return own
    if script.ignores_schema and question.schema is not None:
        question = replace(question, schema=None)
    value = made_value(question)
    if question.schema is None and not question.json_wanted:
        return f"About {question.row}: {value['text']}."
    try:  # without white space, as a model writes
        return orjson.dumps(value).decode()
    except TypeError:  # half a surrogate pair, which came with the data
        return json.dumps(value, separators=(",", ":"))


def _stopped(question: Question, fault: Fault, own: str | None, script: Script) -> Answer:
    match fault.kind:
        case "truncated":
            text = _text(question, None, own, script)
            return Answer(text[: max(1, len(text) // 2)], "length", output_tokens=question.max_tokens)
        case "truncated-empty":
            return Answer("", "length", output_tokens=question.max_tokens, thinking_tokens=question.max_tokens)
        case "white-space":
            size = fault.size or min(4 * question.max_tokens, _SPACE_AT_MOST)
            return Answer("{" + "\n \t"[: 1 + size % 3] * (size // 2), "length", output_tokens=question.max_tokens)
        case "refusal":
            return Answer(fault.text or _DECLINES, "refusal")
        case "content-filter" | "recitation" | "prohibited":
            return Answer("", fault.kind, fault.text)
        case "prompt-blocked":
            return Answer("", "prompt-blocked", fault.text or "SAFETY")
        case _:
            return Answer("", "no-candidates")


def _limited(answer: Answer, question: Question, script: Script) -> Answer:
    """End an answer at the limit of tokens it was asked to keep."""
    allowed = question.max_tokens - script.thinking
    if count_text(answer.text) <= allowed:
        return answer
    thinking = min(script.thinking, question.max_tokens)
    text = answer.text[: max(0, 4 * allowed)]
    while count_text(text) > max(0, allowed):
        text = text[: len(text) // 2]
    return replace(answer, text=text, ending="length", output_tokens=question.max_tokens, thinking_tokens=thinking)


def _counted(answer: Answer, question: Question, script: Script) -> Answer:
    nothing_said = answer.ending in {"prompt-blocked", "no-candidates"}
    thinking = answer.thinking_tokens or (0 if nothing_said else min(script.thinking, question.max_tokens))
    output = answer.output_tokens or (0 if nothing_said else thinking + count_text(answer.text))
    share = script.cached * fraction_of("cached", question.digest) * 2 if script.cached else 0.0
    cached = min(question.input_tokens, int(question.input_tokens * share))
    return Answer(
        answer.text, answer.ending, answer.detail, input_tokens=answer.input_tokens or question.input_tokens,
        output_tokens=min(output, max(question.max_tokens, thinking)), thinking_tokens=thinking,
        cached_tokens=answer.cached_tokens or cached, logprobs=answer.logprobs,
    )  # fmt: skip
