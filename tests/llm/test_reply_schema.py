import enum
import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import jsonschema
import msgspec
import pytest
from msgspec import Meta

from culturekit.core.errors import UsageError
from culturekit.llm.reply_schema import TARGETS, Target, response_format, schema_of, shape_of

LOCAL: tuple[Target, ...] = ("vllm", "llamacpp", "ollama")


class Kind(enum.Enum):
    DISH = "dish"
    DRINK = "drink"


class Source(msgspec.Struct):
    """Where it is said; this docstring may change without a reply being bought again."""

    quote: Annotated[str, Meta(description="word for word", min_length=1, max_length=300)]
    year: Annotated[int, Meta(gt=999, lt=2100)] | None


class Described(msgspec.Struct):
    id: Annotated[str, Meta(pattern="^Q[1-9][0-9]*$")]
    kind: Kind
    verdict: Literal["remove", "keep"] | None
    sources: Annotated[list[Source], Meta(max_length=3)]
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
        "import json; from tests.llm.test_reply_schema import Described; "
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
    (list[Source], "object with named fields"),
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
        shape_of(struct("Untagged", source=Source | Loose))


def test_there_are_six_targets() -> None:
    with pytest.raises(UsageError, match=r"no such schema target; expected openai or .* found 'bard'"):
        schema_of(Plain, "bard")  # type: ignore[arg-type]
