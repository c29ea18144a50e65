"""`--replace`: the one option of every command that writes a stage folder, added where commands are looked up."""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Annotated, Any

import typer

# Whether the command under way may replace a finished folder that was made from something else.
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
    taken = inspect.signature(command).parameters.keys()
    return with_replace(command) if {"out", "wait"} <= taken and NAME not in taken else command


def commands_of(app: typer.Typer) -> Iterator[typer.models.CommandInfo]:
    """List the commands of an app and of the groups below it."""
    yield from app.registered_commands
    for group in app.registered_groups:
        if group.typer_instance is not None:
            yield from commands_of(group.typer_instance)


def with_replace(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option to what a command takes."""

    @functools.wraps(command)
    def with_option(**arguments: Any) -> None:  # noqa: ANN401 - whatever the command takes
        REPLACE.set(arguments.pop(NAME))
        command(**arguments)

    taken = inspect.signature(command)
    option = inspect.Parameter(NAME, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Replace)
    with_option.__signature__ = taken.replace(parameters=[*taken.parameters.values(), option])  # type: ignore[attr-defined]
    with_option.__annotations__ = {**command.__annotations__, NAME: Replace}
    return with_option
