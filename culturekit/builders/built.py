"""Stages of this room, each declared by one function: what it reads before `*`, its options after it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias

from culturekit.core.declared import AskingCommand, StageCommand, declared, is_group, stage_of_function
from culturekit.core.inputs import roles_among
from culturekit.core.stage import Stage
from culturekit.core.work import Outcome, Work

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
    """Declare a stage and its command; the docstring is its help, and `example` follows it where it works.

    `workers` tells whether the work is divided among processes, which may be those of a cluster. By default the
    manifest says what is typed of options.
    """

    def declare(function: Callable[Concatenate[Work, P], Outcome]) -> Built[P]:
        said = decides or (lambda given: settings(function, given))
        return Built(staged(kind, folder, packages=packages, decides=said, **more)(function), example, workers, workers)

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
        def made(given: Given, inputs: dict[str, Path]) -> Stage:
            taken = signature(function)
            said = {name: one for name, one in given.items() if _is_option(taken, name)}
            said = said if decides is None else dict(decides(given))
            options = {name: value for name, value in said.items() if name not in seeds.values()}
            among = given.get("options")
            drawn: dict[str, Any] = {role: getattr(among, name, given.get(name)) for role, name in seeds.items()}

            def run(work: Work) -> Outcome:
                return function(work, **given)  # type: ignore[call-arg]

            return Stage(folder, kind, version, run, {**inputs, **reads(given)}, options, drawn, packages=packages)

        return declaring(function, made)

    return declare


def declaring(function: Callable[..., Any], made: Callable[[Given, dict[str, Path]], Stage]) -> Callable[..., Stage]:
    """Give what makes a stage of all that a function takes after its first parameter, once it keeps its rules."""
    taken = signature(function)
    first, *typed = taken.parameters
    read = [name for name in typed if not _is_option(taken, name)]
    return stage_of_function(
        function, lambda given: made(given, roles_among({name: given[name] for name in read})), without=first
    )


def settings(function: Callable[..., Any], given: Given) -> Given:
    """Give the options among what was given as a manifest keeps them."""
    said = {each.name for each in declared(function) if each.help or is_group(each)}
    options = {name: value for name, value in given.items() if _is_option(signature(function), name) and name in said}
    return {name: asdict(one) if is_dataclass(one) else one for name, one in options.items()}  # type: ignore[arg-type]


def _is_option(taken: Signature, name: str) -> bool:
    return taken.parameters[name].kind is Parameter.KEYWORD_ONLY
