"""Replies are read as strictly as an independent validator reads the schema that was asked for."""

import copy
import enum
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, get_args
from uuid import UUID

import jsonschema
import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import Meta

from culturekit.core.errors import UsageError
from culturekit.llm.client import Request
from culturekit.llm.replies import CODES, Answer, ParseFailure, ReplyCode, read_reply, repair_request, without_fence
from culturekit.llm.reply_schema import TARGETS, Target, response_format, schema_of, shape_of


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    note: str


class Judged(msgspec.Struct, frozen=True):
    id: str
    verdict: Literal["keep", "remove"]


class Page(msgspec.Struct, frozen=True):
    verdicts: list[Judged]


class Refined(msgspec.Struct, frozen=True):
    best: str | None
    others: list[str]
    share: float = 0.5
    rank: int = 1


class Marked(msgspec.Struct, frozen=True):
    mark: Annotated[str, msgspec.Meta(pattern="^[1-5]$")]
    why: str = ""


REQUEST = Request("t", "i", {"id": "Q1"}, Note, {"id": ("Q1",)})
PAGE = Request("t", "i", {}, Page, {"verdicts[].id": ("Q1", "Q2")})
MARKED = Request("t", "i", {}, Marked)
REFINED = Request("t", "i", {}, Refined, {"best": ("Q1", "Q2"), "others": ("Q1", "Q2")})
GOOD = '{"id":"Q1","note":"n"}'


def code_of(answer: Answer) -> str:
    return answer.code if isinstance(answer, ParseFailure) else ""


PIECES = st.sampled_from(
    ["{", "}", "[", "]", '"', "\\", ",", ":", "id", "note", "Q1", "null", "NaN", "-", "1e999", "9" * 30, "\\ud800"]
    + ["```", "```json\n", "\n", " " * 250, "\u2028", "\ud800", "\x00", GOOD, GOOD[:-1]]
)


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, '{"a":' * 100_000, '"' + '\\"' * 200_000, "[{" + '"' * 300_000, "```" * 200_000, " x" * 400_000],
    ids=["lists", "objects", "escaped quotes", "quotes", "fences", "spaces"],
)
def test_large_nonsense_has_a_code(text: str) -> None:
    assert code_of(read_reply(REQUEST, text)) in {"too-deep", "not-json", "fenced", "unfinished"}


@settings(deadline=None)
@given(
    st.lists(PIECES, max_size=40).map("".join) | st.from_regex(r'\{"id":"Q[12]","note":[0-9"n]{1,4}\}', fullmatch=True)
)
@example("\ufeff" + GOOD)
def test_nothing_a_model_says_is_a_crash(text: str) -> None:
    answer = read_reply(REQUEST, text)
    assert (answer == Note("Q1", "n")) == (text.strip(" \t\r\n") == GOOD)
    assert code_of(answer) in {"", *CODES}
    assert not isinstance(answer, ParseFailure) or answer.raw == text


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "empty"),
        ("  \n ", "empty"),
        ("\n" * 300, "endless-white-space"),
        ('{"id":"Q1",' + "\n" * 5000, "endless-white-space"),
        (" " * 2_000_000, "endless-white-space"),
        ("I would keep it.", "not-json"),
        ("nö", "not-json"),
        ('{"id": Q1}', "not-json"),
        ("{'id': 'Q1'}", "not-json"),
        ('{"id":"Q1","note":"a\nb"}', "not-json"),
        (GOOD[:-3], "unfinished"),
        ('{"id":', "unfinished"),
        (f"```json\n{GOOD}\n```", "fenced"),
        (f"Sure: {GOOD}", "text-around"),
        (GOOD + GOOD, "text-around"),
        (GOOD + " There you are.", "text-around"),
        (f"<think>keep</think>{GOOD}", "text-around"),
        ("[1]", "not-an-object"),
        ("null", "not-an-object"),
        ('"Q1"', "not-an-object"),
        ('{"id":"Q1","id":"Q1","note":"n"}', "duplicate-key"),
        ('{"id":"Q2","i\\u0064":"Q1","note":"n"}', "duplicate-key"),
        ('{"id":"Q1"}', "missing-key"),
        ('{"id":"Q1","note":"n","more":1}', "unknown-key"),
        ('{"more":1,"id":"Q1"}', "missing-key"),
        ('{"note":7}', "missing-key"),
        ('{"more":1,"note":7,"id":"Q1"}', "wrong-type"),
        ('{"id":"Q1","note":7}', "wrong-type"),
        ('{"id":"Q1","note":null}', "wrong-type"),
        ('{"id":"Q1","note":NaN}', "not-a-number"),
        ('{"id":"Q1","note":-Infinity}', "not-a-number"),
        ('{"id":"Q1","note":"\\ud800"}', "lone-surrogate"),
        ('{"id":"Q1","note":"\ud800"}', "lone-surrogate"),
        ('{"id":"Q1","note":"n","' + "\\udc00" + '":1}', "lone-surrogate"),
        ('{"id":"Q1","note":' + "9" * 5000 + "}", "number-out-of-range"),
        ('{"id":"Q1","note":' + "[" * 60 + "]" * 60 + "}", "too-deep"),
        ('{"id":"Q1","note":"' + "x" * 10_000_000 + '"}', "too-long"),
        ('{"id":"Q2","note":"n"}', "unknown-id"),
        ('{"id":" Q1","note":"n"}', "unknown-id"),
        ('{"id":"Ｑ1","note":"n"}', "unknown-id"),
        (' {"note":"anything","id":"Q1"} ', ""),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_each_mistake_has_its_code(text: str, code: str) -> None:
    assert code_of(read_reply(REQUEST, text)) == code


