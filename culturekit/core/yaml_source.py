"""YAML as its author wrote it: every scalar stays text, every value knows its line.

PyYAML's own rules turn the country `NO` into false and leave `1e3` a string. Here nothing is guessed:
the model that reads the value decides what it is. Only an unquoted `null`, `~` or nothing is null, and
an unquoted `.inf` is `inf`, which every reader of numbers understands.
"""

import dataclasses
import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import orjson
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from culturekit.core.errors import ConfigError, Problem, UsageError

KeyPath: TypeAlias = tuple[str | int, ...]
YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue] | None"

NULLS = {"", "~", "null", "Null", "NULL"}
INFINITIES = {".inf": "inf", ".Inf": "inf", ".INF": "inf", "-.inf": "-inf", "-.Inf": "-inf", "-.INF": "-inf"}
PLAIN_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# What begins something of its own in YAML, and may be meant as it stands; the surest first.
MEANT = tuple(map(re.compile, (r"([?@`%&*])", r"\S(\{)", r":\s+(\{)[^{}]*\}\s*[^\s,}\]#]", r":\s.*?(:)\s")))

MAX_BYTES = 5_000_000
MAX_NODES = 200_000  # Aliases make a few lines stand for billions of nodes; no honest config comes near this


@dataclass(frozen=True, slots=True)
class Position:
    """Where a value was written."""

    where: str
    line: int


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A document: its value, the place of each key path, and the mistakes that reading it found."""

    name: str
    value: YamlValue
    places: Mapping[KeyPath, Position]
    problems: tuple[Problem, ...] = ()

    def position(self, path: KeyPath) -> Position:
        """Find the place of a key path, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return Position(self.name, 0)


def dotted(path: KeyPath) -> str:
    """Write a key path as people do: `models[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_yaml(path: Path) -> YamlSource:
    """Read a YAML file that the user, or this package, wrote."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError("too large for a config", where=str(path), expected=f"at most {MAX_BYTES:,} bytes")
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise UsageError("there is no such YAML file", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), found=f"byte {error.start}") from error
    return parse_yaml(text, name=str(path))


