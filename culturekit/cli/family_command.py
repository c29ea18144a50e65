"""The command of a family: its options, their help and their bounds are those that its dataclasses declare."""

from collections.abc import Callable, Mapping
from dataclasses import MISSING
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

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
    fields = [{each.name: each for each in declared(kind) if each.help} for kind in kinds]
    flags = {**{name: flag for name, flag in DIVIDED.items() if getattr(family, name)}, **FLAGS}

    def command(out: Path, **typed: Any) -> None:  # noqa: ANN401 - each option has its own type
        flagged = {name: typed.pop(name) for name in flags}
        parts = [kind(**given_values(known, typed)) for kind, known in zip(kinds, fields, strict=True)]
        run_one(family.stage(*parts), out, **flagged)

    in_order = sorted((each for known in fields for each in known.values()), key=lambda each: each.typed.last)
    parameters = [parameter(each) for each in in_order]
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
    kind, default = typed_as(each)
    names = [f"--{each.typed.name}"] if each.typed.name else []
    least = each.bounds.get("ge") if each.typed.least is None else each.typed.least
    option = typer.Option(*names, help=each.help, min=least, max=each.bounds.get("le"))
    return Parameter(each.name, Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)


def typed_as(each: Declared) -> tuple[Any, Any]:
    """Say what a field is on a command line, and what it is where nothing is typed."""
    kind = list[one_of(each)] if each.several else one_of(each)  # type: ignore[misc]
    if each.default is MISSING:
        return kind, Parameter.empty
    if each.several or is_handle(each):
        return kind | None, None
    return (kind | None if each.optional else kind), each.default


def one_of(each: Declared) -> Any:  # noqa: ANN401 - any type
    """Say what one value of an option is."""
    if is_handle(each):
        return Path
    if each.typed.read:
        return str
    return get_args(each.kind)[0] if get_origin(each.kind) is tuple else each.kind


def is_handle(each: Declared) -> bool:
    """Tell whether a field takes a folder or a file as a handle."""
    return each.typed.read is None and isinstance(each.kind, type) and issubclass(each.kind, Input)


def given_values(known: Mapping[str, Declared], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Make the values of the fields of a dataclass of what was typed."""
    found: dict[str, Any] = {}
    for name, each in known.items():
        if typed[name] is None:
            continue
        read = each.typed.read or (lambda text: text)
        value = tuple(map(read, typed[name])) if isinstance(typed[name], list) else read(typed[name])
        if each.typed.others:
            value, found[each.typed.others] = value[0], value[1:]
        if each.typed.once:
            value = (value,)
        found[name] = each.kind(value) if is_handle(each) else value
    return found
