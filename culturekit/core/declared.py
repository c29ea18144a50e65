"""What fields and parameters declare: types, bounds and help, stated once for commands, recipes and manifests."""

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    ParamSpec,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import Field
from pydantic.fields import FieldInfo

from culturekit.core.choices import SEED
from culturekit.core.errors import argument_error, check_choice
from culturekit.core.inputs import Files, roles_among
from culturekit.core.stage import Outcome, Stage, Work

Seed: TypeAlias = Annotated[int, Field(ge=0, description=SEED)]


@dataclass(frozen=True, slots=True)
class StageCommand:
    """A stage, as the command line finds it: the command is made of what the function of the stage takes.

    Attributes:
        stage: takes what is read, and options where there are some, all dataclasses, and gives the stage.
        example: what follows the command in an example that works.
        workers: whether its work is divided among processes.
        engine: whether these may be those of a cluster.
        also: whether its tables may be written in other forms too.
    """

    stage: Callable[..., Stage]
    example: str
    workers: bool = False
    engine: bool = False
    also: bool = True


@dataclass(frozen=True, slots=True)
class AskingCommand(StageCommand):
    """A stage that asks a model; its function takes how answers are bought last.

    Attributes:
        plan: what help says of planning it.
        pilot: what help says of trying it; empty where it cannot be tried.
        again: what it does once more with `--fresh`.
    """

    plan: str = "Say what it would ask and cost; nothing is sent."
    pilot: str = ""
    again: str = "Ask"


@dataclass(frozen=True, slots=True)
class Typed:
    """How a field is typed as an option, where that is not how it is written in Python or in a recipe.

    Attributes:
        name: of the option.
        read: reads one value of it from a text.
        gather: makes one value of all that a repeatable option is given.
        help: of the option, where it is typed otherwise than a recipe writes it.
        once: whether an option that is several files in a recipe is typed once; several words have commas between.
        others: a field that takes the second and all further values of an option that is repeatable.
        after: the option that it stands after in the help, where that is not the order of the fields.
        only: the fields of a dataclass within another that are options there, where not all are.
        offers: `module:NAME` of the registry whose names the shell offers.
        needs: options, with spaces between, of which one has to be typed, such as `gold` or `within=country`: nothing
            looks at this one without.
    """

    name: str = ""
    read: Callable[[str], Any] | None = None
    gather: Callable[[Sequence[str]], Any] | None = None
    help: str = ""
    once: bool = False
    others: str = ""
    after: str = ""
    only: tuple[str, ...] = ()
    offers: str = ""
    needs: str = ""


PLAIN = Typed()


SEVERAL = (tuple, Sequence)  # Kinds of a field that is typed any number of times

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


def declared(thing: Callable[..., Any]) -> Iterator[Declared]:
    """Give the fields of a dataclass, or the parameters of a function, in their order."""
    hints = get_type_hints(thing, include_extras=True)
    if is_dataclass(thing):
        for each in fields(thing):
            default = each.default if each.default_factory is MISSING else each.default_factory()
            yield declared_as(each.name, hints[each.name], default)
        return
    for one in signature(thing).parameters.values():
        if one.kind is not Parameter.VAR_KEYWORD:
            yield declared_as(one.name, hints[one.name], MISSING if one.default is Parameter.empty else one.default)


def declared_as(name: str, kind: Any, default: Any = MISSING) -> Declared:  # noqa: ANN401 - any type, any value
    """Read what an annotation declares."""
    info, typed = None, PLAIN
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        info = next((note for note in notes if isinstance(note, FieldInfo)), None)
        typed = next((note for note in notes if isinstance(note, Typed)), PLAIN)
    kinds = get_args(kind) if get_origin(kind) in {Union, UnionType} else (kind,)
    known = [one for one in kinds if one is not NoneType]
    return Declared(name, known[0], NoneType in kinds, default, info, typed)


def rules_of(thing: Callable[..., Any] | StageCommand, name: str) -> FieldInfo:
    """Give bounds and help of an option, for a key of a recipe that says the same."""
    stated = declared(thing.stage if isinstance(thing, StageCommand) else thing)
    (found,) = (each.field_info for each in stated if each.name == name)
    if found is None:
        raise TypeError(f"{thing}.{name} declares nothing")
    return found


def inputs_of(stage: Callable[..., Any]) -> list[Declared]:
    """Give what a stage reads: its positional parameters, or the fields of a dataclass that is the first of them."""
    parameters = list(declared(stage))
    if is_group(parameters[0]):
        return list(declared(parameters[0].kind))
    kinds = signature(stage).parameters
    return [each for each in parameters if kinds[each.name].kind in POSITIONAL]


def settings_of(stage: Callable[..., Any]) -> list[Declared]:
    """Give the parameters of a stage that are no inputs; one that is a dataclass stands for its fields."""
    parameters = list(declared(stage))
    read = {parameters[0].name} if is_group(parameters[0]) else {each.name for each in inputs_of(stage)}
    return [each for each in parameters if each.name not in read]


def options_in(*things: Callable[..., Any]) -> Iterator[Declared]:
    """Give what fields or parameters are options; those of a dataclass stand in the place of one that holds it."""
    return options_among(each for thing in things for each in declared(thing))


def options_among(stated: Iterable[Declared]) -> Iterator[Declared]:
    """Give those that are options, and the options of those that hold a dataclass of them."""
    for each in stated:
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


