"""One annotation of an export to answers, or to everything that is wrong with it."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from culturekit.annotate.exported_json import (
    ANNOTATION_KEYS,
    PERSON_KEYS,
    RESULT_KEYS,
    Answered,
    Mistake,
    TaskRecord,
    annotator_of,
    unknown_keys,
)
from culturekit.annotate.label_studio import subject_of
from culturekit.annotate.scheme import Criterion, Scheme

__all__ = ["read_annotation"]

LONGEST_TEXT = 20_000
TYPES = {"text": "textarea"}
STUDY_KEYS = ("prolific_pid", "study_id", "session_id")


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
