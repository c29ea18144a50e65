"""What was set aside before answers are put together, counted: it thins out the tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

__all__ = ["NOTHING_ASIDE", "SetAside", "set_aside"]


@dataclass(frozen=True, slots=True)
class SetAside:
    """What is in no average.

    Attributes:
        quarantine: annotations that were not taken over, by reason; one with several is under the first.
        notes: how checks and repeats went, and whose answers these are.
    """

    quarantine: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)


NOTHING_ASIDE = SetAside()


def set_aside(quarantine: Sequence[pl.DataFrame], checks: Sequence[pl.DataFrame], answers: pl.DataFrame) -> SetAside:
    """Count what importing set aside.

    Args:
        quarantine: each conforms to QUARANTINE.
        checks: each conforms to ANNOTATION_CHECKS.
        answers: conforms to ANNOTATIONS: says who answered.
    """
    reasons: Counter[str] = Counter()
    for table in quarantine:
        firsts = table.unique(["file", "task_number", "annotation_number"], keep="first", maintain_order=True)
        for reason in firsts["reason"]:
            reasons[f"in quarantine: {reason}"] += 1
    if not quarantine and not checks:
        return NOTHING_ASIDE
    asked = {kind: counted(checks, kind) for kind in ("check", "repeat")}
    people = answers.select("annotator", "annotator_region").unique()
    simulated = bool(people.height) and bool(people["annotator"].str.starts_with("simulated-").all())
    notes: dict[str, object] = {"checks": asked["check"], "repeats": asked["repeat"]}
    if simulated:
        notes["caveat"] = "The ratings are by simulated people, who know what the simulated models drew."
    return SetAside(reasons, notes)


def counted(checks: Sequence[pl.DataFrame], kind: str) -> dict[str, int]:
    """Count the tasks of a kind that were answered, and those whose answers did not hold."""
    rows = [row for table in checks for row in table.filter(kind=kind).iter_rows(named=True)]
    tasks = {(row["task"], row["annotator"]) for row in rows}
    failed = {(row["task"], row["annotator"]) for row in rows if row["held"] is False}
    return {"answered": len(tasks), "failed": len(failed)}
