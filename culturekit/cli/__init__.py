"""The command line: parse, call, print. Nothing is computed here."""

import gc
import io
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from types import FrameType
from typing import Any, NoReturn

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with the exit code that says how it went."""
    gc.set_threshold(50_000)  # modules and rows are no cycles: looking for some at every 700 takes a tenth of a start
    from culturekit.core.plugins import guard_exit
    from culturekit.llm.redaction import install_redaction

    install_redaction()
    guard_exit()
    if isinstance(sys.stdout, io.TextIOWrapper):  # what reads JSON or a table expects UTF-8, whatever the locale says
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    with redirect_stdout(DataStream(sys.stdout)):
        sys.exit(run_command(list(spelled_out(sys.argv[1:]))))


def run_command(arguments: list[str]) -> int:
    """Run one command, and explain whatever it raises."""
    from typer import Abort, BadParameter

    from culturekit.cli.app import app
    from culturekit.core.errors import ConfigError, CultureKitError

    click_error: Any = BadParameter.__mro__[2]  # of the Click that Typer brings
    try:
        code: object = app(args=arguments, prog_name="culturekit", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click_error as error:
        if "--json" not in arguments:
            error.show()
            return int(error.exit_code)
        hint = f"See `{error.ctx.command_path} --help`." if getattr(error, "ctx", None) else ""
        leave(CultureKitError(error.format_message(), hint=hint), code=int(error.exit_code))
    except ConfigError as error:
        leave(error, f"{error}\nerror: {error.problem}; nothing was run")
    except CultureKitError as error:
        leave(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # libraries in Rust panic with what is no Exception
        leave_unexplained(error.__cause__ if isinstance(error, Abort) and error.__cause__ else error)


def leave_unexplained(error: BaseException) -> NoReturn:
    """Explain what nobody has: a failure of the outside, of a plugin, or ours."""
    import traceback

    from culturekit.core.atomic import outside_failure
    from culturekit.core.errors import CultureKitError
    from culturekit.core.plugins import failure_within
    from culturekit.llm.redaction import redact

    if failure := outside_failure(error) or failure_within(error) or damaged(error):
        failure.__cause__ = error
        leave(failure)
    if isinstance(error, SystemExit):
        raise error
    print(redact("".join(traceback.format_exception(error))), file=sys.stderr, end="")
    leave(CultureKitError("this is a mistake in culturekit, not in what you did; please report it"))


def damaged(error: BaseException) -> Any:  # noqa: ANN401 - imported late
    """Explain what polars says of a Parquet file whose bytes changed, where no reader has named the file."""
    from culturekit.core.atomic import panics
    from culturekit.core.errors import IntegrityError

    if not panics(error) and "File out of specification" not in str(error):
        return None
    hint = "`culturekit verify` names the file whose bytes changed."
    return IntegrityError("a Parquet file is damaged", found=str(error).partition("\n")[0], hint=hint)


SETTING = re.compile(r"[a-z_]\w*(\.\w+)*=")


def spelled_out(arguments: Sequence[str]) -> Iterator[str]:
    """Give `--set a=1 b=2` as `--set a=1 --set b=2`, which Click takes."""
    setting = False
    for index, word in enumerate(arguments):
        is_value = index > 0 and arguments[index - 1] == "--set"
        if setting and not is_value and SETTING.match(word):
            yield "--set"
        elif word != "--set":
            setting = is_value
        yield word


def leave(error: Any, text: str = "", *, code: int | None = None) -> NoReturn:  # noqa: ANN401 - imported late
    """Say what went wrong, under --json as one line of JSON, and go; with -v, where a plugin raised it."""
    import traceback

    from culturekit.core.errors import PluginFailure
    from culturekit.llm.redaction import redact

    code = error.exit_code if code is None else code
    sys.stdout.flush()
    if isinstance(error, PluginFailure) and {"-v", "--verbose"} & {*sys.argv}:
        raised = traceback.format_exception(error.__cause__) if error.__cause__ else ()
        print(redact("".join((*raised, *getattr(error, "__notes__", ())))), file=sys.stderr)  # notes: of a worker
    if "--json" in sys.argv:
        known = {name: getattr(error, name) for name in ("problem", "where", "expected", "found", "hint")}
        parts = {name: redact(value) for name, value in known.items() if value}
        message = redact(text or str(error))
        print(json.dumps({"level": "error", "said": message, **parts, "exit_code": code}), file=sys.stderr)
    else:
        print(redact(text or f"error: {error}"), file=sys.stderr)
    sys.exit(code)


class DataStream:
    """The stdout of a command; what is printed by anything else than the command line, such as a plugin, is no data."""

    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - any text stream
        """Take the stream; of a process of its own, what is no Python writes to stderr, too."""
        if stream is sys.__stdout__ and "--json" in sys.argv:
            stream = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
            os.dup2(2, 1)
        self.stream = stream

    def write(self, text: str) -> int:
        """Write data to stdout, and the rest to stderr."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and not (name := frame.f_globals.get("__name__", "")).startswith("culturekit."):
            frame = frame.f_back
        is_data = frame is not None and name.startswith("culturekit.cli")
        written: int = (self.stream if is_data else sys.stderr).write(text)
        return written

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as of the stream
        return getattr(self.stream, name)