def page(*ids: str) -> str:
    return json.dumps({"verdicts": [{"id": each, "verdict": "keep"} for each in ids]})


def refined(best: str = "null", others: str = "[]", more: str = "") -> str:
    return f'{{"best":{best},"others":{others}{more}}}'


@pytest.mark.parametrize(
    ("request_", "text", "code"),
    [
        (PAGE, page("Q1", "Q2"), ""),
        (PAGE, page("Q2", "Q1"), ""),
        (PAGE, page("Q1"), "missing-id"),
        (PAGE, page(), "missing-id"),
        (PAGE, page("Q1", "Q2", "Q2"), "duplicate-id"),
        (PAGE, page("Q1", "Q3"), "unknown-id"),
        (REFINED, refined('"Q1"', '["Q2"]'), ""),
        (REFINED, refined(), ""),
        (REFINED, refined('"Q3"'), "unknown-id"),
        (REFINED, refined(others='["Q2","Q2"]'), "duplicate-id"),
        (REFINED, refined(others='["Q2","Q4"]'), "unknown-id"),
        (REFINED, refined(others="[null]"), "wrong-type"),
        (REFINED, refined(more=',"rank":2.0'), ""),
        (REFINED, refined(more=',"rank":2.5'), "wrong-type"),
        (REFINED, refined(more=',"rank":true'), "wrong-type"),
        (REFINED, refined(more=',"rank":9223372036854775808'), "number-out-of-range"),
        (REFINED, refined(more=',"share":1e999'), "number-out-of-range"),
        (MARKED, r'{"mark":"3","why":"so\n"}', ""),
        (MARKED, r'{"mark":"3\n"}', "wrong-value"),
        (MARKED, r'{"mark":"6"}', "wrong-value"),
    ],
)
def test_ids_are_among_those_given_each_once_in_a_list_and_numbers_are_numbers(
    request_: Request, text: str, code: str
) -> None:
    assert code_of(read_reply(request_, text)) == code


@pytest.mark.parametrize("fence", ["```json\n{}\n```", "```\n{}\n```", "\n```JSON  \r\n\n{}```\n"])
def test_a_fence_is_taken_off_only_when_that_is_allowed(fence: str) -> None:
    text = fence.replace("{}", GOOD)
    assert code_of(read_reply(REQUEST, text)) == "fenced"
    assert read_reply(REQUEST, without_fence(text)) == Note("Q1", "n")
    others = (f"Sure:\n{text}", f"{text}\nThere.", f"{text}\n{text}", f"```json\n{GOOD}", f"```{GOOD}```")
    for other in (*others, fence.replace("{}", GOOD + GOOD)):
        assert code_of(read_reply(REQUEST, without_fence(other))) in {"fenced", "text-around"}


def test_the_codes_are_a_closed_list_and_a_failure_shows_nothing_of_the_reply() -> None:
    assert list(CODES) == list(get_args(ReplyCode))
    failure = read_reply(REQUEST, '{"id":"Q1","note":"n","EVIL":"EVIL"}')
    assert isinstance(failure, ParseFailure)
    assert (failure.code, failure.detail) == ("unknown-key", "reply")
    assert "EVIL" not in repr(failure)


