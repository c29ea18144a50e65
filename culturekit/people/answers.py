"""Exports to answers that can be used: what is wrong goes to quarantine, with the reason; nothing else is left out."""

import errno
import logging
import math
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from unicodedata import category

import orjson
import polars as pl

from culturekit.core.atomic import sync_folder, system_errors
from culturekit.core.choices import (
    ANNOTATION_KEYS,
    LONGEST_RAW,
    LONGEST_TEXT,
    PERSON_KEYS,
    RESULT_KEYS,
    STUDY_KEYS,
    TASK_KEYS,
)
from culturekit.core.digests import JOURNAL, digest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import QUARANTINE
from culturekit.core.table import folded_name
from culturekit.people.scheme import Criterion, Scheme, fixed_options, of_pictures
from culturekit.people.tasks import content_of, subject_of

logger = logging.getLogger(__name__)

# Answers on disk as they are given: a line each, in the form of an export of one task; the last of a kind stands.

SUFFIX = ".jsonl"
AnswerKey = tuple[str, str]  # who answered which task


def journal_in(project: Path) -> Path:
    """Name the file of what is answered to a form in browsers: where the form is replaced, it stays."""
    return project / JOURNAL / f"answers{SUFFIX}"


def served_answers(project: Path) -> list[Path]:
    """Name what was answered to a form in browsers, if anything."""
    journal = journal_in(project)
    return [journal] if journal.is_file() and journal.stat().st_size else []


def answer_key(entry: Any) -> AnswerKey:  # noqa: ANN401 - whatever JSON holds
    """Say who answered which task in an entry."""
    return str(entry["annotations"][0]["completed_by"]["email"]), str(entry["data"]["task"])


