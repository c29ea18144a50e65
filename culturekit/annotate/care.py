"""How carefully somebody answered: attention checks, items asked twice, and time."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson

from culturekit.annotate.answer_rows import annotation_rows
from culturekit.annotate.exported_answers import KeyRow
from culturekit.annotate.exported_json import Answered
from culturekit.annotate.scheme import Filters, Scheme
from culturekit.errors import UsageError
from culturekit.metrics.scoring.careful_answers import ATTENTION, FLAGS, INCONSISTENT, TOO_FAST

__all__ = ["check_rows", "flags_of", "known_flags"]


def known_flags(names: Sequence[str]) -> tuple[str, ...]:
    """Accept names of flags."""
    for name in names:
        if name not in FLAGS:
            raise UsageError("there is no such flag", found=repr(name), expected=", ".join(FLAGS))
    return tuple(sorted(set(names)))


Taken = Sequence[tuple[Answered, KeyRow]]


def check_rows(good: Taken, scheme: Scheme) -> list[dict[str, Any]]:
    """Write the answers to checks and repeated items, each beside what it is held against."""
    first = {(row["task"], answered.annotator): answered for answered, row in good if row["kind"] == "item"}
    rows: list[dict[str, Any]] = []
    for answered, row in good:
        if row["kind"] == "check":
            rows += checked(answered, row, scheme)
        elif row["kind"] == "repeat":
            before = first.get((row["repeat_of"], answered.annotator))
            rows += repeated(answered, row, before, scheme)
    return rows


def shared(answered: Answered, row: KeyRow, scheme: Scheme, criterion: str) -> dict[str, Any]:
    """Write what all rows of checks have."""
    return {
        "task": row["task"],
        "kind": row["kind"],
        "item_id": row["item_id"],
        "annotator": answered.annotator,
        "annotator_region": row["annotator_region"],
        "scheme": scheme.name,
        "criterion": criterion,
        "seconds": answered.seconds,
    }


def checked(answered: Answered, row: KeyRow, scheme: Scheme) -> Iterator[dict[str, Any]]:
    """Hold the answers to an attention check against what it asked for; other questions are free."""
    for criterion, value in orjson.loads(row["expected"]).items():
        said = " | ".join(answered.answers.get(criterion, ()))
        yield {
            **shared(answered, row, scheme, criterion),
            "choice": said or None,
            "expected": value,
            "held": said == value,
        }


def repeated(answered: Answered, row: KeyRow, before: Answered | None, scheme: Scheme) -> Iterator[dict[str, Any]]:
    """Hold the answers to an item against those of the first time, where that was answered."""
    distance = scheme.filters.repeat_distance
    earlier = {} if before is None else {
        cell["criterion"]: cell for cell in annotation_rows(before, row, scheme, [])
    }  # fmt: skip
    now = {cell["criterion"]: cell for cell in annotation_rows(answered, row, scheme, [])}
    for criterion in sorted(now.keys() | earlier.keys()):
        cell, old = now.get(criterion), earlier.get(criterion)
        free_text = (cell or old or {}).get("value") is None and (cell or old or {}).get("choice") is None
        held = None if before is None or free_text else alike(cell, old, distance)
        yield {
            **shared(answered, row, scheme, criterion),
            "choice": written(cell),
            "text": None if cell is None else cell["text"],
            "expected": written(old),
            "held": held,
        }


def alike(now: Mapping[str, Any] | None, before: Mapping[str, Any] | None, distance: int) -> bool:
    """Tell whether two answers agree: the same choice, or numbers of a scale that lie near; both asked, or neither."""
    if now is None or before is None:
        return False
    if "/" in str(now["criterion"]) or now["value"] is None or before["value"] is None:
        return bool(now["value"] == before["value"] and now["choice"] == before["choice"])
    return abs(float(now["value"]) - float(before["value"])) <= distance


def written(cell: Mapping[str, Any] | None) -> str | None:
    """Write an answer as text."""
    if cell is None:
        return None
    return cell["choice"] if cell["choice"] is not None or cell["value"] is None else f"{cell['value']:g}"


def flags_of(good: Taken, checks: Sequence[Mapping[str, Any]], scheme: Scheme) -> list[list[str]]:
    """Flag each annotation, in the order given."""
    careless = {ATTENTION: inattentive(checks, scheme.filters), INCONSISTENT: inconsistent(checks, scheme.filters)}
    return [
        [
            *sorted(flag for flag, names in careless.items() if answered.annotator in names),
            *([TOO_FAST] if too_fast(answered.seconds, scheme.filters) else []),
            *([f"recruitment:{answered.recruitment}"] if answered.recruitment else []),
        ]
        for answered, _ in good
    ]


def inattentive(checks: Sequence[Mapping[str, Any]], filters: Filters) -> set[str]:
    """Name the annotators who failed more attention checks than are allowed; one wrong answer fails a check."""
    failed = {(row["annotator"], row["task"]) for row in checks if row["kind"] == "check" and not row["held"]}
    counts = Counter(annotator for annotator, _ in failed)
    return {annotator for annotator, count in counts.items() if count > filters.attention_failures}


def inconsistent(checks: Sequence[Mapping[str, Any]], filters: Filters) -> set[str]:
    """Name the annotators of whose repeated answers too many do not hold."""
    compared = [row for row in checks if row["kind"] == "repeat" and row["held"] is not None]
    total = Counter(row["annotator"] for row in compared)
    apart = Counter(row["annotator"] for row in compared if not row["held"])
    return {name for name, count in total.items() if apart[name] / count > filters.inconsistent_share}


def too_fast(seconds: float | None, filters: Filters) -> bool:
    """Tell whether an item was answered faster than anybody could look at it."""
    return seconds is not None and seconds < filters.fewest_seconds
