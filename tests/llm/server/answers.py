"""What the model says when nothing goes wrong: a value that fits the schema, decided by the row, never by chance."""

import hashlib
import io
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, TypeAlias

import orjson
from PIL import Image

from tests.llm.server.script import ANSWER_FAULTS, TEXT_FAULTS, Fault, Pictures, Script

_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True, slots=True)
class Question:
    """One question to a model. `schema` is plain JSON schema; `data` the first JSON object of the user's message."""

    provider: Literal["openai", "google"]
    operation: str
    model: str
    instructions: str
    user: str
    data: Mapping[str, Any]
    row: str
    schema: Mapping[str, Any] | None
    json_wanted: bool
    max_tokens: int
    seed: int
    input_tokens: int
    digest: str
    mode: Literal["online", "batch"] = "online"
    options: Mapping[str, Any] = field(default_factory=dict)


def data_of(user: str) -> tuple[Mapping[str, Any], str]:
    """Find the data in a user's message, and the id of the row they are about.

    The first JSON object that has an `id` counts, else the first of all; a text without one is known by its hash.
    Objects within the strings of another are not looked into, so no label can pass for another row.
    """
    first: Mapping[str, Any] = {}
    at = user.find("{")
    while at >= 0:
        try:
            value, end = _DECODER.raw_decode(user, at)
        except (ValueError, RecursionError):
            end, value = at + 1, None
        if isinstance(value, dict):
            if "id" in value:
                return value, str(value["id"])
            first = first or value
        at = user.find("{", end)
    return first, hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def count_text(text: str) -> int:
    """Count a quarter of the ASCII characters and every other character, rounded up."""
    ascii_count = len(text) if text.isascii() else len(text.encode("ascii", "ignore"))
    return (ascii_count + 3) // 4 + len(text) - ascii_count


@lru_cache(maxsize=1024)
def count_image(content: bytes, provider: str) -> int:
    """Count an image by its tiles: 85 and 170 a tile of 512 for OpenAI, 258 a tile of 768 for Google."""
    try:
        width, height = Image.open(io.BytesIO(content)).size
    except OSError:
        width, height = 1024, 1024
    if provider == "openai":
        scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
        tiles = -(-round(width * scale) // 512) * -(-round(height * scale) // 512)
        return 85 + 170 * tiles
    if width <= 384 and height <= 384:
        return 258
    return 258 * (-(-width // 768) * -(-height // 768))


_WORDS = ("alder", "birch", "cedar", "dogwood", "elm", "fir", "ginkgo", "hazel", "ivy", "juniper", "larch", "maple")
_DEEPEST = 12


def fraction_of(*parts: object) -> float:
    """Draw a number from 0 to below 1 from what is given, always the same one."""
    digest = hashlib.sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def made_value(question: Question) -> Any:
    """Make the answer to a question: its `id` echoed, enums drawn by hash, all keys there."""
    if question.schema is None:
        return {"id": question.row, "text": _words(question, "text")}
    root = question.schema
    definitions: Mapping[str, Any] = root.get("$defs") or root.get("definitions") or {}

    def draw(path: str, count: int) -> int:
        return int(fraction_of("", question.row, question.seed, question.model, path) * count)

    def make(schema: Mapping[str, Any], path: str, depth: int) -> Any:
        if "$ref" in schema:
            name = str(schema["$ref"]).rsplit("/", 1)[-1]
            schema = root if name == "#" else definitions.get(name, {})
        key = path.rsplit(".", 1)[-1]
        if options := schema.get("anyOf") or schema.get("oneOf"):
            usable = [each for each in options if depth >= 3 or each.get("type") not in {"null", "NULL"}]
            return make(usable[draw(path, len(usable))], path, depth + 1)
        if "const" in schema:
            return schema["const"]
        if values := schema.get("enum"):
            echoed = question.data.get(key)
            return echoed if key == "id" and echoed in values else values[draw(path, len(values))]
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((one for one in kind if one != "null"), "null")
        match str(kind).lower():
            case "object":
                properties = schema.get("properties") or {}
                return {name: make(part, f"{path}.{name}", depth + 1) for name, part in properties.items()}
            case "array":
                least = int(schema.get("minItems", 0))
                most = int(schema.get("maxItems", least + 2))
                count = least if depth >= _DEEPEST else min(most, max(least, draw(path, 3)))
                return [make(schema.get("items") or {}, f"{path}[{at}]", depth + 1) for at in range(count)]
            case "integer" | "number":
                low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
                high = schema.get("maximum", schema.get("exclusiveMaximum", low + 10))
                first = int(low) + ("exclusiveMinimum" in schema)
                last = int(high) - ("exclusiveMaximum" in schema)
                if str(kind).lower() == "integer" or last - first > 1:
                    return first + draw(path, max(1, last - first + 1))
                return float(low + (high - low) * (1 + draw(path, 8)) / 10)
            case "boolean":
                return draw(path, 2) == 1
            case "null":
                return None
        if key == "id":
            return question.row
        if key == "quote":  # of the longest text of the data
            texts = [value for name, value in question.data.items() if name != "id" and isinstance(value, str)]
            words = max(texts, key=len, default="").split(" ")
            start = draw(path, max(1, len(words) - 4))
            return " ".join(words[start : start + 5])
        text = _words(question, path)
        while len(text) < int(schema.get("minLength", 0)):
            text += " " + text
        return text[: int(schema["maxLength"])] if "maxLength" in schema else text

    return make(root, "$", 0)


def _words(question: Question, path: str) -> str:
    first = int(fraction_of("", question.row, question.seed, path, 1) * len(_WORDS))
    second = int(fraction_of("", question.row, question.seed, path, 2) * len(_WORDS))
    return f"{_WORDS[first]} {_WORDS[second]}"


CONTENT_TYPES = {"png": "image/png", "jpeg": "image/jpeg", "webp": "image/webp", "page": "text/html"}


def picture_bytes(digest: str, place: int, told: Pictures) -> bytes:
    seed = sha256(f"{digest} {place}".encode()).digest()
    match told.form:
        case "page":
            return b"<html><body>not a picture</body></html>"
        case "bomb":
            return bomb(60_000)
        case "cut":
            return drawn(seed, told.side, "png")[:-20]
        case "none":
            return b""
        case "svg":
            return b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
        case form:
            return drawn(seed, told.side, "png" if form == "torn" else form)


def drawn(seed: bytes, side: int, form: str) -> bytes:
    picture = Image.new("RGB", (2, 2))
    picture.putdata([tuple(seed[at : at + 3]) for at in (0, 3, 6, 9)])
    buffer = io.BytesIO()
    picture.resize((side, side), Image.Resampling.NEAREST).save(buffer, format=form.upper())
    return buffer.getvalue()


def bomb(side: int) -> bytes:
    """Write a PNG whose header states far more pixels than its bytes hold."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    parts = [(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)), (b"IDAT", zlib.compress(bytes(1000)))]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in [*parts, (b"IEND", b"")])


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
