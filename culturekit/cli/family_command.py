"""The command of a family: its options, their help and their bounds are those that its dataclasses declare."""

from collections.abc import Callable
from dataclasses import MISSING
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.families.family import Declared, Family, declared
from culturekit.families.inputs import Files, Input

__all__ = ["family_command"]

FLAGS: dict[str, tuple[Any, Any]] = {"also": (Also, None), "wait": (Wait, False), "as_json": (AsJson, False)}
DIVIDED: dict[str, tuple[Any, Any]] = {"workers": (Workers, None)}


def family_command(family: Family) -> Callable[..., None]:
    """Make the function behind a command: inputs, the folder to write, options, and the flags of all stages."""
    hints = get_type_hints(family.stage)
    reads, options = (hints[name] for name in list(hints)[:2])
    given = {each.name: each for each in declared(reads) if each.told is not None}
    wished = {each.name: each for each in declared(options) if each.told is not None}
    flags = {**(DIVIDED if family.workers else {}), **FLAGS}

    def command(out: Path, **typed: Any) -> None:  # noqa: ANN401 - each option has its own type
        flagged = {name: typed.pop(name) for name in flags}
        inputs = {name: handle(each, typed[name]) for name, each in given.items() if typed[name] is not None}
        stage = family.stage(reads(**inputs), options(**{name: typed[name] for name in wished}))
        run_one(stage, out, **flagged)

    parameters = [*(parameter(each) for each in (*given.values(), *wished.values()))]
    ordered = [
        *(each for each in parameters if each.default is Parameter.empty),
        Parameter("out", Parameter.KEYWORD_ONLY, annotation=Out),
        *(each for each in parameters if each.default is not Parameter.empty),
        *(Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind, default=default)
          for name, (kind, default) in flags.items()),
    ]  # fmt: skip
    command.__signature__ = Signature(ordered)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in ordered}
    command.__name__, command.__doc__ = family.stage.__name__, family.stage.__doc__
    return command


def parameter(each: Declared) -> Parameter:
    """Make an option of a field."""
    told = each.told
    assert told is not None
    kind, default = typed_as(each)
    option = typer.Option(help=told.description, min=each.bounds.get("ge"), max=each.bounds.get("le"))
    return Parameter(each.name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)


def typed_as(each: Declared) -> tuple[Any, Any]:
    """Say what a field is on a command line, and what it is where nothing is typed."""
    required = each.default is MISSING
    if isinstance(each.kind, type) and issubclass(each.kind, Files):
        return (list[Path], Parameter.empty) if required else (list[Path] | None, None)
    kind = Path if is_handle(each.kind) else each.kind
    return (kind | None if each.optional else kind), (Parameter.empty if required else each.default)


def is_handle(kind: Any) -> bool:  # noqa: ANN401 - any type
    """Tell whether a field takes a folder or a file as a handle."""
    return isinstance(kind, type) and issubclass(kind, Input)


def handle(each: Declared, typed: Any) -> Any:  # noqa: ANN401 - what is typed, and what it stands for
    """Make what a stage reads of what was typed."""
    return each.kind(tuple(typed) if isinstance(typed, list) else typed) if is_handle(each.kind) else typed
