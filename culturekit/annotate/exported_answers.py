"""Exports to answers that can be used: what is wrong goes to quarantine, with the reason; nothing else is left out."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import polars as pl

from culturekit.annotate.blinding import content_of
from culturekit.annotate.check_answers import answer_mistakes
from culturekit.annotate.exported_json import Answered, Mistake, TaskRecord, annotator_of, unknown_keys
from culturekit.annotate.label_studio import subject_of
from culturekit.annotate.scheme import Criterion, Scheme
from culturekit.records.export_keys import (
    ANNOTATION_KEYS,
    LONGEST_RAW,
    LONGEST_TEXT,
    PERSON_KEYS,
    RESULT_KEYS,
    STUDY_KEYS,
    TASK_KEYS,
)
from culturekit.records.schemas import QUARANTINE

__all__ = ["SKIPPED", "ImportedAnswers", "read_exports"]

SKIPPED = "skipped by the annotator"
KeyRow = Mapping[str, Any]


@dataclass(slots=True)
class ImportedAnswers:
    """What came in.

    Attributes:
        good: answers to tasks of the project, with the task's row of the key.
        quarantine: rows of the table of that name.
        skipped: tasks that an annotator passed over, in Label Studio.
    """

    good: list[tuple[Answered, KeyRow]] = field(default_factory=list)
    quarantine: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

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
    taken: ImportedAnswers,
    record: TaskRecord,
    number: int,
    annotation: object,
    of_task: list[Mistake],
    rows: Mapping[str, KeyRow],
    scheme: Scheme,
    seen: set[tuple[str, str]],
) -> None:
    """Take one annotation over, or set it aside with everything that is wrong with it."""
    answered, mistakes = read_annotation(record, number, annotation, scheme)
    mistakes = [*of_task, *mistakes]
    cancelled = annotation.get("was_cancelled") if isinstance(annotation, dict) else None
    if cancelled is True and not mistakes:
        taken.skipped[SKIPPED] += 1
        return
    if cancelled is not None and not isinstance(cancelled, bool):
        mistakes.append(Mistake("malformed", "was_cancelled", repr(cancelled)[:200]))
    row = None if of_task else rows[record.data["task"]]
    if row is not None:
        if all_read(mistakes, scheme):
            offered = orjson.loads(row["options"])
            mistakes += answer_mistakes(scheme, answered.answers, answered.comments, offered)
        if not mistakes and (judged(row), answered.annotator) in seen:
            mistakes.append(Mistake("duplicate", "annotator", answered.annotator))
    if mistakes or row is None:
        set_aside(taken, answered, mistakes, rows)
        return
    seen.add((judged(row), answered.annotator))
    taken.good.append((answered, row))


def all_read(mistakes: list[Mistake], scheme: Scheme) -> bool:
    """Tell whether every answer could be read: what could not would only seem to be missing."""
    about = {name for criterion in scheme.criteria for name in (criterion.name, criterion.comment_name)}
    return not any(mistake.field.partition(".")[0] in {"result", *about} for mistake in mistakes)


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
                "file": record.file,
                "task_number": record.number,
                "annotation_number": answered.number,
                "task": name if isinstance(name, str) else None,
                "item_id": None if row is None else row["item_id"],
                "annotator": answered.annotator or None,
                "reason": mistake.reason,
                "field": mistake.field[:200],
                "detail": mistake.detail,
                "raw": raw,
            }
        )


def read_annotation(record: TaskRecord, number: int, value: object, scheme: Scheme) -> tuple[Answered, list[Mistake]]:
    """Read one annotation; what is wrong with it comes beside what could be read."""
    if not isinstance(value, dict):
        return Answered(record, number, "", None, {}), [Mistake("malformed", "annotation", type(value).__name__)]
    mistakes = list(unknown_keys(value, ANNOTATION_KEYS, "annotation"))
    person = value.get("completed_by")
    if isinstance(person, dict):
        mistakes += unknown_keys(person, PERSON_KEYS, "completed_by")
    annotator = annotator_of(person)
    if annotator is None:
        mistakes.append(Mistake("nobody signed it", "completed_by", repr(person)[:200]))
    seconds = value.get("lead_time")
    if not is_duration(seconds):
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


def is_duration(value: object) -> bool:
    """Tell whether a value is a number of seconds, or not given."""
    if value is None:
        return True
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


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
    name: str,
    entry: Mapping[str, Any],
    value: Mapping[str, Any],
    answers: dict[str, tuple[str, ...]],
    comments: dict[str, str],
    commented: Mapping[str, str],
) -> Iterator[Mistake]:
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
