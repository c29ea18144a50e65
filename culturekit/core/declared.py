"""What the fields of a dataclass declare: types, bounds and help, said once for commands, recipes and manifests."""

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from culturekit.core.errors import argument_error, check_choice
from culturekit.core.inputs import Files
from culturekit.core.stage_command import PLAIN, StageCommand, Typed

SEVERAL = (tuple, Sequence)
"""Kinds of a field that is typed any number of times."""

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Declared:
    """A field of a dataclass with what it declares: its type without None, whether None is one, and its rules."""

    name: str
    kind: Any
    optional: bool
    default: Any
    field_info: FieldInfo | None
    typed: Typed = PLAIN

    @property
    def help(self) -> str:
        """What `--help` says of it; a field of which nothing is said is no option."""
        return self.typed.help or (self.field_info.description if self.field_info else "") or ""

    @property
    def option(self) -> str:
        """Its name among the arguments of a command."""
        return (self.typed.name.partition("/")[0] or self.name).replace("-", "_")

    @property
    def choices(self) -> tuple[Any, ...]:
        """The values that it takes, where they are few."""
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def several(self) -> bool:
        """Whether an option takes any number of values, or of files."""
        if self.typed.once:
            return False
        repeated = bool(self.typed.others or self.typed.gather) or get_origin(self.kind) in SEVERAL
        return repeated or (isinstance(self.kind, type) and issubclass(self.kind, Files))

    @property
    def bounds(self) -> dict[str, float]:
        """Its bounds, by their names in pydantic: ge, gt, le, lt."""
        rules = [] if self.field_info is None else self.field_info.metadata
        return {name: getattr(rule, name) for rule in rules for name in BOUNDS if hasattr(rule, name)}


BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, "of at least"),
    "gt": (operator.gt, "above"),
    "le": (operator.le, "of at most"),
    "lt": (operator.lt, "below"),
}


def declared(cls: type) -> Iterator[Declared]:
    """Give the fields of a dataclass in their order."""
    hints = get_type_hints(cls, include_extras=True)
    for each in fields(cls):
        default = each.default if each.default_factory is MISSING else each.default_factory()
        yield declared_as(each.name, hints[each.name], default)


def declared_as(name: str, kind: Any, default: Any = MISSING) -> Declared:  # noqa: ANN401 - any type, any value
    """Read what an annotation declares."""
    told, typed = None, PLAIN
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        told = next((note for note in notes if isinstance(note, FieldInfo)), None)
        typed = next((note for note in notes if isinstance(note, Typed)), PLAIN)
    kinds = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    known = [one for one in kinds if one is not NoneType]
    return Declared(name, known[0], NoneType in kinds, default, told, typed)


def rules_of(cls: type, name: str) -> FieldInfo:
    """Give bounds and help of an option, for a key of a recipe that says the same."""
    (found,) = (each.field_info for each in declared(cls) if each.name == name)
    if found is None:
        raise TypeError(f"{cls.__name__}.{name} declares nothing")
    return found


def dataclasses_of(command: StageCommand) -> list[type]:
    """Give the dataclasses that a stage takes: of what it reads, and of options where there are some."""
    hints = get_type_hints(command.stage)
    return [hints[each.name] for each in signature(command.stage).parameters.values() if each.kind in POSITIONAL]


def options_in(*kinds: Any) -> Iterator[Declared]:  # noqa: ANN401 - any dataclass
    """Give the fields that are options; those of a dataclass within another stand in its place."""
    for each in (each for kind in kinds for each in declared(kind)):
        if is_group(each):
            yield from options_of(each)
        elif each.help:
            yield each


def options_of(group: Declared) -> Iterator[Declared]:
    """Give the options of a dataclass within another."""
    only = group.typed.only
    return (each for each in options_in(group.kind) if not only or each.name in only)


def is_group(each: Declared) -> bool:
    """Tell whether a field holds options of its own."""
    return isinstance(each.kind, type) and is_dataclass(each.kind) and any(True for _ in options_in(each.kind))


def check_options(options: object) -> None:
    """Refuse options that break a rule which their fields declare."""
    check_choices(options)
    for each, value in stated(options):
        for name, bound in each.bounds.items():
            if not BOUNDS[name][0](value, bound):
                rules = " and ".join(f"{BOUNDS[rule][1]} {limit:g}" for rule, limit in each.bounds.items())
                raise argument_error(each.name, f"a number {rules}", value)


def check_choices(options: object) -> None:
    """Refuse a word that is none of those which a field takes, also one of several."""
    for each, value in stated(options):
        several = get_origin(each.kind) in SEVERAL
        kind = get_args(each.kind)[0] if several else each.kind
        if get_origin(kind) is Literal:
            for word in value if several else (value,):
                check_choice(each.name, word, get_args(kind))


def stated(options: object) -> Iterator[tuple[Declared, Any]]:
    """Give the fields of options that have a value, with it."""
    for each in declared(type(options)):
        value = getattr(options, each.name)
        if value is not None or not each.optional:
            yield each, value


def kept(options: Any, *, but: tuple[str, ...] = ()) -> dict[str, object]:  # noqa: ANN401 - any dataclass
    """Give options as a manifest keeps them; `but` names those that stand elsewhere, such as seeds."""
    return {name: value for name, value in asdict(options).items() if name not in but}