def parse_yaml(text: str, *, name: str) -> YamlSource:
    """Read one YAML document from text; `name` stands in every message about it."""
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        reader = NodeReader(name)
        value = reader.read(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "not YAML"
        line = mark.line + 1 if mark else 0
        raise ConfigError([Problem(f"not YAML: {message}{unquoted(text, line)}", name, line)]) from error
    except yaml.YAMLError as error:
        raise ConfigError([Problem(f"not YAML: {error}", name)]) from error
    except RecursionError as error:
        raise ConfigError([Problem("nested too deeply", name)]) from error
    return YamlSource(name, value, reader.places, tuple(reader.problems))


def unquoted(text: str, line: int) -> str:
    """Say that a value wants quotes, where a line holds what YAML reads otherwise."""
    lines = text.splitlines()
    bare = QUOTED.sub("", lines[line - 1]) if 0 < line <= len(lines) else ""
    found = next(filter(None, (pattern.search(bare) for pattern in MEANT)), None)
    return f'; a value with {found[1]} in it wants quotes: "..."' if found else ""


class NodeReader:
    """Turns composed nodes into plain values and notes where each stood."""

    def __init__(self, name: str) -> None:
        """Start with nothing read."""
        self.name = name
        self.places: dict[KeyPath, Position] = {}
        self.problems: list[Problem] = []
        self.nodes = 0
        self.open: set[int] = set()

    def read(self, node: yaml.Node, path: KeyPath) -> YamlValue:
        """Read a node and everything below it."""
        line = node.start_mark.line + 1
        self.places.setdefault(path, Position(self.name, line))
        self.nodes += 1
        if self.nodes > MAX_NODES or id(node) in self.open:
            raise ConfigError([Problem("aliases make this document endless", self.name, line, dotted(path))])
        if node.tag not in PLAIN_TAGS:
            self.problems.append(Problem(f"tags are not read here, found {node.tag}", self.name, line, dotted(path)))
        if isinstance(node, yaml.ScalarNode):
            text = str(node.value)
            return text if node.style is not None else None if text in NULLS else INFINITIES.get(text, text)
        self.open.add(id(node))
        value: YamlValue
        if isinstance(node, yaml.MappingNode):
            value = self.read_mapping(node, path)
        else:
            value = [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        self.open.discard(id(node))
        return value

    def read_mapping(self, node: yaml.MappingNode, path: KeyPath) -> YamlValue:
        """Read a mapping; a key given twice is a mistake, and the first value stands."""
        values: dict[str, YamlValue] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem("a key is a word, not a list or a mapping", self.name, line, dotted(path)))
                continue
            key = str(key_node.value)
            here = (*path, key)
            if key in values:
                first = self.places[here].line
                self.problems.append(Problem(f"given twice, first in line {first}", self.name, line, dotted(here)))
                continue
            self.places[here] = Position(self.name, line)
            values[key] = self.read(value_node, here)
        return values


# A YAML document held against a model: every problem at once, with its line and the closest right word.

Model = TypeVar("Model", bound=BaseModel)
Values = TypeVar("Values", bound=Sequence[Any])


class StrictModel(BaseModel):
    """A mapping that allows no key it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings")


def as_json(model: BaseModel) -> dict[str, Any]:
    """Give the keys and values of a model as JSON has them; an infinite number is text, as JSON knows none."""
    found: dict[str, Any] = orjson.loads(model.model_dump_json())
    return found


def not_empty(values: Values) -> Values:
    """Accept a list with something in it."""
    if not values:
        raise ValueError("give at least one")
    return values


def each_once(values: Values) -> Values:
    """Accept a list in which nothing stands twice."""
    listed = list(values)
    if twice := [value for value in listed if listed.count(value) > 1]:
        raise ValueError(f"{twice[0]!r} stands twice")
    return values


def load_model(path: Path, model: type[Model]) -> Model:
    """Read a YAML file into a model, or raise one ConfigError with all its problems."""
    return validate(read_yaml(path), model)


def validate(source: YamlSource, model: type[Model]) -> Model:
    """Hold a document against a model, and say everything that is wrong in one go."""
    problems = list(source.problems)
    try:
        value = model.model_validate({} if source.value is None else source.value)
    except ValidationError as error:
        problems += [describe(source, model, detail) for detail in error.errors() if is_meant(source, detail)]
    if problems:
        raise ConfigError(problems)
    return value


def describe(source: YamlSource, model: type[BaseModel], detail: ErrorDetails) -> Problem:
    """Put one validation error into words a YAML author understands."""
    path: KeyPath = tuple(part for part in detail["loc"] if in_document(part))
    line = source.position(path)
    return Problem(message_of(model, path, detail), line.where, line.line, dotted(path))


def in_document(part: str | int) -> bool:
    """Leave out the names of union members, which pydantic adds to a path."""
    return isinstance(part, int) or not part.startswith(("function-", "literal[", "tuple["))


def is_meant(source: YamlSource, detail: ErrorDetails) -> bool:
    """Of a word or a list, leave out what is wrong with the one that the author did not write."""
    value: YamlValue = source.value
    for part in detail["loc"]:
        if isinstance(part, str) and part.startswith(("literal[", "tuple[")):
            return isinstance(value, list) == part.startswith("tuple[")
        if isinstance(value, dict) and in_document(part):
            value = value.get(str(part))
        elif in_document(part):
            there = isinstance(value, list) and isinstance(part, int) and part < len(value)
            value = value[part] if there else None  # type: ignore[index]
    return True


def message_of(model: type[BaseModel], path: KeyPath, detail: ErrorDetails) -> str:
    """Say what was expected and found."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        accepted = {key for kind in types_at(model, path[:-1]) for key in fields_of(kind)}
        return f"unknown key{closest(str(path[-1]), sorted(accepted))}"
    if kind in {"missing", "missing_argument"}:
        return "this key is required and missing"
    found = repr(detail["input"]) if isinstance(detail["input"], str) else type(detail["input"]).__name__
    if kind == "literal_error":
        kinds = list(types_at(model, path))
        words = [each for kind in kinds if get_origin(kind) is Literal for each in get_args(kind)]
        words += ["a list"] if any(get_origin(kind) is tuple for kind in kinds) else []
        return f"{found} is not accepted{closest(str(detail['input']), list(map(str, words)))}"
    if kind == "value_error":
        return str(context.get("error", detail["msg"]))
    return f"{detail['msg'][0].lower()}{detail['msg'][1:]}, found {found}"


def past_day(text: str) -> str:
    """Accept a day that has begun somewhere on Earth, written as YYYY-MM-DD."""
    try:
        is_day = date.fromisoformat(text).isoformat() == text
    except ValueError:
        is_day = False
    if not is_day:
        raise ValueError(f"{text!r} is no day; expected YYYY-MM-DD")
    if text > (datetime.now(UTC) + timedelta(hours=14)).date().isoformat():
        raise ValueError(f"{text} is in the future; expected a day that has come")
    return text


def closest(word: str, accepted: Sequence[str]) -> str:
    """Offer the nearest accepted word, and list them all."""
    same = [each for each in accepted if each.casefold() == word.casefold()]
    near = same or difflib.get_close_matches(word, accepted, n=1, cutoff=0.5)
    offer = f"; did you mean {near[0]!r}?" if near else ";"
    return f"{offer} accepted: {', '.join(accepted)}" if accepted else ""


def types_at(kind: Any, path: KeyPath) -> Iterator[Any]:  # noqa: ANN401 - a type form
    """Walk from a type along a key path; a union is walked on every side."""
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) is Literal:
        if not path:
            yield kind
        return
    members = get_args(kind)
    if members and get_origin(kind) not in {list, tuple, dict, set}:
        for member in members:
            yield from types_at(member, path)
    elif not path:
        yield kind
    elif members:
        yield from types_at(members[-1] if get_origin(kind) is dict else members[0], path[1:])
    else:
        field = fields_of(kind).get(str(path[0]))
        if field is not None:
            yield from types_at(field, path[1:])


def fields_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type form
    """List the fields of a model or a dataclass with their types."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        return get_type_hints(kind)
    return {}
