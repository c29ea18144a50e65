"""Commands that are imported when somebody asks for them: a table says where each is."""

import ast
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, is_dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo, TyperInfo

from culturekit.cli.options import add_replace_option, commands_of, replacing
from culturekit.core.errors import UsageError

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CommandAt:
    """Where a command is, and how it is used.

    Attributes:
        place: `module:name` of a function, whose dataclasses become options, of a Typer with the commands of a
            group, or of a StageCommand.
        example: what follows the command in an example that works; a StageCommand has its own.
        load: imports what another package brings.
    """

    target: str = ""
    example: str = ""
    load: Callable[[], Any] | None = None


def lazy_group(
    path: str, table: Mapping[str, CommandAt], outside: Callable[[], Mapping[str, CommandAt]] = dict
) -> type[TyperGroup]:
    """Make the class of a group with the commands of a table; `path` is what is typed before them.

    `outside` gives those that other packages bring, when the group is made.
    """

    class LazyGroup(TyperGroup):
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - as below
            """Take two words for a command where a table has a command under both, such as `audit plan`."""
            both = " ".join(args[:2])
            words = [both, *args[2:]] if len(args) > 1 and both in table else args
            self.commands.get(words[0])  # one that is asked for by name is not left out
            return super().resolve_command(ctx, words)

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - as below
            """Give the names, importing none."""
            return list(self.commands)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401 - as below
            """Give a command; one of another package that is wrong is left out of lists."""
            try:
                return super().get_command(ctx, cmd_name)
            except UsageError as error:
                logger.warning("%s is left out: %s", " ".join(filter(None, (path, cmd_name))), error)
                return None

        def __init__(self, **given: Any) -> None:  # noqa: ANN401 - Typer's own arguments
            super().__init__(**{**given, "commands": LazyCommands(path, {**table, **outside()}, given["commands"])})

        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - as above
            check_given_once(self, ctx, args)
            return super().parse_args(ctx, args)

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - as above
            """List the commands, importing only those that cannot be described otherwise."""
            commands: Any = self.commands
            commands.listed = True
            try:
                super().format_commands(ctx, formatter)
            finally:
                commands.listed = False

    return LazyGroup


class LazyCommands(MutableMapping[str, Any]):
    """The commands of a group; looking one up imports it, listing their names imports none.

    While they are `listed`, one that is not imported is given with what it says of itself and nothing else.
    """

    def __init__(self, path: str, table: Mapping[str, CommandAt], attributes: Mapping[str, Any]) -> None:
        """Take the commands that are made already, and the table of the others."""
        self.path, self.table = path, table
        self.commands = dict(attributes)
        self.names = list({**attributes, **table})
        self.listed = False

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401 - Typer keeps its class of commands to itself
        """Import a command."""
        found = self.table.get(name)
        if self.listed and name not in self.commands and found is not None and (known := described_at(found.target)):
            return TyperCommand(name=name, help=known)
        if name not in self.commands:
            self.commands[name] = command_at(self.path, name, self.table[name])
        return self.commands[name]

    def __setitem__(self, name: str, command: Any) -> None:  # noqa: ANN401 - as above
        self.names += [name] if name not in self.names else []
        self.commands[name] = command

    def __delitem__(self, name: str) -> None:
        self.names.remove(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def command_at(path: str, name: str, found: CommandAt) -> Any:  # noqa: ANN401 - as above
    """Import what a place names, and make the command or the group of it."""
    module, _, attribute = found.target.partition(":")
    thing: Any = found.load() if found.load else getattr(import_module(module), attribute)
    if isinstance(thing, typer.Typer):
        add_replace_option(thing)
        for command in commands_of(thing):
            command.cls = OnceCommand
        return typer.main.get_group_from_info(
            TyperInfo(thing, name=name), pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None
        )
    callback, example = as_function(thing, found.example)
    words = ("Example: culturekit", *path.split(), name, example)
    return typer.main.get_command_from_info(
        CommandInfo(name=name, cls=OnceCommand, callback=replacing(callback), epilog=" ".join(filter(None, words))),
        pretty_exceptions_short=True,
        rich_markup_mode=None,
    )


def as_function(thing: Any, example: str) -> tuple[Callable[..., Any], str]:  # noqa: ANN401 - as above
    """Give the function of a command, and its example."""
    if callable(thing) and not any(is_dataclass(getattr(k, "__origin__", k)) for k in thing.__annotations__.values()):
        return thing, example
    from culturekit.cli.stage_command import command_function, spread_out

    return (spread_out(thing), example) if callable(thing) else (command_function(thing), thing.example)


class OnceCommand(TyperCommand):
    """A command that refuses to be given the same option twice, where it takes one value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - Typer keeps its context to itself
        """Look at what was typed before anything is done with it."""
        check_given_once(self, ctx, args)
        return super().parse_args(ctx, args)


def check_given_once(command: Any, ctx: Any, args: list[str]) -> None:  # noqa: ANN401 - a command or a group of Typer's
    """Refuse an option of one value that stands twice on a command line; what it was given may be a secret."""
    if ctx.resilient_parsing or (not args and command.no_args_is_help):
        return
    *_, order = command.make_parser(ctx).parse_args(args=list(args))
    for param, count in Counter(order).items():  # a flag only says yes or no
        one = param.param_type_name == "option" and not (param.multiple or param.is_flag or param.count)
        if one and count > 1:
            raise UsageError(
                f"{max(param.opts, key=len)} is given {count} times, and only the last would count",
                expected="it once",
                hint=f"See `{ctx.command_path} --help`.",
            )


def described_at(target: str) -> str | None:
    """Give the docstring or the help of what `module:name` names; None where only importing it would tell.

    A Typer is made with its help, a StageCommand of a function that has a docstring.
    """
    module, _, name = target.partition(":")
    tree = parsed(module) if module else None
    for node in () if tree is None else tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node)
        targets = node.targets if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) else ()
        if any(isinstance(each, ast.Name) and each.id == name for each in targets):
            call: Any = node.value  # type: ignore[attr-defined]
            for given in call.keywords:
                if given.arg == "help" and isinstance(given.value, ast.Constant):
                    return str(given.value.value)
            first = call.args[0] if call.args else None
            return described_at(f"{module}:{first.id}") if isinstance(first, ast.Name) else None
    return None


@cache
def parsed(module: str) -> ast.Module | None:
    """Parse a module, once for all commands that it has; None where there is no such file."""
    found = find_spec(module)
    if found is None or found.origin is None:
        return None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))
