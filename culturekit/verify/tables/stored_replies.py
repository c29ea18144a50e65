"""What a journal of replies holds, read with code of its own: the question, the text of the reply, what was noted."""

import json
import math
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from culturekit.storage.manifest import JOURNAL
from culturekit.verify.run_tree import FinishedStage

__all__ = [
    "ANSWERED",
    "FILE",
    "StoredReply",
    "answer_in",
    "chance_of_yes",
    "ended_by_itself",
    "journal_of",
    "read_replies",
    "replies_of_stage",
]

FILE = "replies.sqlite"
ANSWERED = ("ok", "repaired")

REPLIES = """
SELECT replies.number, model, mode, kind, outcome, head, middle, tail, raw, runs.number, counted,
       input_tokens, output_tokens, thinking_tokens, cached_tokens, picodollars
FROM replies JOIN requests ON requests.number = replies.request JOIN templates ON templates.number = requests.template
JOIN runs ON runs.number = replies.run LEFT JOIN readings ON readings.number = replies.number
ORDER BY replies.number
"""

DATA = re.compile(rb"<untrusted-data-([0-9a-f]{16})>\\n((?:[^\"\\]|\\.)*?)\\n<untrusted-data-\1>")
"""The data of a question between its fences, inside a JSON text."""

REPAIR = re.compile(rb"\\n\\nAn earlier reply to this could not be used\.(?:[^\"\\]|\\.)*")
"""What a second request about the same row says besides."""

FENCE = re.compile(r"```[a-zA-Z]*[ \t\r]*\n(.*)```", re.DOTALL)
BLANKS = " \t\r\n"
AROUND = " \t\r\n\u2581\u0120\u010a.,!\"'*"
"""What tokens of several models have around a word."""

KNOWN = frozenset({"choices", "output", "candidates", "error", "promptFeedback", "usage", "usageMetadata"})


@dataclass(frozen=True, slots=True)
class StoredReply:
    """One reply: its number, to whom and how it was put, the question as data, and the text of what was said.

    `frame` is all of the request but its data: what else decides an answer. `text` is None where the form of the reply
    is not one that is known here. `usage` has tokens in, out, thought and cached as noted.
    """

    number: int
    model: str
    mode: str
    run: int
    outcome: str
    frame: bytes
    question: Mapping[str, Any]
    text: str | None
    body: Any
    counted: str
    usage: tuple[int, int, int, int] | None
    picodollars: int | None


def journal_of(stage: FinishedStage) -> Path | None:
    """Find the journal of a stage that asked somebody who is paid."""
    path = stage.folder / JOURNAL / FILE
    return path if isinstance(stage.manifest.options.get("judge"), Mapping) and path.is_file() else None


def replies_of_stage(stage: FinishedStage, path: Path) -> Iterator[StoredReply]:
    """Give the replies of the model that a stage names; a journal outlives other models."""
    model = stage.manifest.options.get("model")
    return (reply for reply in read_replies(path) if reply.model == model)


def read_replies(path: Path) -> Iterator[StoredReply]:
    """Read the replies of a journal, in the order in which they came; failures are none."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        for row in connection.execute(REPLIES):
            number, model, mode, kind, outcome, head, middle, tail, raw, run, counted, *usage, picodollars = row
            if kind != "reply":
                continue
            body = decoded(raw)
            frame, question = taken_apart(b"".join(map(as_bytes, (head, middle, tail))))
            yield StoredReply(
                number, model, mode, run, outcome or "", frame, question, text_of(body), body, counted or "",
                None if counted is None else tuple(usage), picodollars,
            )  # fmt: skip


def as_bytes(value: bytes | str) -> bytes:
    """Take what SQLite gives as bytes."""
    return value.encode() if isinstance(value, str) else value


def decoded(raw: bytes | str) -> Any:  # noqa: ANN401 - any JSON value
    """Read a body; None where it is no JSON, which knows no NaN and no half characters."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def taken_apart(request: bytes) -> tuple[bytes, Mapping[str, Any]]:
    """Part a request into what surrounds the data, without the note of a repair, and the data."""
    found = DATA.search(request)
    if found is None:
        return request, {}
    frame = REPAIR.sub(b"", request[: found.start()] + request[found.end() :])
    try:
        data = json.loads(json.loads(b'"' + found[2] + b'"'))
    except ValueError:
        return frame, {}
    return frame, data if isinstance(data, dict) else {}


def text_of(body: Any) -> str | None:  # noqa: ANN401 - any JSON value
    """Take the text out of a reply, empty where it has none; None where a reply is of no form that is known here."""
    if isinstance(body, dict) and not KNOWN & body.keys():
        return None
    try:
        if "choices" in body:
            message = body["choices"][0]["message"]
            content = message.get("content") or ""
            said = content if isinstance(content, str) else "".join(part.get("text") or "" for part in content)
            return said or message.get("refusal") or ""
        if "output" in body:
            parts = [part for item in body["output"] if item.get("type") == "message" for part in item["content"]]
            said = "".join(part["text"] for part in parts if part.get("type") == "output_text")
            return said or "".join(part["refusal"] for part in parts if part.get("type") == "refusal")
        if "candidates" in body:
            parts = (body["candidates"][0].get("content") or {}).get("parts") or []
            return "".join(part.get("text") or "" for part in parts if part.get("thought") is not True)
    except (LookupError, TypeError, AttributeError):
        return ""
    return ""


def answer_in(text: str | None, *, fenced: bool = False) -> dict[str, Any] | None:
    """Read a text as the one JSON object that an answer is; None where it is not. A fence round it is taken off."""
    if text is None:
        return None
    bare = text.strip(BLANKS)
    inside = FENCE.fullmatch(bare) if fenced else None
    try:
        value = json.loads(inside[1] if inside else bare, object_pairs_hook=without_repeats, parse_constant=refused)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def chance_of_yes(answer: Mapping[str, Any], *, of: str = "yes-no") -> float | None:
    """Give how probable yes is by the words that could stand first: of yes and no together, or of all words."""
    chances: dict[str, list[float]] = {"yes": [], "no": []}
    for token in answer.get("tokens", ()):
        word = token["token"].strip(AROUND).casefold()
        chances.get(word, []).append(math.exp(min(token["logprob"], 0.0)))
    yes, no = math.fsum(chances["yes"]), math.fsum(chances["no"])
    return (yes / (yes + no) if of == "yes-no" else yes) if yes + no else None


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make an object in which no key stands twice."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def refused(name: str) -> None:
    """Refuse NaN and the infinities."""
    raise ValueError(name)


def ended_by_itself(body: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Tell whether a reply of a known form came to its end, and was neither cut, filtered nor a refusal."""
    try:
        if "choices" in body:
            first = body["choices"][0]
            return first.get("finish_reason") not in {"length", "content_filter"} and not first["message"].get(
                "refusal"
            )
        if "output" in body:
            refused_parts = [part for item in body["output"] for part in item.get("content") or () if "refusal" in part]
            return body.get("status") == "completed" and not refused_parts
        return bool(body["candidates"][0].get("finishReason", "STOP") == "STOP")
    except (LookupError, TypeError, AttributeError):
        return False
