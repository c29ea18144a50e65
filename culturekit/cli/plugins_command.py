"""`culturekit plugins`: what other packages bring, and what of it does not work."""

import importlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing.results import aligned, show
from culturekit.core.errors import UsageError
from culturekit.core.plugins import POINTS, Plugin, Point, installed


@dataclass(frozen=True, slots=True)
class Listed:
    """Something that a package brings, and why it does not work; empty where it does."""

    plugin: Plugin
    problem: str


def plugins_command(
    kinds: Annotated[
        bool, typer.Option("--kinds", help="List instead what another package, or a recipe, can bring.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what other packages bring, and what fails.

    Kind, name, package and version; ends with 1 if something fails.
    """
    if kinds:
        show(
            POINTS, (f"{f'{one.kind}.NAME':<18}{one.brings}\n{'':<18}{one.contract}" for one in POINTS), as_json=as_json
        )
        return
    listed = looked_at(installed())
    rows = [
        ("FAILS" if one.problem else "ok   ", of.kind, of.name, of.file or of.package, of.version, of.place)
        for one, of in ((one, one.plugin) for one in listed)
    ]
    lines = []
    for line, one in zip(aligned(rows), listed, strict=True):
        lines += [line, *([f"{'':<7}{one.problem}"] if one.problem else [])]
    nothing = ["no other package brings anything; culturekit plugins --kinds lists what one can bring"]
    data = [{**asdict(one.plugin), "problem": one.problem} for one in listed]
    show(data, lines or nothing, as_json=as_json)
    if any(one.problem for one in listed):
        raise typer.Exit(1)


def looked_at(plugins: Sequence[Plugin]) -> list[Listed]:
    """Import everything, and say of each what is wrong."""
    points = {point.kind: point for point in POINTS}
    names = [(one.kind, one.name) for one in plugins]
    return [Listed(one, problem_of(one, points, alone=names.count((one.kind, one.name)) == 1)) for one in plugins]


def problem_of(plugin: Plugin, points: dict[str, Point], *, alone: bool) -> str:
    """Say why nobody can use something; empty where it works, as far as an import tells."""
    point = points.get(plugin.kind)
    if point is None or not plugin.name:
        return f"there is no kind {plugin.kind!r}; expected KIND.NAME, of the kinds {', '.join(points)}"
    if not alone:
        return f"another package brings the {plugin.kind} {plugin.name} too; remove one of them"
    module, _, name = point.registry.partition(":")
    registry = getattr(importlib.import_module(module), name)
    if plugin.name in registry.entries:
        return f"the {registry.kind} {plugin.name} of culturekit itself is used; choose another name"
    try:
        if plugin.kind == "metric":
            from culturekit.scores.listing import family_named

            family_named(plugin.name)
        else:
            registry.load(plugin.name)
    except UsageError as error:
        return str(error)
    return ""
