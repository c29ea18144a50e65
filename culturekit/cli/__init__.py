"""The command line: parse, call, print. Nothing is computed here."""

import io
import re
import sys
from collections.abc import Iterator, Sequence

__all__ = ["main"]

INTERNAL_ERROR = 70


def main() -> None:
    """Run the command line and leave with the exit code that says how it went."""
    from culturekit.cli.app import app
    from culturekit.core.errors import ConfigError, CultureKitError
    from culturekit.llm.redaction import install_redaction, redact

    install_redaction()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # what reads JSON or a table expects it, whatever the locale says
    try:
        app(args=[*spelled_out(sys.argv[1:])], prog_name="culturekit")
    except ConfigError as error:
        leave(f"{error}\nerror: {error.problem}; nothing was run", error.exit_code)
    except CultureKitError as error:
        leave(f"error: {error}", error.exit_code)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # libraries in Rust panic with what is no Exception
        from culturekit.core.atomic import outside_failure
        from culturekit.core.plugins import failure_within

        if failure := outside_failure(error) or failure_within(error):
            leave(f"error: {failure}", failure.exit_code)
        import traceback

        print(redact(traceback.format_exc()), file=sys.stderr, end="")
        leave("error: this is a mistake in culturekit, not in what you did; please report it", INTERNAL_ERROR)


SETTING = re.compile(r"[a-z_]\w*(\.\w+)*=")


def spelled_out(arguments: Sequence[str]) -> Iterator[str]:
    """Give `--set a=1 b=2` as `--set a=1 --set b=2`, which Click takes."""
    setting = False
    for place, word in enumerate(arguments):
        is_value = place > 0 and arguments[place - 1] == "--set"
        if setting and not is_value and SETTING.match(word):
            yield "--set"
        elif word != "--set":
            setting = is_value
        yield word


def leave(message: str, code: int) -> None:
    """Say why, and go."""
    from culturekit.llm.redaction import redact

    sys.stdout.flush()
    print(redact(message), file=sys.stderr)
    sys.exit(code)