class Source(msgspec.Struct):
    quotes: list[str]
    year: int | None


class Sourced(msgspec.Struct):
    id: str
    verdict: Literal["keep", "remove"]
    sources: list[Source]
    sure: bool = True


ASKED = Request("task", "Judge.", {"id": "Q1", "label": "kimchi"}, Sourced, {"id": ("Q1",)}, sample=3, max_tokens=99)


def test_a_repair_says_the_code_and_the_shape() -> None:
    repaired = repair_request(ASKED, ParseFailure("missing-key", "verdict", "{}"))
    assert repaired.instructions == (
        "Judge.\n\nAn earlier reply to this could not be used.\n"
        "Error missing-key: A key that was asked for is missing.\n"
        "Reply again, with nothing but one JSON object of this shape:\n"
        '{"id": text, "verdict": "keep" | "remove", '
        '"sources": [{"quotes": [text, ...], "year": whole number | null}, ...], "sure": true | false}\n'
    )
    assert (repaired.data, repaired.reply, repaired.allowed) == (ASKED.data, Sourced, ASKED.allowed)
    assert (repaired.sample, repaired.max_tokens, repaired.task) == (3, 99, "task")


@pytest.mark.parametrize("text", ["IGNORE", '{"IGNORE": 1}', '{"id": "IGNORE"}', '```IGNORE\n{"id":1}```', "{IGNORE"])
def test_nothing_of_the_reply_is_sent_back(text: str) -> None:
    failure = read_reply(ASKED, text)
    assert isinstance(failure, ParseFailure)
    assert "IGNORE" not in repair_request(ASKED, failure).instructions


def test_each_code_makes_a_request_of_its_own_and_the_same_for_ever() -> None:
    def wording(code: ReplyCode, raw: str) -> str:
        return repair_request(ASKED, ParseFailure(code, raw, raw)).instructions

    every = {wording(code, "x") for code in CODES}
    assert len(every) == len(CODES)
    assert ASKED.instructions not in every
    assert every == {wording(code, "y") for code in CODES}


LOCAL: tuple[Target, ...] = ("vllm", "llamacpp", "ollama")


class Kind(enum.Enum):
    DISH = "dish"
    DRINK = "drink"


class Cited(msgspec.Struct):
    """Where it is said; this docstring may change without a reply being bought again."""

    quote: Annotated[str, Meta(description="word for word", min_length=1, max_length=300)]
    year: Annotated[int, Meta(gt=999, lt=2100)] | None


class Described(msgspec.Struct):
    id: Annotated[str, Meta(pattern="^Q[1-9][0-9]*$")]
    kind: Kind
    verdict: Literal["remove", "keep"] | None
    sources: Annotated[list[Cited], Meta(max_length=3)]
    share: Annotated[float, Meta(ge=0, le=1)]


def test_openai_wants_every_key_and_no_others_at_every_level() -> None:
    written = "word for word; at least 1 characters; at most 300 characters"
    years = {"anyOf": [{"type": "integer", "minimum": 1000, "maximum": 2099}, {"type": "null"}]}
    source = {
        "type": "object",
        "properties": {"quote": {"type": "string", "description": written}, "year": years},
        "required": ["quote", "year"],
        "additionalProperties": False,
    }
    assert schema_of(Described, "openai") == {
        "type": "object",
        "properties": {
            "id": {"type": "string", "pattern": "^Q[1-9][0-9]*$"},
            "kind": {"type": "string", "enum": ["dish", "drink"]},
            "verdict": {"anyOf": [{"type": "string", "enum": ["keep", "remove"]}, {"type": "null"}]},
            "sources": {"type": "array", "items": source, "maxItems": 3},
            "share": {"type": "number", "minimum": 0, "maximum": 1},
        },
        "required": ["id", "kind", "verdict", "sources", "share"],
        "additionalProperties": False,
    }


