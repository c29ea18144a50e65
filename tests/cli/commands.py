"""All commands of the command line, found by walking the live application."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import typer.main

from culturekit.cli.app import app


@cache
def all_commands() -> Mapping[str, Any]:
    """Give every command by its full name, such as `kg ingest`."""
    return dict(walk(typer.main.get_command(app), ()))


def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from walk(below, (*path, name))
    else:
        yield " ".join(path), command
