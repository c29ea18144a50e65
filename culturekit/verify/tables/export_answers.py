"""What exports hold, read again by rules of its own: which answers count, and why each of the others cannot."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from culturekit.records.export_keys import (
    ANNOTATION_KEYS,
    LONGEST_TEXT,
    PERSON_KEYS,
    RESULT_KEYS,
    STUDY_KEYS,
    TASK_KEYS,
)
from culturekit.storage.digests import digest

__all__ = ["Given", "HandedOut", "given_in", "offered_codes"]

Questions: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Criteria of a scheme, by name."""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """A project as it was handed out: its name, its scheme, its questions, and the key of its tasks."""

    name: str
    scheme: Mapping[str, Any]
    questions: Questions
    key: Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class Given:
    """What one person gave to one task: codes, or a text, and a comment, by question.

    Attributes:
        place: file, task and annotation by number; 0 is the task itself.
        found: as the export has it.
        task: the name that it goes by there.
        about: the row of the key; empty where there is none.
        wrong: why it cannot count.
        passed_over: nothing was to be answered.
    """

    place: tuple[str, int, int]
    found: Any
    task: str | None
    about: Mapping[str, Any]
    wrong: set[str]
    person: str = ""
    seconds: float | None = None
    recruited: bool = False
    passed_over: bool = False
    chosen: dict[str, list[str]] = field(default_factory=dict)
    comments: dict[str, str] = field(default_factory=dict)


def given_in(exports: Sequence[Path], project: HandedOut) -> Iterator[Given]:
    """Read who gave what; of several answers of one person to one item the first that is right counts."""
    names = Counter(path.name for path in exports)
    counted: set[tuple[str, str]] = set()
    for number, path in enumerate(exports, start=1):
        file = path.name if names[path.name] == 1 else f"{number}:{path.name}"
        for task, entry in enumerate(entries_of(path), start=1):
            for one in given_to(entry, (file, task), project):
                if not one.wrong and not one.passed_over:
                    item = one.about["item_id"] if one.about["kind"] == "item" else f"\0{one.about['task']}"
                    one.wrong |= {"duplicate"} if (item, one.person) in counted else set()
                    counted.add((item, one.person))
                yield one


