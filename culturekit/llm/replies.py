"""Read the text of a reply as a value of its type, or say why it is none and how to ask again."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeAlias, Union, get_args, get_origin

import msgspec

from culturekit.llm.client import Request
from culturekit.llm.reply_schema import Json, expected_shape, shape_of

ReplyCode: TypeAlias = Literal[
    "empty", "endless-white-space", "too-long", "too-deep", "not-json", "unfinished", "fenced", "text-around",
    "not-an-object", "duplicate-key", "missing-key", "unknown-key", "wrong-type", "wrong-value", "not-a-number",
    "number-out-of-range", "lone-surrogate", "unknown-id", "missing-id", "duplicate-id",
]  # fmt: skip

# Why a reply is not an answer, each in one sentence that any model may be told.
CODES: Mapping[ReplyCode, str] = {
    "empty": "The reply has no text.",
    "endless-white-space": "The reply is white space without end.",
    "too-long": "The reply is far longer than any answer.",
    "too-deep": "The reply is nested far deeper than any answer.",
    "not-json": "The reply is not JSON.",
    "unfinished": "The reply begins as JSON and breaks off.",
    "fenced": "The JSON stands in a code fence; it must stand alone.",
    "text-around": "There is text around the JSON; it must stand alone.",
    "not-an-object": "The reply is JSON, but not an object.",
    "duplicate-key": "A key stands twice in one object.",
    "missing-key": "A key that was asked for is missing.",
    "unknown-key": "There is a key that was not asked for.",
    "wrong-type": "A value is of the wrong type.",
    "wrong-value": "A value is not one of those allowed, or outside its limits.",
    "not-a-number": "NaN and Infinity are not JSON numbers.",
    "number-out-of-range": "A number is too large to be kept.",
    "lone-surrogate": "A text holds half of a character.",
    "unknown-id": "An id is not among those that were given.",
    "missing-id": "An id that was given is not answered.",
    "duplicate-id": "An id is answered twice.",
}
FENCED = "fenced"  # also the detail of an answer whose code fence was taken off here

Answer: TypeAlias = "msgspec.Struct | ParseFailure"

_LONGEST = 1_000_000  # characters; what a model can say in one reply ends well before
_DEEPEST = 32  # levels; the deepest schema that any target takes has 10
_FLOOD = 200  # characters of white space in a row, in what is no answer, that are called endless
_LARGEST = 2**63 - 1  # beyond this no table can hold a whole number
_EXACT = 2**53
_BRACES_TRIED = 20

_END = re.compile(r"(?<!\\)\$$")
_WHITE_SPACE = " \t\r\n"
_RUN = re.compile(rf"[ \t\r\n]{{{_FLOOD}}}")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A reply that is not an answer: its code, the field of the shape that it is about, and the raw text."""

    code: ReplyCode
    detail: str
    raw: str = field(repr=False)


class _Unreadable(Exception):
    """A text that is not one strict JSON object."""

    def __init__(self, code: ReplyCode) -> None:
        super().__init__(code)
        self.code: ReplyCode = code


def read_reply(request: Request, text: str) -> Answer:
    """Read a reply as one JSON object of the shape and with the values that the request allows.

    Nothing else is an answer: no text or code fence around the object, no key twice, none missing and none too many.

    `request.allowed` names keys. Under a key such as `id` stands one of its values, or a list of some of them, none
    twice. Under a key of the items of a list, written `verdicts[].id`, each of its values stands exactly once.
    """
    try:
        value = _read_json(text)
    except _Unreadable as error:
        return ParseFailure(error.code, "", text)
    if (mistake := _mistake(value, request.reply, "")) is not None:
        return ParseFailure(mistake[0], mistake[1].lstrip(".") or "reply", text)
    try:
        answer = msgspec.convert(value, request.reply)
    except msgspec.ValidationError:  # rules of the type itself
        return ParseFailure("wrong-value", "reply", text)
    for key, allowed in request.allowed.items():
        if value.get(key) in allowed:
            continue
        code = _problem_of_ids(list(_values_at(value, key.split("."))), allowed, each_once="[]" in key)
        if code is not None:
            return ParseFailure(code, key, text)
    return answer