def stage_of_function(
    function: Callable[..., Any], stage_from: Callable[[dict[str, Any]], Stage], *, without: str
) -> Callable[..., Stage]:
    """Make what takes all parameters of a function but one, holds them to their rules, and gives their stage."""
    taken = [one for one in signature(function).parameters.values() if one.name != without]
    shown = Signature(taken, return_annotation=Stage)

    @wraps(function)
    def stage(*inputs: Any, **options: Any) -> Stage:  # noqa: ANN401 - each has its own type
        bound = shown.bind(*inputs, **options)
        bound.apply_defaults()
        given = bound.arguments
        for each in rules:
            if is_group(each):
                check_options(given[each.name])
            elif given[each.name] is not None:
                check_stated([(each, given[each.name])])
        return stage_from(given)

    stage.__signature__ = shown  # type: ignore[attr-defined]
    # no comprehension variable is called like a name that `stage` closes over: Python 3.12 would clear that
    stage.__annotations__ = {one: hint for one, hint in function.__annotations__.items() if one != without}
    rules = list(declared(stage))
    return stage


def check_options(options: object) -> None:
    """Refuse options that break a rule which their fields declare."""
    check_stated(stated(options))


def check_stated(stated: Iterable[tuple[Declared, Any]]) -> None:
    """Refuse values that break a rule which is declared of them."""
    for each, value in stated:
        check_word(each, value)
        for name, bound in each.bounds.items():
            if not BOUNDS[name][0](value, bound):
                rules = " and ".join(f"{BOUNDS[rule][1]} {limit:g}" for rule, limit in each.bounds.items())
                raise argument_error(each.name, f"a number {rules}", value)


def check_choices(options: object) -> None:
    """Refuse a word that is none of those which a field takes, also one of several."""
    for each, value in stated(options):
        check_word(each, value)


def check_word(each: Declared, value: Any) -> None:  # noqa: ANN401 - any value
    """Refuse a word that is none of those which it takes, also one of several."""
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


# Stages and their commands, each declared by one function: what it reads before `*`, its options after it.

P = ParamSpec("P")
Given: TypeAlias = dict[str, Any]
Decides: TypeAlias = Callable[[Given], Mapping[str, object]]
Reads: TypeAlias = Callable[[Given], Mapping[str, Path]]

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})


class Built(StageCommand, Generic[P]):
    """The command of a stage that one function declares."""

    __slots__ = ()

    if TYPE_CHECKING:
        stage: Callable[P, Stage]


class Asks(AskingCommand, Generic[P]):
    """The command of a stage that asks a model, and that one function declares."""

    __slots__ = ()

    if TYPE_CHECKING:
        stage: Callable[P, Stage]


def builds(
    kind: str, folder: str, *, example: str, packages: tuple[str, ...] = ("polars",), decides: Decides | None = None,
    workers: bool = False, **more: Any,  # noqa: ANN401 - as `staged` takes it
) -> Callable[[Callable[Concatenate[Work, P], Outcome]], Built[P]]:  # fmt: skip
    """Declare a stage and its command, which `example` follows where it works; the docstring is its help.

    `workers` tells whether the work is divided among processes, which may be those of a cluster. By default the
    manifest says what is typed of options.
    """

    def declare(function: Callable[Concatenate[Work, P], Outcome]) -> Built[P]:
        says = decides or (lambda given: settings(function, given))
        return Built(staged(kind, folder, packages=packages, decides=says, **more)(function), example, workers, workers)

    return declare


def staged(
    kind: str,
    folder: str,
    *,
    version: int = 1,
    seeds: Mapping[str, str] = NO_OPTIONS,
    packages: tuple[str, ...] = ("numpy", "polars"),
    decides: Decides | None = None,
    reads: Reads = lambda _: {},
) -> Callable[[Callable[Concatenate[Work, P], Outcome]], Callable[P, Stage]]:
    """Declare a stage by the function that does it.

    Args:
        kind: what the stage is.
        folder: its name outside a run.
        version: of what it writes.
        seeds: options that are seeds, by what the manifest calls them.
        packages: whose versions decide what is written.
        decides: what the manifest says of options, of everything given; by default each as it is, without seeds.
        reads: inputs besides those before `*`.
    """

    def declare(function: Callable[Concatenate[Work, P], Outcome]) -> Callable[P, Stage]:
        def make_stage(given: Given, inputs: dict[str, Path]) -> Stage:
            taken = signature(function)
            chosen = {name: one for name, one in given.items() if _is_option(taken, name)}
            says = chosen if decides is None else decides(given)
            options = {name: value for name, value in says.items() if name not in seeds.values()}
            among = given.get("options")
            drawn: dict[str, Any] = {role: getattr(among, name, given.get(name)) for role, name in seeds.items()}

            def run(work: Work) -> Outcome:
                return function(work, **given)  # type: ignore[call-arg]

            return Stage(folder, kind, version, run, {**inputs, **reads(given)}, options, drawn, packages=packages)

        return declaring(function, make_stage)

    return declare


def declaring(function: Callable[..., Any], make: Callable[[Given, dict[str, Path]], Stage]) -> Callable[..., Stage]:
    """Give what makes a stage of all that a function takes after its first parameter, once it keeps its rules."""
    taken = signature(function)
    first, *typed = taken.parameters
    read = [name for name in typed if not _is_option(taken, name)]
    return stage_of_function(
        function, lambda given: make(given, roles_among({name: given[name] for name in read})), without=first
    )


def settings(function: Callable[..., Any], given: Given) -> Given:
    """Give the options among what was given as a manifest keeps them."""
    helped = {each.name for each in declared(function) if each.help or is_group(each)}
    options = {name: value for name, value in given.items() if _is_option(signature(function), name) and name in helped}
    return {name: asdict(one) if is_dataclass(one) else one for name, one in options.items()}  # type: ignore[arg-type]


def _is_option(taken: Signature, name: str) -> bool:
    return taken.parameters[name].kind is Parameter.KEYWORD_ONLY
