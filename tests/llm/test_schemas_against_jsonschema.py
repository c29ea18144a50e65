"""Random reply types, random values of them, mutated: an independent validator agrees with our own reading."""

import copy
import itertools
import json
from collections.abc import Iterator
from types import GenericAlias
from typing import Annotated, Any, Literal

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from culturekit.llm.client import Request
from culturekit.llm.replies import ParseFailure, read_reply
from culturekit.llm.reply_schema import Target, schema_of

TARGETS: tuple[Target, ...] = ("openai", "google-json", "vllm", "llamacpp", "ollama")

NAMES = st.sampled_from(["id", "verdict", "reason", "quote", "year", "share", "parts", "sure"])
WORDS = st.text(st.sampled_from('abcé\u0301日\U0001f600"\\<>` \n'), max_size=6)
SMALL = st.integers(-5, 5)
ENCODABLE = st.characters(codec="utf-8")
TAGS = ("a", "b")
NUMBERS = itertools.count()


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    low, size = draw(SMALL), draw(st.integers(0, 4))
    limited = [
        Annotated[str, Meta(min_length=size, max_length=size + 2)],
        Annotated[str, Meta(pattern="^Q[1-9][0-9]*$")],
        Annotated[int, Meta(ge=low, lt=low + 4)],
        Annotated[float, Meta(gt=low, le=low + 2)],
    ]
    return draw(st.sampled_from([str, int, float, bool, Literal["keep", "remove", "review"], *limited]))


def wrapped(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.builds(list_of, kinds, st.integers(0, 2) | st.none())
    return st.one_of(lists, kinds.map(lambda kind: kind | None), structs(kinds), unions(kinds))


def list_of(kind: Any, low: int | None) -> Any:
    made = GenericAlias(list, (kind,))
    return made if low is None else Annotated[made, Meta(min_length=low, max_length=low + 3)]


@st.composite
def structs(draw: st.DrawFn, kinds: st.SearchStrategy[Any], tag: str | None = None) -> Any:
    fields = draw(st.dictionaries(NAMES, kinds, min_size=1, max_size=4))
    return msgspec.defstruct(f"Struct{next(NUMBERS)}", list(fields.items()), tag=tag)


@st.composite
def unions(draw: st.DrawFn, kinds: st.SearchStrategy[Any]) -> Any:
    first, second = (draw(structs(kinds, tag)) for tag in TAGS)
    return first | second


SHAPES = structs(st.recursive(leaves(), wrapped, max_leaves=5))
SCALARS = st.one_of(st.none(), st.booleans(), SMALL, st.floats(-9, 9), WORDS, st.sampled_from(["keep", "Q12", "a"]))


def values_of(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values that fit, drawn by a reading of the schema that is not ours."""
    if "anyOf" in schema:
        return st.one_of([values_of(option) for option in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if schema["type"] == "object":
        return st.fixed_dictionaries({key: values_of(below) for key, below in schema["properties"].items()})
    if schema["type"] == "array":
        low, high = schema.get("minItems", 0), schema.get("maxItems", 3)
        return st.lists(values_of(schema["items"]), min_size=low, max_size=high)
    if schema["type"] == "string" and "pattern" in schema:
        return st.from_regex(r"\AQ[1-9][0-9]{0,3}\Z")
    simple: dict[str, st.SearchStrategy[Any]] = {
        "string": st.text(ENCODABLE, min_size=schema.get("minLength", 0), max_size=schema.get("maxLength", 5)),
        "integer": st.integers(low, high) if low is not None else st.integers(-(2**63) + 1, 2**63 - 1),
        "number": st.floats(low, high, exclude_min="exclusiveMinimum" in schema, allow_nan=False, allow_infinity=False),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return simple[schema["type"]]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(pairs):
        yield value, key
        yield from places(below)


@st.composite
def mutations(draw: st.DrawFn, value: Any) -> Any:
    """Change one place: another value, a key less, a key more, an item twice."""
    changed = copy.deepcopy(value)
    parent, key = draw(st.sampled_from(list(places(changed))))
    match draw(st.sampled_from(["other", "drop", "add", "wrap"])):
        case "other":
            parent[key] = draw(SCALARS)
        case "drop":
            del parent[key]
        case "add" if isinstance(parent, dict):
            parent[draw(NAMES)] = draw(SCALARS)
        case "add":
            parent.append(draw(SCALARS))
        case "wrap":
            parent[key] = [parent[key]]
    return changed


def accepted(kind: Any, value: Any) -> bool:
    answer = read_reply(Request("t", "i", {}, kind), json.dumps(value))
    return not isinstance(answer, ParseFailure)


SLOW = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@SLOW
@given(st.data())
def test_what_fits_the_type_fits_every_schema_of_it_and_is_read(data: st.DataObject) -> None:
    kind = data.draw(SHAPES)
    value = data.draw(values_of(schema_of(kind, "vllm")))
    assert accepted(kind, value)
    built = json.loads(msgspec.json.encode(msgspec.convert(value, kind)))
    for target in TARGETS:
        jsonschema.validate(built, schema_of(kind, target))
        jsonschema.validate(value, schema_of(kind, target))


@SLOW
@given(st.data())
def test_what_is_read_is_what_an_independent_validator_accepts(data: st.DataObject) -> None:
    kind = data.draw(SHAPES)
    value = data.draw(mutations(data.draw(values_of(schema_of(kind, "vllm")))))
    ours = accepted(kind, value)
    assert ours == jsonschema.Draft202012Validator(schema_of(kind, "vllm")).is_valid(value)
    for target in TARGETS:
        if ours:
            jsonschema.validate(value, schema_of(kind, target))