def entries_of(path: Path) -> list[Any]:
    """Read the tasks of an export; of a journal the last answer of everybody to each."""
    if path.suffix != ".jsonl":
        return list(orjson.loads(path.read_bytes()))
    lines = [orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
    return list({(one["annotations"][0]["completed_by"]["email"], one["data"]["task"]): one for one in lines}.values())


def given_to(entry: Any, place: tuple[str, int], project: HandedOut) -> Iterator[Given]:  # noqa: ANN401 - JSON
    """Read the annotations of one task, or the task itself where it has none that can be read."""
    data = entry.get("data") if isinstance(entry, dict) else None
    name = data.get("task") if isinstance(data, dict) else None
    task = name if isinstance(name, str) else None
    about = project.key.get(task or "", {})
    wrong = wrong_with_task(entry, about, project)
    annotations = entry.get("annotations") if isinstance(entry, dict) else None
    if not isinstance(annotations, list):
        yield Given((*place, 0), entry, task, about, wrong | {"malformed"})
    elif not annotations and wrong:
        yield Given((*place, 0), entry, task, about, wrong)
    for number, one in enumerate(annotations if isinstance(annotations, list) else (), start=1):
        given = Given((*place, number), one, task, about, set(wrong))
        read(given, entry.get("meta"), project)
        yield given


def wrong_with_task(entry: Any, about: Mapping[str, Any], project: HandedOut) -> set[str]:  # noqa: ANN401 - JSON
    """Say why no answer to a task can count."""
    if not isinstance(entry, dict):
        return {"malformed"}
    wrong = {"unknown field"} if entry.keys() - TASK_KEYS else set()
    data = entry.get("data")
    data = data if isinstance(data, dict) else {}
    if data.get("project") != project.name:
        return wrong | {"wrong project"}
    if not about:
        return wrong | {"unknown item"}
    shown = {name: value.replace("\\", "/").rpartition("/")[2] if is_picture(name, value) else value
             for name, value in data.items()}  # fmt: skip
    return wrong | ({"task changed since it was handed out"} if digest(shown) != about["content"] else set())


def is_picture(name: str, value: object) -> bool:
    """Tell whether a field holds the address of a picture, wherever it lies."""
    return name.startswith("picture_") and isinstance(value, str)


def read(given: Given, meta: Any, project: HandedOut) -> None:  # noqa: ANN401 - JSON
    """Read one annotation, with everything that is wrong with it; answers are looked at where their task is right."""
    one, fits = given.found, not given.wrong
    if not isinstance(one, dict):
        given.wrong.add("malformed")
        return
    person, seconds, results = one.get("completed_by"), one.get("lead_time"), one.get("result")
    strange = isinstance(person, dict) and person.keys() - PERSON_KEYS
    given.wrong |= {"unknown field"} if one.keys() - ANNOTATION_KEYS or strange else set()
    given.person = signed(person)
    given.wrong |= set() if given.person else {"nobody signed it"}
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    odd = seconds is not None and not (number and math.isfinite(seconds) and seconds >= 0)
    ids = [meta.get(name) for name in STUDY_KEYS] if isinstance(meta, dict) else []
    given.recruited = bool(ids) and all(isinstance(each, str) and each for each in ids)
    odd |= any(each is not None and not isinstance(each, str) for each in ids)
    given.seconds = None if odd else seconds
    answers = [] if isinstance(results, list) else ["malformed"]
    for each in results if isinstance(results, list) else ():
        answers += read_result(given, each, project)
    before = given.wrong | set(answers) | ({"malformed"} if odd else set())
    cancelled = one.get("was_cancelled")
    given.passed_over = cancelled is True and not before
    given.wrong = before | ({"malformed"} if cancelled is not None and not isinstance(cancelled, bool) else set())
    if fits and not given.passed_over and set(answers) <= {"unknown question"}:
        given.wrong |= set(wrong_answers(given, project))


def signed(person: object) -> str:
    """Name who answered as tables do: of an address a hash."""
    if isinstance(person, dict):
        person = person.get("email") or person.get("username") or person.get("id")
    name = str(person).strip() if isinstance(person, int | str) and not isinstance(person, bool) else ""
    return f"annotator-{digest(name.casefold())[:12]}" if "@" in name else name


def read_result(given: Given, each: Any, project: HandedOut) -> list[str]:  # noqa: ANN401 - JSON
    """Take over what one question was answered by; say what is wrong with it."""
    if not isinstance(each, dict):
        return ["malformed"]
    wrong = ["unknown field"] if each.keys() - RESULT_KEYS else []
    name, value = each.get("from_name"), each.get("value")
    comments = {f"{one}_comment": one for one, question in project.questions.items() if question["comment"]}
    if not isinstance(name, str) or (name not in project.questions and name not in comments):
        return [*wrong, "unknown question"]
    if each.get("to_name") != ("picture_1" if project.scheme["pictures"] else "subject"):
        wrong.append("malformed")
    if not isinstance(value, dict):
        return [*wrong, "malformed"]
    if name in given.chosen or comments.get(name) in given.comments:
        return [*wrong, "answered twice"]
    question = project.questions.get(name)
    if question is None or question["type"] == "text":
        said, odd = written(each, value)
        if said and question is None:
            given.comments[comments[name]] = said
        elif said:
            given.chosen[name] = [said]
    else:
        codes, odd = picked(each, value, question)
        given.chosen |= {name: codes} if codes else {}
    return [*wrong, *odd]


def written(each: Mapping[str, Any], value: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Read a text, and what is wrong with it."""
    wrong = ["unknown field"] if value.keys() - {"text"} else []
    text = value.get("text")
    lines = [text] if isinstance(text, str) else text
    if each.get("type") != "textarea" or not isinstance(lines, list) or not all(isinstance(x, str) for x in lines):
        return "", [*wrong, "malformed"]
    said = "\n".join(lines).strip()
    return ("", [*wrong, "out of range"]) if len(said) > LONGEST_TEXT else (said, wrong)


def picked(
    each: Mapping[str, Any], value: Mapping[str, Any], question: Mapping[str, Any]
) -> tuple[list[str], list[str]]:
    """Read codes, or stars, and what is wrong with them."""
    by_stars = question["type"] == "scale" and each.get("type") == "rating"
    wrong = ["unknown field"] if value.keys() - {"rating" if by_stars else "choices"} else []
    codes = value.get("rating") if by_stars else value.get("choices") if each.get("type") == "choices" else None
    if by_stars and isinstance(codes, int) and not isinstance(codes, bool):
        codes = [str(codes)]
    if isinstance(codes, float):
        return [], [*wrong, "out of range"]
    if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
        return [], [*wrong, "malformed"]
    if len(set(codes)) < len(codes):
        return [], [*wrong, "answered twice"]
    if len(codes) > 1 and question["type"] not in {"choices", "pictures"}:
        return [], [*wrong, "several answers where one is asked"]
    return sorted(codes), wrong


def wrong_answers(given: Given, project: HandedOut) -> Iterator[str]:
    """Hold what was read against the questions: asked for, allowed, and complete."""
    for name, question in project.questions.items():
        codes, comment = given.chosen.get(name, []), question["comment"]
        if not all(set(given.chosen.get(one, ())) & set(values) for one, values in question["when"].items()):
            if codes or name in given.comments:
                yield "answer to a question not asked"
            continue
        if question["required"] and not codes:
            yield "required answer missing"
        if question["type"] != "text" and set(codes) - set(offered_codes(question, given.about, project)):
            yield "out of range" if question["type"] == "scale" else "unknown choice"
        if len(codes) > 1 and set(codes) & set(question["alone"]):
            yield "answers that exclude each other"
        wanted = comment and set(codes) & set(comment["when"])
        if wanted and comment["required"] and name not in given.comments:
            yield "required answer missing"
        if comment and not wanted and name in given.comments:
            yield "answer to a question not asked"


def offered_codes(question: Mapping[str, Any], about: Mapping[str, Any], project: HandedOut) -> list[str]:
    """List the codes that a question could be answered by."""
    if question["options_from"] is not None:
        return list(orjson.loads(about["options"]).get(question["options_from"], {}))
    if question["type"] in {"picture", "pictures"}:
        pictures = enumerate(project.scheme["pictures"], start=1)
        either = project.scheme["drawn"] if question["type"] == "picture" else ()
        return [str(number) for number, name in pictures if not either or name in either]
    if question["type"] == "scale":
        return [str(number) for number in range(question["low"], question["high"] + 1)]
    return [option["value"] for option in question["options"]]
