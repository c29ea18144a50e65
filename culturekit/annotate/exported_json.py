"""What a Label Studio export holds, read strictly: a key that nobody knows is a mistake, not a detail."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from culturekit.annotate.answer_journal import SUFFIX, answers_in
from culturekit.errors import UsageError
from culturekit.storage.digests import digest

__all__ = ["Answered", "Mistake", "TaskRecord", "annotator_of", "read_export", "unknown_keys"]


MOST_BYTES = 2_000_000_000


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing that is wrong: a reason of a fixed list, the field it is about, and what was found."""

    reason: str
    field: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class TaskRecord:
    """A task as a file has it."""

    file: str
    number: int
    value: Any

    @property
    def data(self) -> Mapping[str, Any]:
        """What the task shows; nothing where the record is no task."""
        data = self.value.get("data") if isinstance(self.value, dict) else None
        return data if isinstance(data, dict) else {}


@dataclass(frozen=True, slots=True)
class Answered:
    """What one annotator answered to one task.

    Attributes:
        record: the task as it came.
        number: of the annotation in it, from 1.
        annotator: a name that is no address.
        seconds: how long it took; None where nobody says.
        answers: values by question; a text is a list of one.
        comments: texts by question.
        recruitment: where the annotator was found; empty where nobody says.
    """

    record: TaskRecord
    number: int
    annotator: str
    seconds: float | None
    answers: Mapping[str, tuple[str, ...]]
    comments: Mapping[str, str] = field(default_factory=dict)
    recruitment: str = ""


def read_export(path: Path) -> Iterator[TaskRecord]:
    """Read the tasks of an export, as JSON, or of a journal of answers; each is looked at on its own."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UsageError("too large for an export", where=str(path), expected=f"at most {MOST_BYTES:,} bytes")
        value = list(answers_in(path).values()) if path.suffix == SUFFIX else orjson.loads(path.read_bytes())
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such export", where=str(path)) from error
    except orjson.JSONDecodeError as error:
        raise UsageError(
            "not JSON",
            where=f"{path}:{error.lineno}",
            found=error.msg,
            expected="the format JSON of Label Studio, or of the form",
        ) from error
    if not isinstance(value, list):
        raise UsageError(
            "not an export of Label Studio", where=str(path), expected="a list of tasks", found=type(value).__name__,
            hint="Export as JSON, not as JSON-MIN, CSV or a single task.",
        )  # fmt: skip
    for number, task in enumerate(value, start=1):
        yield TaskRecord(path.name, number, task)


def unknown_keys(value: Mapping[str, Any], known: frozenset[str], where: str) -> Iterator[Mistake]:
    """Find the keys of a mapping that no export has."""
    for name in value:
        if name not in known:
            yield Mistake("unknown field", f"{where}.{name}")


def annotator_of(value: object) -> str | None:
    """Name who answered: the number of an account, or the id a form was signed with; of an address only a hash."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    name = str(value).strip()
    return f"annotator-{digest(name.casefold())[:12]}" if "@" in name else name or None