def _read_json(text: str) -> Json:
    """Read exactly one JSON object, in nothing but white space: no key twice, no NaN, no half characters."""
    if len(text) > _LONGEST:
        raise _Unreadable("endless-white-space" if _RUN.search(text, 0, _LONGEST) else "too-long")
    bare = text.strip(_WHITE_SPACE)
    if not bare:
        raise _Unreadable("endless-white-space" if _RUN.search(text) else "empty")
    if bare.count("{") + bare.count("[") > _DEEPEST and _too_deep(bare):
        raise _Unreadable("too-deep")
    try:
        value = _DECODER.decode(bare)
    except json.JSONDecodeError as error:
        raise _Unreadable("endless-white-space" if _RUN.search(text) else _code_of_text(bare, error)) from None
    except ValueError:
        raise _Unreadable("number-out-of-range") from None
    if not isinstance(value, dict):
        raise _Unreadable("not-an-object")
    try:
        bare.encode()
        if "\\u" in bare:
            "".join(_texts(value)).encode()
    except UnicodeEncodeError:
        raise _Unreadable("lone-surrogate") from None
    return value


def _too_deep(text: str) -> bool:
    """Check whether the brackets of a text, those in its strings left out, are nested deeper than allowed."""
    level = 0
    for token in _TOKEN.finditer(text):
        level += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if level > _DEEPEST:
            return True
    return False


def without_fence(text: str) -> str:
    """Take a code fence off, if the whole text is that one fence."""
    opening, newline, rest = text.strip(_WHITE_SPACE).partition("\n")
    if not newline or not re.fullmatch(r"```[a-zA-Z]*[ \t\r]*", opening) or not rest.endswith("```"):
        return text
    inner = rest[:-3].strip(_WHITE_SPACE)
    return text if "```" in inner else inner


def _code_of_text(text: str, error: json.JSONDecodeError) -> ReplyCode:
    """Name the kind of a text that is not JSON."""
    if text.startswith("```"):
        return "fenced"
    if error.msg == "Extra data" or _holds_object(text):
        return "text-around"
    breaks_off = error.pos >= len(text) or error.msg.startswith("Unterminated")
    return "unfinished" if text[0] == "{" and breaks_off else "not-json"


def _holds_object(text: str) -> bool:
    """Check whether a JSON object begins at one of the first opening braces of a text that begins with none."""
    start = text.find("{", 1)
    for _ in range(_BRACES_TRIED if text[0] != "{" else 0):
        if start < 0:
            return False
        try:
            _DECODER.raw_decode(text, start)
        except (ValueError, _Unreadable):
            start = text.find("{", start + 1)
        else:
            return True
    return False


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for item in value:
            yield from _texts(item)
        yield from _texts(list(value.values())) if isinstance(value, dict) else ()


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _Unreadable("duplicate-key")
    return found


def _finite(digits: str) -> float:
    """Read a number that a float can hold; to JSON 3.0 is the whole number 3."""
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise _Unreadable("number-out-of-range")
    return int(number) if number.is_integer() and abs(number) < _EXACT else number