def test_google_takes_json_schema_online_and_its_own_subset_in_batches() -> None:
    online, batch = schema_of(Described, "google-json"), schema_of(Described, "google-schema")
    order = ["id", "kind", "verdict", "sources", "share"]
    assert online["propertyOrdering"] == batch["propertyOrdering"] == online["required"] == order
    described = {"type": "string", "description": "matches the regular expression ^Q[1-9][0-9]*$"}
    assert online["properties"]["id"] == described
    assert batch["type"] == "OBJECT"
    assert "additionalProperties" not in json.dumps(batch)
    verdict = {"type": "STRING", "enum": ["keep", "remove"], "format": "enum", "nullable": True}
    assert batch["properties"]["verdict"] == verdict
    year = {"type": "INTEGER", "minimum": 1000, "maximum": 2099, "nullable": True}
    assert batch["properties"]["sources"]["items"]["properties"]["year"] == year
    types = pytest.importorskip("google.genai.types")
    read = types.Schema.model_validate(batch)
    assert read.property_ordering == order and read.properties["sources"].items.properties["year"].nullable is True


def test_local_grammars_get_what_they_enforce_and_the_model_is_told_the_rest() -> None:
    share = {target: schema_of(Described, target)["properties"]["share"] for target in LOCAL}
    assert share["vllm"] == {"type": "number", "minimum": 0, "maximum": 1}
    assert share["llamacpp"] == share["ollama"] == {"type": "number", "description": "at least 0; at most 1"}
    quote = schema_of(Described, "ollama")["properties"]["sources"]["items"]["properties"]["quote"]
    assert quote == {"type": "string", "description": "word for word", "minLength": 1, "maxLength": 300}


