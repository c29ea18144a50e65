"""An option with one value is given once: of two the last would decide, and nobody would be told."""

from collections import Counter
from typing import Any

from typer.core import TyperCommand

from culturekit.errors import UsageError

__all__ = ["OnceCommand", "check_given_once"]


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
    times = Counter(param for param in order if takes_one(param))
    for param, count in times.items():
        if count > 1:
            raise UsageError(
                f"{max(param.opts, key=len)} is given {count} times, and only the last would count",
                expected="it once",
                hint=f"See `{ctx.command_path} --help`.",
            )


def takes_one(param: Any) -> bool:  # noqa: ANN401 - a parameter of Typer's
    """Tell whether a parameter is an option of one value; a flag only says yes or no."""
    return param.param_type_name == "option" and not (param.multiple or param.is_flag or param.count)
