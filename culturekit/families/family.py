"""What a family of scores declares: its metrics, the stage that scores them, and options that are said once."""

import operator
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import Field
from pydantic.fields import FieldInfo

from culturekit.metrics.arguments import argument_error, check_choice
from culturekit.metrics.catalog import Metric
from culturekit.stages.stage import Stage

__all__ = ["Declared", "Family", "Seed", "checked", "declared", "kept"]

Seed: TypeAlias = Annotated[int, Field(ge=0, description="Seed of every random choice.")]


@dataclass(frozen=True, slots=True)
class Family:
    """A family of scores, as the command line, the documentation, a recipe and a verification find it.

    Attributes:
        stage: takes what is read and the options, both dataclasses, and gives the stage; the command is named after it.
        metrics: that it writes.
        example: what follows the command in an example that works.
        check: the kind of check in `culturekit.verify` that recomputes it; empty where there is none.
        workers: whether its work is divided among processes.
    """

    stage: Callable[..., Stage]
    metrics: tuple[Metric, ...]
    example: str
    check: str = ""
    workers: bool = False


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a dataclass with what it declares: its type without None, whether None is one, and its rules."""

    name: str
    kind: Any
    optional: bool
    default: Any
    told: FieldInfo | None

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that it takes, where they are few."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def bounds(self) -> dict[str, float]:
        """Its bounds, by their names in pydantic: ge, gt, le, lt."""
        rules = [] if self.told is None else self.told.metadata
        return {name: getattr(rule, name) for rule in rules for name in BOUNDS if hasattr(rule, name)}


BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "at least"),
    "gt": (operator.gt, "above"),
    "le": (operator.le, "at most"),
    "lt": (operator.lt, "below"),
}


def declared(cls: type) -> Iterator[Declared]:
    """Give the fields of a dataclass in their order."""
    hints = get_type_hints(cls, include_extras=True)
    for each in fields(cls):
        kind, told = hints[each.name], None
        if get_origin(kind) is Annotated:
            kind, *notes = get_args(kind)
            told = next((note for note in notes if isinstance(note, FieldInfo)), None)
        kinds = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
        known = [one for one in kinds if one is not NoneType]
        yield Declared(each.name, known[0], NoneType in kinds, each.default, told)


def checked(options: object) -> None:
    """Refuse options that break a rule which their fields declare."""
    for each in declared(type(options)):
        value = getattr(options, each.name)
        if value is None and each.optional:
            continue
        if each.choices:
            check_choice(each.name, value, each.choices)
        for name, bound in each.bounds.items():
            if not BOUNDS[name][0](value, bound):
                rules = " and ".join(f"{BOUNDS[rule][1]} {limit:g}" for rule, limit in each.bounds.items())
                raise argument_error(each.name, rules, value)


def kept(options: Any, *, but: tuple[str, ...] = ()) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    """Give options as a manifest keeps them; `but` names those that stand elsewhere, such as seeds."""
    return {name: value for name, value in asdict(options).items() if name not in but}
