"""The command line in this process: the same code as a command of its own, without new interpreters for every command.

`in_workers` leaves the items of a stage to worker processes, as the command does; otherwise they are done here.
"""

import contextlib
import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from culturekit.cli import main
from culturekit.core.engines import LocalEngine
from culturekit.core.plugins import use_plugins
from culturekit.kg.countries import use_countries


def done_here(_: LocalEngine, function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    return map(function, items)


def culturekit(
    *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None, given: bytes = b"",
    in_workers: bool = False, ends: int | None = None,
) -> "subprocess.CompletedProcess[str]":  # fmt: skip
    """Run a command, and give what it said and how it ended; `ends` is how it has to end."""
    words = [str(argument) for argument in arguments]
    said, warned = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code: object = 0
    with (
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.object(sys, "argv", ["culturekit", *words]),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        mock.patch.dict(os.environ, env or {}),
        contextlib.redirect_stdout(said),
        contextlib.redirect_stderr(warned),
        mock.patch.object(logging.getLogger(), "handlers", []),
        mock.patch.object(logging.getLogger(), "level", logging.WARNING),
        contextlib.ExitStack() as stack,
    ):
        if not in_workers:
            stack.enter_context(mock.patch.object(LocalEngine, "map", done_here))
        try:
            main()
        except SystemExit as ended:
            code = ended.code
        finally:
            use_countries(None)
            use_plugins({})
    told, complained = (stream.buffer.getvalue().decode() for stream in (said, warned))
    done = subprocess.CompletedProcess(words, int(str(code or 0)), told, complained)
    assert ends in (None, done.returncode), done
    return done