def _refuse_constant(_: str) -> NoReturn:
    """Reject NaN and the infinities, which Python reads and JSON does not have."""
    raise _Unreadable("not-a-number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_float=_finite, parse_constant=_refuse_constant)


def _mistake(value: Any, kind: Any, path: str) -> tuple[ReplyCode, str] | None:  # noqa: ANN401 - any value and type
    """Find the first mistake of a value and its place, in the order of its type: the code asks for one repair only."""
    plain, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    form, parts = get_origin(plain), get_args(plain)
    if form in (Union, UnionType) and value is not None:
        (part, *others) = (part for part in parts if part is not NoneType)
        part = Annotated[part, *notes] if notes else part
        return _mistake_of_leaf(value, kind, path) if others else _mistake(value, part, path)
    if isinstance(plain, type) and issubclass(plain, msgspec.Struct):
        return _mistake_of_object(value, plain, path)
    below: Iterable[object] = ()
    holds = form if isinstance(form, type) and (form is not tuple or parts[-1] is Ellipsis) else type
    if issubclass(holds, Collection) and isinstance(value, list):
        mistake = _mistake_of_leaf(value, Annotated[list[Any], *notes], path) if notes else None
        twice = issubclass(holds, Set) and any(item in value[:index] for index, item in enumerate(value))
        if mistake is not None or twice:
            return mistake or ("wrong-value", path)
        below, path = value, f"{path}[]"
    elif issubclass(holds, Mapping) and isinstance(value, dict):
        below, parts, path = value.values(), parts[1:], f"{path}.*"
    else:
        return _mistake_of_leaf(value, kind, path)
    return next(filter(None, (_mistake(item, parts[0], path) for item in below)), None)


def _mistake_of_object(value: object, kind: type[msgspec.Struct], path: str) -> tuple[ReplyCode, str] | None:
    if not isinstance(value, dict):
        return "wrong-type", path
    fields = msgspec.structs.fields(kind)
    for each in fields:
        inner = f"{path}.{each.encode_name}"
        if each.encode_name not in value:
            found: tuple[ReplyCode, str] | None = ("missing-key", inner) if each.required else None
        else:
            found = _mistake(value[each.encode_name], each.type, inner)
        if found is not None:
            return found
    return ("unknown-key", path) if value.keys() - {each.encode_name for each in fields} else None


def _mistake_of_leaf(value: Any, kind: Any, path: str) -> tuple[ReplyCode, str] | None:  # noqa: ANN401 - as above
    """Find what keeps a value from its type; a whole number may have 63 bits, and `$` is the end of a text."""
    plain, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    if get_origin(plain) is Literal and (isinstance(value, bool) or value not in get_args(plain)):
        return "wrong-value" if isinstance(value, str | int) else "wrong-type", path
    whole = isinstance(value, int | float) and (plain is int or isinstance(value, int)) and value == value // 1
    if whole and not isinstance(value, bool) and abs(value) > _LARGEST and plain is not float:
        return ("number-out-of-range", path) if int in (plain, *get_args(plain)) else ("wrong-type", path)
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        return "wrong-type" if ", got `" in str(error) else "wrong-value", path
    patterns = (note.pattern for note in notes if isinstance(note, msgspec.Meta) and note.pattern)
    fits = all(re.search(_END.sub(r"\\Z", pattern), value) for pattern in patterns)
    return None if fits else ("wrong-value", path)


def _values_at(value: object, steps: Sequence[str]) -> Iterator[object]:
    """Yield the values under a path of keys; `[]` goes into each item of a list."""
    if not steps:
        yield value
    elif isinstance(value, dict):
        below = value.get(steps[0].removesuffix("[]"))
        for item in below if steps[0].endswith("[]") and isinstance(below, list) else [below]:
            yield from _values_at(item, steps[1:])


def _problem_of_ids(found: Sequence[object], allowed: Sequence[str], *, each_once: bool) -> ReplyCode | None:
    """Compare ids with those that were given."""
    ids = [item for each in found for item in (each if isinstance(each, list) else [each]) if item is not None]
    if any(item not in allowed for item in ids):
        return "unknown-id"
    if len({str(item) for item in ids}) < len(ids):
        return "duplicate-id"
    return "missing-id" if each_once and len(ids) < len(set(allowed)) else None


_WORDING = """

An earlier reply to this could not be used.
Error {code}: {sentence}
Reply again, with nothing but one JSON object of this shape:
{shape}
"""
# What stands in the body of every repair, and of nothing else: line breaks of data are escaped twice.
REPAIR_MARK = _WORDING.partition("Error")[0].replace("\n", "\\n").encode()


def repair_request(request: Request, failure: ParseFailure) -> Request:
    """Ask again, and quote the error code and the expected shape; nothing of the earlier reply is sent back.

    The instructions differ from those of the first request, so the repair has a key of its own. For one shape there
    are as many as there are codes.
    """
    shape = expected_shape(shape_of(request.schema_type).root)
    note = _WORDING.format(code=failure.code, sentence=CODES[failure.code], shape=shape)
    return replace(request, instructions=request.instructions + note)