def answers_in(path: Path) -> dict[AnswerKey, dict[str, Any]]:
    """Read the last answer of everybody to each task; a line that a kill cut was never said to be saved."""
    found = {}
    lines = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            entry = orjson.loads(line)
            found[answer_key(entry)] = entry
        except (orjson.JSONDecodeError, LookupError, TypeError) as error:
            if number == len(lines):
                break
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
        self.answers: dict[AnswerKey, dict[str, Any]] = {}
        self.file = -1
        self.left: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        """Read what is there, and cut what was cut."""
        self._open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let go of the file."""
        os.close(self.file)

    def append(self, entry: dict[str, Any]) -> None:
        """Write an answer; where the disk refuses, the file stays as it was.

        A file that was removed, replaced or cut since the last answer gets back what it lacks first.
        """
        with system_errors(self.path):
            if self._state() != self.left:
                self._take_up_again()
            self._write(entry)
        self.answers[answer_key(entry)] = entry

    def _open(self) -> None:
        self.path.parent.mkdir(exist_ok=True)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        sync_folder(self.path.parent)
        self.answers = answers_in(self.path)
        content = self.path.read_bytes()
        last = content[content.rfind(b"\n") + 1 :]
        try:
            answer_key(orjson.loads(last))
        except (orjson.JSONDecodeError, LookupError, TypeError):
            os.ftruncate(self.file, len(content) - len(last))
        else:
            os.write(self.file, b"\n")  # whole, though its newline is gone
        self.left = self._state()

    def _state(self) -> tuple[int, ...]:
        """Say which file stands under the name, and how long it is."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        return found.st_dev, found.st_ino, found.st_size

    def _take_up_again(self) -> None:
        """Open what stands under the name now, and write what is known and lacks there."""
        known, before = self.answers, self.file
        try:
            self._open()
        except BaseException:
            if self.file != before:
                os.close(self.file)
            self.file, self.answers = before, known
            raise
        os.close(before)
        logger.warning("%s was replaced, removed or cut by another program; its answers are written again", self.path)
        for answer, entry in known.items():
            if self.answers.get(answer) != entry:
                self._write(entry)
        self.answers |= known

    def _write(self, entry: dict[str, Any]) -> None:
        line = orjson.dumps(entry) + b"\n"
        size = os.fstat(self.file).st_size
        try:
            if os.write(self.file, line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fsync(self.file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self.file, size)
            raise
        self.left = self._state()


# What a Label Studio export holds, read strictly: a key that nobody knows is a mistake, not a detail.

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
    """What one annotator answered to one task: values and comments by question, a text as a list of one.

    `number` is that of the annotation in the record, from 1; where nobody says, `seconds` is None and `recruitment`
    empty.
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
            "not JSON", where=f"{path}:{error.lineno}", found=error.msg,
            expected="the format JSON of Label Studio, or of the form",
        ) from error  # fmt: skip
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


# Answers held against their scheme: allowed, asked for, and complete.

Offered = Mapping[str, Mapping[str, Mapping[str, str]]]  # meanings by code, by list: options of an item's own
Answers = Mapping[str, tuple[str, ...]]


def answer_mistakes(
    scheme: Scheme, answers: Answers, comments: Mapping[str, str], offered: Offered
) -> Iterator[Mistake]:
    """Find every answer that is not allowed, was not asked for, or is missing."""
    for criterion in scheme.criteria:
        name = criterion.name
        if not all(set(answers.get(earlier, ())) & set(values) for earlier, values in criterion.when.items()):
            if name in answers:
                yield Mistake("answer to a question not asked", name, ", ".join(answers[name])[:200])
            if name in comments:
                yield Mistake("answer to a question not asked", criterion.comment_name, comments[name][:200])
            continue
        if name in answers:
            yield from value_mistakes(scheme, criterion, answers[name], offered)
        elif criterion.required:
            yield Mistake("required answer missing", name)
        yield from comment_mistakes(criterion, answers, comments)


def comment_mistakes(criterion: Criterion, answers: Answers, comments: Mapping[str, str]) -> Iterator[Mistake]:
    """Find a comment that is missing, or that no answer asked for."""
    if criterion.comment is None:
        return
    wanted = bool(set(answers.get(criterion.name, ())) & set(criterion.comment.when))
    given = criterion.name in comments
    if wanted and criterion.comment.required and not given:
        yield Mistake("required answer missing", criterion.comment_name)
    elif given and not wanted:
        yield Mistake("answer to a question not asked", criterion.comment_name, comments[criterion.name][:200])


def value_mistakes(
    scheme: Scheme, criterion: Criterion, chosen: tuple[str, ...], offered: Offered
) -> Iterator[Mistake]:
    """Find values that a question does not allow."""
    if criterion.type == "text":
        return
    allowed = codes_of(criterion, offered, scheme)
    reason = "out of range" if criterion.type == "scale" else "unknown choice"
    for value in chosen:
        if value not in allowed:
            yield Mistake(reason, criterion.name, value[:200])
    if len(chosen) > 1 and set(chosen) & set(criterion.alone):
        yield Mistake("answers that exclude each other", criterion.name, ", ".join(chosen)[:200])


def codes_of(criterion: Criterion, offered: Offered, scheme: Scheme) -> list[str]:
    """List what may be chosen of one item: options of its own, or those that are the same for all items."""
    if criterion.options_from is not None:
        return list(offered.get(criterion.options_from, {}))
    return [value for value, _ in fixed_options(criterion, scheme)]


SKIPPED = "skipped by the annotator"
KeyRow = Mapping[str, Any]


@dataclass(slots=True)
class ImportedAnswers:
    """What came in: answers to tasks of the project, each with the task's row of the key.

    Attributes:
        skipped: tasks that an annotator passed over, in Label Studio.
        names: each annotator as first written, by what all spellings of the name have in common.
        homes: the region of each annotator, in the first answer that was taken over.
    """

    good: list[tuple[Answered, KeyRow]] = field(default_factory=list)
    quarantine: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    names: dict[str, str] = field(default_factory=dict)
    homes: dict[str, str] = field(default_factory=dict)

    @property
    def quarantine_table(self) -> pl.DataFrame:
        """Put what was set aside into its table; the same mistake twice in one annotation stands once."""
        table = pl.DataFrame(self.quarantine, schema=QUARANTINE.schema)
        return table.unique(QUARANTINE.key, keep="first", maintain_order=True).sort(QUARANTINE.key)

    @property
    def set_aside(self) -> int:
        """Count the annotations in quarantine; a task that was set aside without any counts as one."""
        return len({(row["file"], row["task_number"], row["annotation_number"]) for row in self.quarantine})


def read_exports(records: Iterable[TaskRecord], key: pl.DataFrame, project: str, scheme: Scheme) -> ImportedAnswers:
    """Read the tasks of exports, hold each against the key of the project, and each answer against the scheme."""
    rows = {row["task"]: row for row in key.iter_rows(named=True)}
    taken = ImportedAnswers()
    seen: set[tuple[str, str]] = set()
    for record in records:
        mistakes = list(task_mistakes(record, rows, project))
        annotations = record.value.get("annotations") if isinstance(record.value, dict) else None
        if not isinstance(annotations, list) or (not annotations and mistakes):
            if not isinstance(annotations, list):
                mistakes.append(Mistake("malformed", "annotations", "no list of annotations"))
            set_aside(taken, Answered(record, 0, "", None, {}), mistakes, rows)
            continue
        for number, annotation in enumerate(annotations, start=1):
            import_annotation(taken, record, number, annotation, mistakes, rows, scheme, seen)
    return taken


def task_mistakes(record: TaskRecord, rows: Mapping[str, KeyRow], project: str) -> Iterator[Mistake]:
    """Find what is wrong with a task, whoever answered it."""
    if not isinstance(record.value, dict):
        yield Mistake("malformed", "task", type(record.value).__name__)
        return
    yield from unknown_keys(record.value, TASK_KEYS, "task")
    data = record.data
    if data.get("project") != project:
        yield Mistake("wrong project", "data.project", repr(data.get("project"))[:200])
        return
    name = data.get("task")
    if not isinstance(name, str) or name not in rows:
        yield Mistake("unknown item", "data.task", repr(name)[:200])
    elif content_of(data) != rows[name]["content"]:
        yield Mistake("task changed since it was handed out", "data", name)


def import_annotation(
    taken: ImportedAnswers, record: TaskRecord, number: int, annotation: object, of_task: list[Mistake],
    rows: Mapping[str, KeyRow], scheme: Scheme, seen: set[tuple[str, str]],
) -> None:  # fmt: skip
    """Take one annotation over, or set it aside with everything that is wrong with it."""
    answered, mistakes = read_annotation(record, number, annotation, scheme)
    if answered.annotator:
        name = taken.names.setdefault(folded_name(answered.annotator), answered.annotator)
        answered = replace(answered, annotator=name)
    mistakes = [*of_task, *mistakes]
    cancelled = annotation.get("was_cancelled") if isinstance(annotation, dict) else None
    if cancelled is True and not mistakes:
        taken.skipped[SKIPPED] += 1
        return
    if cancelled is not None and not isinstance(cancelled, bool):
        mistakes.append(Mistake("malformed", "was_cancelled", repr(cancelled)[:200]))
    row = None if of_task else rows[record.data["task"]]
    if row is not None:
        about = {"result", *(name for one in scheme.criteria for name in (one.name, one.comment_name))}
        # an answer that could not be read only seems to be missing
        if not any(mistake.field.partition(".")[0] in about for mistake in mistakes):
            offered = orjson.loads(row["options"])
            mistakes += answer_mistakes(scheme, answered.answers, answered.comments, offered)
        if not mistakes and (judged(row), answered.annotator) in seen:
            mistakes.append(Mistake("duplicate", "annotator", answered.annotator))
        home = taken.homes.get(answered.annotator, row["annotator_region"])
        if not mistakes and home != row["annotator_region"]:
            mistakes.append(Mistake("one person of two regions", "annotator", f"{row['annotator_region']}, not {home}"))
    if mistakes or row is None:
        set_aside(taken, answered, mistakes, rows)
        return
    seen.add((judged(row), answered.annotator))
    taken.homes[answered.annotator] = row["annotator_region"]
    taken.good.append((answered, row))


def judged(row: KeyRow) -> str:
    """Name what one annotator may judge once: an item, whatever task asks for it; a check or a repeat."""
    return f"item {row['item_id']}" if row["kind"] == "item" else str(row["task"])


def set_aside(taken: ImportedAnswers, answered: Answered, mistakes: list[Mistake], rows: Mapping[str, KeyRow]) -> None:
    """Put one annotation into quarantine, a row per mistake."""
    record = answered.record
    name = record.data.get("task")
    row = rows.get(name) if isinstance(name, str) else None
    annotations = record.value.get("annotations") if isinstance(record.value, dict) else None
    whole = annotations[answered.number - 1] if isinstance(annotations, list) and answered.number else record.value
    raw = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS).decode()[:LONGEST_RAW]
    for mistake in mistakes:
        taken.quarantine.append(
            {
                "file": record.file, "task_number": record.number, "annotation_number": answered.number,
                "task": name if isinstance(name, str) else None, "item_id": None if row is None else row["item_id"],
                "annotator": answered.annotator or None, "reason": mistake.reason, "field": mistake.field[:200],
                "detail": mistake.detail, "raw": raw,
            }
        )  # fmt: skip


def read_annotation(record: TaskRecord, number: int, value: object, scheme: Scheme) -> tuple[Answered, list[Mistake]]:
    """Read one annotation; what is wrong with it comes beside what could be read."""
    if not isinstance(value, dict):
        return Answered(record, number, "", None, {}), [Mistake("malformed", "annotation", type(value).__name__)]
    mistakes = list(unknown_keys(value, ANNOTATION_KEYS, "annotation"))
    person = value.get("completed_by")
    if isinstance(person, dict):
        mistakes += unknown_keys(person, PERSON_KEYS, "completed_by")
    annotator = annotator_of(person)
    if annotator is None or any(category(letter) == "Cc" for letter in annotator):
        mistakes.append(Mistake("nobody signed it", "completed_by", repr(person)[:200]))
    seconds = value.get("lead_time")
    timed = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if seconds is not None and not (timed and math.isfinite(seconds) and seconds >= 0):
        mistakes.append(Mistake("malformed", "lead_time", repr(seconds)[:200]))
        seconds = None
    answers: dict[str, tuple[str, ...]] = {}
    comments: dict[str, str] = {}
    result = value.get("result")
    if not isinstance(result, list):
        mistakes.append(Mistake("malformed", "result", type(result).__name__))
        result = []
    for entry in result:
        mistakes += read_entry(entry, scheme, answers, comments)
    recruitment, strange = recruited(record)
    answered = Answered(record, number, annotator or "", seconds, answers, comments, recruitment)
    return answered, [*mistakes, *strange]


def recruited(record: TaskRecord) -> tuple[str, list[Mistake]]:
    """Say where an annotator of the form was found: on Prolific, where the links carried its three ids."""
    meta = record.value.get("meta") if isinstance(record.value, dict) else None
    if not isinstance(meta, dict):
        return "", []
    ids = [meta.get(name) for name in STUDY_KEYS]
    if all(isinstance(text, str) and text for text in ids):
        return "prolific", []
    wrong = [name for name, text in zip(STUDY_KEYS, ids, strict=True) if text is not None and not isinstance(text, str)]
    return "", [Mistake("malformed", f"meta.{name}") for name in wrong]


def read_entry(
    entry: object, scheme: Scheme, answers: dict[str, tuple[str, ...]], comments: dict[str, str]
) -> Iterator[Mistake]:
    """Read one answer into `answers` or `comments`."""
    if not isinstance(entry, dict):
        yield Mistake("malformed", "result", type(entry).__name__)
        return
    yield from unknown_keys(entry, RESULT_KEYS, "result")
    name = entry.get("from_name")
    questions = {criterion.name: criterion for criterion in scheme.criteria}
    commented = {criterion.comment_name: criterion.name for criterion in scheme.criteria if criterion.comment}
    if not isinstance(name, str) or (name not in questions and name not in commented):
        yield Mistake("unknown question", "from_name", repr(name)[:200])
        return
    if entry.get("to_name") != subject_of(scheme):
        yield Mistake("malformed", f"{name}.to_name", repr(entry.get("to_name"))[:200])
    value = entry.get("value")
    if not isinstance(value, dict):
        yield Mistake("malformed", f"{name}.value", type(value).__name__)
        return
    if name in answers or commented.get(name) in comments:
        yield Mistake("answered twice", name)
        return
    if name in commented or questions[name].type == "text":
        yield from read_text(name, entry, value, answers, comments, commented)
    else:
        yield from read_choices(questions[name], entry, value, answers)


def read_text(
    name: str, entry: Mapping[str, Any], value: Mapping[str, Any], answers: dict[str, tuple[str, ...]],
    comments: dict[str, str], commented: Mapping[str, str],
) -> Iterator[Mistake]:  # fmt: skip
    """Read free text."""
    yield from unknown_keys(value, frozenset({"text"}), f"{name}.value")
    text = value.get("text")
    lines = [text] if isinstance(text, str) else text
    if entry.get("type") != "textarea" or not isinstance(lines, list) or not all(isinstance(x, str) for x in lines):
        yield Mistake("malformed", name, repr(value)[:200])
        return
    whole = "\n".join(lines).strip()
    if len(whole) > LONGEST_TEXT:
        yield Mistake("out of range", name, f"{len(whole):,} characters")
    elif whole and name in commented:
        comments[commented[name]] = whole
    elif whole:
        answers[name] = (whole,)


def read_choices(
    criterion: Criterion, entry: Mapping[str, Any], value: Mapping[str, Any], answers: dict[str, tuple[str, ...]]
) -> Iterator[Mistake]:
    """Read chosen values; a number given by stars is the value of that name."""
    kind = entry.get("type")
    if criterion.type == "scale" and kind == "rating":
        yield from unknown_keys(value, frozenset({"rating"}), f"{criterion.name}.value")
        stars = value.get("rating")
        chosen: object = [str(stars)] if isinstance(stars, int) and not isinstance(stars, bool) else stars
    else:
        yield from unknown_keys(value, frozenset({"choices"}), f"{criterion.name}.value")
        chosen = value.get("choices") if kind == "choices" else None
    if isinstance(chosen, float):
        yield Mistake("out of range", criterion.name, repr(chosen))
    elif not isinstance(chosen, list) or not all(isinstance(text, str) for text in chosen):
        yield Mistake("malformed", criterion.name, repr(value)[:200])
    elif len(set(chosen)) < len(chosen):
        yield Mistake("answered twice", criterion.name, ", ".join(chosen)[:200])
    elif len(chosen) > 1 and not criterion.several:
        yield Mistake("several answers where one is asked", criterion.name, ", ".join(chosen)[:200])
    elif chosen:
        answers[criterion.name] = tuple(sorted(chosen))


# Answers as rows of tables, their codes turned back into what they stand for.


def annotation_rows(answered: Answered, row: KeyRow, scheme: Scheme, flags: list[str]) -> Iterator[dict[str, Any]]:
    """Write one annotation as rows of the table `annotations`, one per question that was answered."""
    shared = {
        "item_id": row["item_id"], "annotator": answered.annotator, "annotator_region": row["annotator_region"],
        "in_region": row["in_region"], "scheme": scheme.name, "seconds": answered.seconds, "flags": flags,
    }  # fmt: skip
    offered: Offered = orjson.loads(row["options"])
    for criterion in scheme.criteria:
        if criterion.name not in answered.answers:
            continue
        for name, value, choice, text in cells(criterion, answered.answers[criterion.name], row, offered, scheme):
            comment = answered.comments.get(criterion.name) if text is None else text
            yield {**shared, "criterion": name, "value": value, "choice": choice, "text": comment}


Cell = tuple[str, float | None, str | None, str | None]  # criterion, value, choice, text


def cells(
    criterion: Criterion, chosen: tuple[str, ...], row: KeyRow, offered: Offered, scheme: Scheme
) -> Iterator[Cell]:
    """Write one answer; of several options each has a row of its own, 1 where it was chosen and 0 where not."""
    if criterion.type == "text":
        yield criterion.name, None, None, chosen[0]
    elif criterion.type == "scale":
        yield criterion.name, float(chosen[0]), None, None
    elif not criterion.several:
        counts = next((option.number for option in criterion.options if option.value == chosen[0]), None)
        yield criterion.name, counts, meaning(criterion, chosen[0], row, offered), None
    else:
        for code in codes_of(criterion, offered, scheme):
            shown = criterion.type == "pictures" and code.isdigit()
            what = row["places"][int(code) - 1] if shown else meaning(criterion, code, row, offered)
            choice = meaning(criterion, code, row, offered) if code in chosen else None
            yield f"{criterion.name}/{what}", float(code in chosen), choice, None


def meaning(criterion: Criterion, code: str, row: KeyRow, offered: Offered) -> str:
    """Say what a code stands for: an option of the item, the image in a place, or itself."""
    if criterion.options_from is not None:
        return offered[criterion.options_from][code]["choice"]
    if of_pictures(criterion) and code.isdigit():
        return str(row["pictures"][int(code) - 1])
    return code


def meanings_of(answered: Answered, row: KeyRow, scheme: Scheme) -> Mapping[str, Mapping[str, str]]:
    """Tell everything that goes with the options an annotator chose, by question."""
    offered: Offered = orjson.loads(row["options"])
    return {
        criterion.name: offered[criterion.options_from][answered.answers[criterion.name][0]]
        for criterion in scheme.criteria
        if criterion.options_from is not None and not criterion.several and criterion.name in answered.answers
    }