@pytest.mark.endtoend
def test_the_same_bytes_in_every_process() -> None:
    script = (
        "import json; from tests.llm.test_replies import Described; "
        "from culturekit.llm.reply_schema import *\n"
        "print(json.dumps([schema_of(Described, target) for target in TARGETS]))"
    )
    runs = set()
    for seed in ("1", "2", "3"):
        environment = {"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])}
        runs.add(
            subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout
        )
    assert runs == {json.dumps([schema_of(Described, target) for target in TARGETS]).encode() + b"\n"}


def test_chat_servers_take_it_as_a_response_format() -> None:
    jsonschema.Draft202012Validator.check_schema(schema_of(Described, "google-json"))
    for target in ("openai", *LOCAL):
        jsonschema.Draft202012Validator.check_schema(schema_of(Described, target))
        schema_of(Described, target)["properties"].clear()  # does no harm to who asks next
        written = response_format(Described, target)
        assert written["type"] == "json_schema"
        assert written["json_schema"] == {"name": "Described", "strict": True, "schema": schema_of(Described, target)}
    with pytest.raises(UsageError, match="Google takes a schema"):
        response_format(Described, "google-json")
    with pytest.raises(UsageError, match=r"no such schema target; expected openai or .* found 'bard'"):
        schema_of(Plain, "bard")  # type: ignore[arg-type]


class Tree(msgspec.Struct):
    name: str
    below: list["Tree"]


def struct(name: str, **fields: Any) -> Any:
    return msgspec.defstruct(name, list(fields.items()))


Deep: Any = str
for _ in range(10):
    Deep = list[Deep]
Loose = msgspec.defstruct("Loose", [("id", str), ("note", str, "")])
Plain: Any = struct("Plain", a=int)
Row: Any = msgspec.defstruct("Row", [("a", int)], array_like=True)
Pair = NamedTuple("Pair", [("a", int), ("b", str)])  # noqa: UP014
Kept = msgspec.defstruct("Kept", [("reason", str)], tag="kept")
Dropped = msgspec.defstruct("Dropped", [("reason", str), ("code", Literal["a", "b"])], tag="dropped")
Choices = Literal[tuple(f"Q{number}" for number in range(1001))]  # type: ignore[valid-type]
Wordy = Literal[tuple(f"{number:0>100}" for number in range(251))]  # type: ignore[valid-type]

REFUSED: list[tuple[type[Any], tuple[Target, ...], str]] = [
    (Tree, ("google-json", "google-schema"), "Tree.below[]: .* an object within itself.* Write the levels out"),
    (struct("Map", votes=dict[str, int]), ("openai", "google-schema"), "Map.votes: .* are not known.* list of structs"),
    (Loose, ("openai",), r"Loose: .* the field note has a default.* `note: ... \| None`"),
    (struct("Numbered", level=Literal[1, 2]), ("google-schema",), "Numbered.level: .* among numbers.* as texts"),
    (struct("Dated", day=date), ("google-schema",), "Dated.day: .* the format date, of date-time"),
    (struct("Unique", code=UUID), ("google-json", "google-schema"), "Unique.code: .* the format uuid"),
    (struct("Price", price=Decimal), TARGETS, "Price.price: .* the format decimal"),
    (struct("Digits", code=Annotated[str, Meta(pattern=r"^\d+$")]), TARGETS, "Digits.code: .* read differently.*0-9"),
    (struct("Unanchored", code=Annotated[str, Meta(pattern="Q[0-9]+")]), TARGETS, "Unanchored.code: .* Anchor it"),
    (struct("Named", choice=Literal["", "a"]), TARGETS, "Named.choice: .* an empty text"),
    (struct("Deep", a=Deep), TARGETS, "Deep.a.*: .* nested more than 10 deep.* flatter"),
    (struct("Many", **{f"f{number}": str for number in range(5001)}), TARGETS, "Many: .* 5,001 properties"),
    (struct("Choices", id=Choices), TARGETS, "Choices: .* 1,001 values to choose from"),
    (struct("Wordy", id=Wordy), TARGETS, "Wordy.id: .* 25,100 characters of values"),
]


@pytest.mark.parametrize(("kind", "targets", "message"), REFUSED, ids=lambda value: getattr(value, "__name__", ""))
def test_what_a_target_cannot_take_is_refused_by_field_and_the_others_take_it(
    kind: Any, targets: tuple[Target, ...], message: str
) -> None:
    shape_of(kind)
    for target in TARGETS:
        if target in targets:
            with pytest.raises(UsageError, match=message.replace("[]", r"\[\]")) as caught:
                schema_of(kind, target)
            assert target in str(caught.value)
        else:
            schema_of(kind, target)


NOWHERE: list[tuple[Any, str]] = [
    (struct("Places", a=tuple[int, str]), "Places.a: a list whose places differ.* struct"),
    (struct("Pairs", a=list[Pair]), r"Pairs.a\[\]: a list whose places differ"),
    (struct("Rows", a=Row), "Rows.a: a list whose places differ"),
    (Row, "Row: a list whose places differ"),
    (struct("Anything", a=Any), "Anything.a: a value of any kind"),
    (struct("Bytes", a=bytes), "Bytes.a: contentEncoding cannot be asked for"),
    (struct("Empty"), "Empty: an object has known keys"),
    (msgspec.defstruct("Odd", [("a", str, msgspec.field(name="a key"))]), "Odd.a key: a key is made of letters"),
    (struct("Complex", a=complex), "Complex: this type has no JSON Schema"),
    (list[Cited], "object with named fields"),
    (int, "int: a reply is an object"),
]


@pytest.mark.parametrize(("kind", "message"), NOWHERE, ids=lambda value: str(value)[:20])
def test_what_no_model_can_be_asked_for_is_refused_for_all(kind: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shape_of(kind)


def test_a_type_that_contains_itself_is_written_with_definitions() -> None:
    below = {"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    tree = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "below": below},
        "required": ["name", "below"],
        "additionalProperties": False,
    }
    assert schema_of(Tree, "openai") == {**tree, "$defs": {"Tree": tree}}


def test_a_union_of_objects_needs_a_tag() -> None:
    options = schema_of(struct("Verdict", verdict=Kept | Dropped), "openai")["properties"]["verdict"]["anyOf"]
    assert [option["properties"]["type"]["enum"] for option in options] == [["kept"], ["dropped"]]
    with pytest.raises(UsageError, match=r"Untagged: this type has no JSON Schema: .*multiple Struct types.* tagged"):
        shape_of(struct("Untagged", source=Cited | Loose))


STANDARD: tuple[Target, ...] = ("openai", "google-json", "vllm", "llamacpp", "ollama")

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
    for target in STANDARD:
        jsonschema.validate(built, schema_of(kind, target))
        jsonschema.validate(value, schema_of(kind, target))


@SLOW
@given(st.data())
def test_what_is_read_is_what_an_independent_validator_accepts(data: st.DataObject) -> None:
    kind = data.draw(SHAPES)
    value = data.draw(mutations(data.draw(values_of(schema_of(kind, "vllm")))))
    ours = accepted(kind, value)
    assert ours == jsonschema.Draft202012Validator(schema_of(kind, "vllm")).is_valid(value)
    for target in STANDARD:
        if ours:
            jsonschema.validate(value, schema_of(kind, target))
