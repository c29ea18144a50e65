"""The command of a family: its options, their help and their bounds are those that its dataclasses declare."""

from collections.abc import Callable
from dataclasses import MISSING
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.families.family import Declared, Family, declared
from culturekit.families.inputs import Input

__all__ = ["family_command"]

FLAGS: dict[str, tuple[Any, Any]] = {"also": (Also, None), "wait": (Wait, False), "as_json": (AsJson, False)}
DIVIDED: dict[str, tuple[Any, Any]] = {"workers": (Workers, None), "engine": (EngineSpec, "local")}

POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def family_command(family: Family) -> Callable[..., None]:
    """Make the function behind a command: inputs, the folder to write, options, and the flags of all stages."""
    hints = get_type_hints(family.stage)
    kinds = [hints[each.name] for each in signature(family.stage).parameters.values() if each.kind in POSITIONAL]
    fields = [{each.name: each for each in declared(kind) if each.told is not None} for kind in kinds]
    flags = {**{name: flag for name, flag in DIVIDED.items() if getattr(family, name)}, **FLAGS}

    def command(out: Path, **typed: Any) -> None:  # noqa: ANN401 - each option has its own type
        flagged = {name: typed.pop(name) for name in flags}
        parts = [
            kind(**{name: value_of(each, typed[name]) for name, each in known.items() if typed[name] is not None})
            for kind, known in zip(kinds, fields, strict=True)
        ]
        run_one(family.stage(*parts), out, **flagged)

    parameters = [parameter(each) for known in fields for each in known.values()]
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
    names = [f"--{told.alias}"] if told.alias else []
    option = typer.Option(*names, help=told.description, min=each.bounds.get("ge"), max=each.bounds.get("le"))
    return Parameter(each.name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)


def typed_as(each: Declared) -> tuple[Any, Any]:
    """Say what a field is on a command line, and what it is where nothing is typed."""
    required = each.default is MISSING
    if each.several:
        inner = Path if is_handle(each.kind) else str if each.reader else get_args(each.kind)[0]
        return (list[inner], Parameter.empty) if required else (list[inner] | None, None)  # type: ignore[valid-type]
    kind = Path if is_handle(each.kind) else str if each.reader else each.kind
    return (kind | None if each.optional else kind), (Parameter.empty if required else each.default)


def is_handle(kind: Any) -> bool:  # noqa: ANN401 - any type
    """Tell whether a field takes a folder or a file as a handle."""
    return isinstance(kind, type) and issubclass(kind, Input)


def value_of(each: Declared, typed: Any) -> Any:  # noqa: ANN401 - what is typed, and what it stands for
    """Make the value of a field of what was typed."""
    read = each.reader or (lambda text: text)
    value = tuple(map(read, typed)) if isinstance(typed, list) else read(typed)
    return each.kind(value) if is_handle(each.kind) else value
