"""What the model says when nothing goes wrong: a value that fits the schema, decided by the row, never by chance."""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from PIL import Image

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
        """Draw one of `count` by the row, the path within the answer and the seed."""
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
