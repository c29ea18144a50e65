"""A YAML document held against a model: every problem at once, with its line and the closest right word."""

import dataclasses
import difflib
import typing
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from culturekit.errors import ConfigError, Problem
from culturekit.storage.yaml_source import KeyPath, YamlSource, YamlValue, dotted, read_yaml

__all__ = ["StrictModel", "closest", "each_once", "load_model", "not_empty", "validate"]

Model = TypeVar("Model", bound=BaseModel)
Values = TypeVar("Values", bound=Sequence[Any])


class StrictModel(BaseModel):
    """A mapping that allows no key it does not know."""

    model_config = ConfigDict(extra="forbid", frozen=True)


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
    place = source.place(path)
    return Problem(message_of(model, path, detail), place.where, place.line, dotted(path))


def in_document(part: str | int) -> bool:
    """Leave out the names of union members, which pydantic adds to a path."""
    return isinstance(part, int) or not part.startswith(("function-", "literal[", "tuple["))


def is_meant(source: YamlSource, detail: ErrorDetails) -> bool:
    """Of a word or a list, leave out what is wrong with the one that the author did not write."""
    value: YamlValue = source.value
    for part in detail["loc"]:
        if isinstance(part, str) and part.startswith(("literal[", "tuple[")):
            return isinstance(value, list) == part.startswith("tuple[")
        if in_document(part):
            value = below(value, part)
    return True


def below(value: YamlValue, part: str | int) -> YamlValue:
    """Go one key down in a document; None where there is nothing."""
    if isinstance(value, dict):
        return value.get(str(part))
    return value[part] if isinstance(value, list) and isinstance(part, int) and part < len(value) else None


def message_of(model: type[BaseModel], path: KeyPath, detail: ErrorDetails) -> str:
    """Say what was expected and found."""
    kind, context = detail["type"], detail.get("ctx", {})
    if kind in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"unknown key{closest(str(path[-1]), sorted(keys_at(model, path[:-1])))}"
    if kind in {"missing", "missing_argument"}:
        return "this key is required and missing"
    found = repr(detail["input"]) if isinstance(detail["input"], str) else type(detail["input"]).__name__
    if kind == "literal_error":
        accepted = [str(value) for value in literals_at(model, path)]
        return f"{found} is not accepted{closest(str(detail['input']), accepted)}"
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


def keys_at(model: type[Any], path: KeyPath) -> set[str]:
    """List the keys that a model accepts at a path."""
    return {key for kind in types_at(model, path) for key in fields_of(kind)}


def literals_at(model: type[Any], path: KeyPath) -> list[object]:
    """List the values that a model accepts at a path, where it accepts only some."""
    kinds = list(types_at(model, path))
    words = [value for kind in kinds if typing.get_origin(kind) is typing.Literal for value in typing.get_args(kind)]
    return [*words, "a list"] if any(typing.get_origin(kind) is tuple for kind in kinds) else words


def types_at(kind: Any, path: KeyPath) -> Iterator[Any]:  # noqa: ANN401 - a type form
    """Walk from a type along a key path; a union is walked on every side."""
    kind = strip(kind)
    if typing.get_origin(kind) is typing.Literal:
        if not path:
            yield kind
        return
    members = typing.get_args(kind)
    if members and typing.get_origin(kind) not in {list, tuple, dict, set}:
        for member in members:
            yield from types_at(member, path)
    elif not path:
        yield kind
    elif members:
        yield from types_at(members[-1] if typing.get_origin(kind) is dict else members[0], path[1:])
    else:
        field = fields_of(kind).get(str(path[0]))
        if field is not None:
            yield from types_at(field, path[1:])


def strip(kind: Any) -> Any:  # noqa: ANN401 - a type form
    """Look through `Annotated`."""
    return typing.get_args(kind)[0] if typing.get_origin(kind) is typing.Annotated else kind


def fields_of(kind: Any) -> dict[str, Any]:  # noqa: ANN401 - a type form
    """List the fields of a model or a dataclass with their types."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    if dataclasses.is_dataclass(kind):
        return typing.get_type_hints(kind)
    return {}
