"""What answers say, as rows of the tables that importing them gives: the answers, those to checks, and their flags."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from culturekit.verify.scores.people_answers import FLAGS, RECRUITMENT
from culturekit.verify.tables.export_answers import Given, HandedOut, offered_codes

__all__ = ["Rows", "annotation_rows", "check_rows", "flags_of"]

ATTENTION, INCONSISTENT, TOO_FAST = FLAGS
Rows: TypeAlias = Mapping[tuple[str, ...], dict[str, Any]]
"""What rows of a table are to say, by their key."""

Cell: TypeAlias = tuple[float | None, str | None, str | None]
"""Value, choice, text."""

NO_CELL: Cell = (None, None, None)


def cells_of(one: Given, project: HandedOut) -> dict[str, Cell]:
    """Say what one person answered, by question; of several options each has a cell, 1 where it was chosen, else 0."""
    found: dict[str, Cell] = {}
    for name, codes in one.chosen.items():
        question, comment = project.questions[name], one.comments.get(name)
        numbers = {option["value"]: option["number"] for option in question["options"]}
        if question["type"] == "text":
            found[name] = (None, None, codes[0])
        elif question["type"] == "scale":
            found[name] = (float(codes[0]), None, comment)
        elif question["type"] in {"choices", "pictures"}:
            for code in offered_codes(question, one.about, project):
                means = meaning(question, code, one.about)
                what = one.about["places"][int(code) - 1] if question["type"] == "pictures" else means
                found[f"{name}/{what}"] = (float(code in codes), means if code in codes else None, comment)
        else:
            found[name] = (numbers.get(codes[0]), meaning(question, codes[0], one.about), comment)
    return found


def meaning(question: Mapping[str, Any], code: str, about: Mapping[str, Any]) -> str:
    """Say what a code stands for: an offer of the item, a picture, or itself."""
    if question["options_from"] is not None:
        return str(json.loads(about["options"])[question["options_from"]][code]["choice"])
    return str(about["pictures"][int(code) - 1]) if question["type"] in {"picture", "pictures"} else code


def check_rows(answers: Sequence[Given], project: HandedOut) -> dict[tuple[str, ...], dict[str, Any]]:
    """Hold what was answered to checks against what they ask for, and to repeated items against the first time."""
    first = {(one.person, one.about["task"]): one for one in answers if one.about["kind"] == "item"}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for one in answers:
        cells, kind = cells_of(one, project), one.about["kind"]
        rows: dict[str, tuple[str | None, str | None, str | None, bool | None]] = {}
        if kind == "check":
            for name, asked in json.loads(one.about["expected"]).items():
                said = " | ".join(one.chosen.get(name, ()))
                rows[name] = (said or None, None, asked, said == asked)
        elif kind == "repeat":
            before, allowed = first.get((one.person, one.about["repeat_of"])), project.scheme["filters"]
            old = {} if before is None else cells_of(before, project)
            for name in cells | old:
                now, then = cells.get(name), old.get(name)
                held = None if before is None else alike(name, now, then, allowed["repeat_distance"])
                rows[name] = (written(now), (now or NO_CELL)[2], written(then), held)
        shared = {"kind": kind, "item_id": one.about["item_id"], "seconds": one.seconds}
        for name, row in rows.items():
            told = dict(zip(("choice", "text", "expected", "held"), row, strict=True))
            found[one.about["task"], one.person, name] = shared | told
    return found


def written(cell: Cell | None) -> str | None:
    """Write what was answered."""
    value, choice, _ = cell or NO_CELL
    return choice if choice is not None or value is None else f"{value:g}"


def alike(name: str, now: Cell | None, before: Cell | None, distance: int) -> bool | None:
    """Tell whether two answers to one question agree: numbers that lie near, or the same; None of free text."""
    if (now or before or NO_CELL)[:2] == (None, None):
        return None
    if now is None or before is None:
        return False
    if "/" in name or now[0] is None or before[0] is None:
        return now[:2] == before[:2]
    return abs(now[0] - before[0]) <= distance


def flags_of(answers: Sequence[Given], checks: Rows, filters: Mapping[str, Any]) -> list[list[str]]:
    """Say of each answer what flags it: how whoever gave it did in checks and repeats, and how fast they were."""
    failed: dict[str, set[str]] = defaultdict(set)
    held: dict[str, list[bool]] = defaultdict(list)
    for (task, person, _), row in checks.items():
        if row["kind"] == "repeat" and row["held"] is not None:
            held[person].append(row["held"])
        elif row["kind"] == "check" and not row["held"]:
            failed[person].add(task)
    careless = {person for person, tasks in failed.items() if len(tasks) > filters["attention_failures"]}
    apart = {name for name, each in held.items() if each.count(False) / len(each) > filters["inconsistent_share"]}
    return [
        [ATTENTION] * (one.person in careless)
        + [INCONSISTENT] * (one.person in apart)
        + [TOO_FAST] * (one.seconds is not None and one.seconds < filters["fewest_seconds"])
        + [f"{RECRUITMENT}prolific"] * one.recruited
        for one in answers
    ]


def annotation_rows(
    answers: Sequence[Given], flags: Sequence[list[str]], project: HandedOut
) -> dict[tuple[str, ...], dict[str, Any]]:
    """Write what was answered about items."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for one, flagged in zip(answers, flags, strict=True):
        shared = {name: one.about[name] for name in ("annotator_region", "in_region")}
        shared |= {"seconds": one.seconds, "flags": flagged}
        for name, cell in cells_of(one, project).items() if one.about["kind"] == "item" else ():
            told = dict(zip(("value", "choice", "text"), cell, strict=True))
            found[one.about["item_id"], one.person, name] = shared | told
    return found
