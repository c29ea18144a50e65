"""Answers on disk as they are given: a line each, in the form of an export of one task; the last of a kind stands."""

import errno
import os
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import orjson

from culturekit.errors import IntegrityError
from culturekit.storage.atomic import sync_folder
from culturekit.storage.manifest import JOURNAL
from culturekit.storage.system_errors import system_errors

__all__ = ["SUFFIX", "AnswerJournal", "Said", "answers_in", "journal_in", "said_in", "served_answers"]

SUFFIX = ".jsonl"
"""How the name of a journal of answers ends."""

Said = tuple[str, str]
"""Who answered which task."""


def journal_in(project: Path) -> Path:
    """Name the file of what is answered to a form in browsers: where the form is replaced, it stays."""
    return project / JOURNAL / f"answers{SUFFIX}"


def served_answers(project: Path) -> list[Path]:
    """Name what was answered to a form in browsers, if anything."""
    journal = journal_in(project)
    return [journal] if journal.is_file() and journal.stat().st_size else []


def said_in(entry: Any) -> Said:  # noqa: ANN401 - whatever JSON holds
    """Say who answered which task in an entry."""
    return str(entry["annotations"][0]["completed_by"]["email"]), str(entry["data"]["task"])


def answers_in(path: Path) -> dict[Said, dict[str, Any]]:
    """Read the last answer of everybody to each task; a line that a kill cut was never said to be saved."""
    found = {}
    for number, line in enumerate(path.read_bytes().split(b"\n")[:-1], start=1):
        try:
            entry = orjson.loads(line)
            found[said_in(entry)] = entry
        except (orjson.JSONDecodeError, LookupError, TypeError) as error:
            raise IntegrityError(
                "not a line of a journal of answers", where=f"{path}:{number}", found=repr(line[:60]),
                expected="the file that `annotate serve` wrote",
            ) from error  # fmt: skip
    return found


class AnswerJournal:
    """The journal of one project; a context manager. What `append` came back from is on disk."""

    def __init__(self, path: Path) -> None:
        """Name the file; nothing is touched yet."""
        self.path = path
        self.answers: dict[Said, dict[str, Any]] = {}

    def __enter__(self) -> Self:
        """Read what is there, and cut what was cut."""
        self.path.parent.mkdir(exist_ok=True)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        sync_folder(self.path.parent)
        self.answers = answers_in(self.path)
        os.ftruncate(self.file, self.path.read_bytes().rfind(b"\n") + 1)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let go of the file."""
        os.close(self.file)

    def append(self, entry: dict[str, Any]) -> None:
        """Write an answer; where the disk refuses, the file stays as it was."""
        line = orjson.dumps(entry) + b"\n"
        size = os.fstat(self.file).st_size
        with system_errors(self.path):
            try:
                if os.write(self.file, line) < len(line):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(self.file)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self.file, size)
                raise
        self.answers[said_in(entry)] = entry
