"""The command line: parse, call, print. Nothing is computed here."""

import io
import sys

__all__ = ["main"]

INTERNAL_ERROR = 70


def main() -> None:
    """Run the command line and leave with the exit code that says how it went."""
    from culturekit.cli.app import app
    from culturekit.errors import ConfigError, CultureKitError
    from culturekit.llm.redaction import install_redaction, redact

    install_redaction()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # what reads JSON or a table expects it, whatever the locale says
    try:
        app(prog_name="culturekit")
    except ConfigError as error:
        leave(f"{error}\nerror: {error.problem}; nothing was run", error.exit_code)
    except CultureKitError as error:
        leave(f"error: {error}", error.exit_code)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:  # libraries in Rust panic with what is no Exception
        from culturekit.plugins import failure_within
        from culturekit.storage.atomic import outside_failure

        if failure := outside_failure(error) or failure_within(error):
            leave(f"error: {failure}", failure.exit_code)
        import traceback

        print(redact(traceback.format_exc()), file=sys.stderr, end="")
        leave("error: this is a mistake in culturekit, not in what you did; please report it", INTERNAL_ERROR)


def leave(message: str, code: int) -> None:
    """Say why, and go."""
    from culturekit.llm.redaction import redact

    sys.stdout.flush()
    print(redact(message), file=sys.stderr)
    sys.exit(code)
