"""Options that several commands share, and what the shell offers for them."""

import functools
import inspect
import os
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

from culturekit.core.choices import SEED, ExportChoice


def use_prices(ctx: typer.Context, path: Path | None) -> Path | None:
    """Let the prices of a file win until the command ends; processes that it starts see them too."""
    if path is None or ctx.resilient_parsing:
        return path
    before = os.environ.get(PRICES)

    def as_before() -> None:
        if before is None:
            os.environ.pop(PRICES, None)
        else:
            os.environ[PRICES] = before

    ctx.call_on_close(as_before)
    os.environ[PRICES] = str(path.absolute())
    return path


PRICES = "CULTUREKIT_PRICES"
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", callback=use_prices, help="YAML file of prices that win over all others. [$CULTUREKIT_PRICES]"
    ),
]
Out = Annotated[
    Path, typer.Option("--out", help="Folder to write; reused if finished with the same inputs and options.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes to use; the result never depends on it. [all cores]")
]
EngineSpec = Annotated[
    str,
    typer.Option(
        "--engine", help="Who does the work: local, dask, or the address of a dask scheduler, as tcp://HOST:PORT."
    ),
]
Also = Annotated[
    ExportChoice | None, typer.Option("--also", help="Write each table in this form too, beside its Parquet file.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, and progress as JSON lines.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for another run in the same folder instead of refusing.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help=SEED)]
GoOn = Annotated[
    bool,
    typer.Option(
        "--go-on", help="Ask to the end although most replies cannot be used, or although a model is said to be shut."
    ),
]

# `--replace`: the one option of every command that writes a stage folder, added where commands are looked up.

REPLACE: ContextVar[bool] = ContextVar("replace", default=False)

NAME = "replace"
Replace = Annotated[
    bool,
    typer.Option("--replace", help="Replace a finished folder that was made from other inputs or with other options."),
]


def add_replace_option(app: typer.Typer) -> None:
    """Give the option to the commands of a group that write stage folders."""
    for command in commands_of(app):
        if command.callback is not None:
            command.callback = replacing(command.callback)


def replacing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the option to a command that has --out and --wait: such commands write stage folders."""
    taken = inspect.signature(command)
    if not {"out", "wait"} <= taken.parameters.keys() or NAME in taken.parameters:
        return command

    @functools.wraps(command)
    def with_option(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
        REPLACE.set(arguments.pop(NAME))
        command(**arguments)

    option = inspect.Parameter(NAME, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Replace)
    with_option.__signature__ = taken.replace(parameters=[*taken.parameters.values(), option])  # type: ignore[attr-defined]
    with_option.__annotations__ = {**command.__annotations__, NAME: Replace}
    return with_option


def commands_of(app: typer.Typer) -> Iterator[typer.models.CommandInfo]:
    """List the commands of an app and of the groups below it."""
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands_of(group.typer_instance)


YAML = (".yaml", ".yml")


def complete_recipe(incomplete: str) -> list[str]:
    """Offer the recipes that come with culturekit, and the YAML files and folders that begin so."""
    from culturekit.config.load import shipped_recipes

    return [*(name for name in shipped_recipes() if name.startswith(incomplete)), *yaml_files(incomplete)]


def yaml_files(incomplete: str) -> Iterator[str]:
    """List YAML files, and folders in which there may be some, by the path as it was begun."""
    begun = Path(incomplete)
    folder = begun if incomplete.endswith("/") else begun.parent
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        shown = f"{path}/" if path.is_dir() else str(path)
        if shown.startswith(incomplete) and not path.name.startswith(".") and (path.is_dir() or path.suffix in YAML):
            yield shown


def complete_metric(incomplete: str) -> list[str]:
    """Offer the metrics."""
    from culturekit.scores.listing import all_metrics

    return [name for name in all_metrics() if name.startswith(incomplete)]


def spec_completer(registry: str) -> Callable[[str], list[str]]:
    """Make what offers the names of a registry, `module:NAME`, which is imported when the shell asks."""

    def complete(incomplete: str) -> list[str]:
        from importlib import import_module

        module, _, name = registry.partition(":")
        return [spec for spec in getattr(import_module(module), name).names() if spec.startswith(incomplete)]

    return complete
