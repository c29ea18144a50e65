"""How each person did: answers, checks, repeats, gold items, agreement, minutes, and whether they count, or why not."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from culturekit.core.counting import counted
from culturekit.core.schemas import RATERS
from culturekit.scores.answers import ATTENTION, COPIED, FLAGS, INCONSISTENT, SAME_AS, TOO_FAST, TRIAL_FAILED

STATUS = ("person", "region", "items", "answers", "count", "checks", "repeats", "gold", "agree", "minutes", "why not")
NAMED = 5  # people who are named one by one on a first screen

Rows = Sequence[Mapping[str, Any]]


def raters_of(
    answers: pl.DataFrame, checks: pl.DataFrame, quarantine: pl.DataFrame, *, keep: Sequence[str] = (),
) -> pl.DataFrame:  # fmt: skip
    """Write a row for everybody who answered anything.

    Returns:
        Conforms to RATERS.
    """
    answer = pl.coalesce(pl.col("value").cast(pl.String), "choice")
    question = ("item_id", "scheme", "criterion")
    shared = answers.with_columns(said=answer).with_columns(
        asked=pl.when(answer.is_not_null()).then(pl.len().over(*question) - 1),
        alike=pl.when(answer.is_not_null()).then(pl.len().over(*question, "said") - 1),
    )
    tables = {"answers": shared, "checks": checks, "aside": quarantine.drop_nulls("annotator")}
    by_person = {name: table.partition_by("annotator", as_dict=True) for name, table in tables.items()}
    names = sorted({str(name) for parts in by_person.values() for (name,) in parts})
    harmful = {flag for flag in FLAGS if flag not in keep}
    rows = [_row(name, {kind: parts.get((name,)) for kind, parts in by_person.items()}, harmful) for name in names]
    return pl.DataFrame(rows, schema=RATERS.schema).sort(RATERS.key)


def _row(name: str, tables: Mapping[str, pl.DataFrame | None], harmful: set[str]) -> dict[str, Any]:
    given, looked = tables["answers"], tables["checks"]
    answers = [] if given is None else given.to_dicts()
    flags = sorted({flag for row in answers for flag in row["flags"] if flag in FLAGS})
    held = [] if looked is None else looked.to_dicts()
    asked_of = {kind: _held([row for row in held if row["kind"] == kind]) for kind in ("check", "repeat", "gold")}
    asked = sum(row["asked"] or 0 for row in answers)
    timed = {row["item_id"]: row["seconds"] for row in answers if row["seconds"] is not None}
    aside = Counter() if tables["aside"] is None else Counter(
        reason for *_, reason in tables["aside"].select("file", "task_number", "annotation_number", "reason").unique(
            ["file", "task_number", "annotation_number"], keep="first", maintain_order=True).iter_rows()
    )  # fmt: skip
    same_as = next(
        (flag.removeprefix(SAME_AS) for row in answers for flag in row["flags"] if flag.startswith(SAME_AS)), None
    )
    row = {
        "annotator": name,
        "annotator_region": next((each["annotator_region"] for each in answers or ()), None),
        "items": len({each["item_id"] for each in answers}),
        "answers": len(answers),
        "counted": sum(harmful.isdisjoint(each["flags"]) for each in answers),
        "quarantined": aside.total(),
        "checks": asked_of["check"][0], "checks_failed": asked_of["check"][1],
        "repeats": asked_of["repeat"][0], "repeats_unlike": asked_of["repeat"][1],
        "gold": asked_of["gold"][0], "gold_right": asked_of["gold"][0] - asked_of["gold"][1],
        "agreement": sum(each["alike"] or 0 for each in answers) / asked if asked else None,
        "minutes": sum(timed.values()) / 60 if timed else None,
        "same_as": same_as,
    }  # fmt: skip
    return {**row, "why": None if row["counted"] else _why(row, [flag for flag in flags if flag in harmful], aside)}


def _held(rows: Rows) -> tuple[int, int]:
    """Count the tasks of a kind, and those of which an answer did not hold."""
    return len({row["task"] for row in rows}), len({row["task"] for row in rows if row["held"] is False})


def _why(row: Mapping[str, Any], flags: Sequence[str], aside: Counter[str]) -> str:
    """Say why nothing of somebody's answers counts."""
    reasons = {
        ATTENTION: f"failed {row['checks_failed']} of {counted(row['checks'], 'attention checks')}",
        INCONSISTENT: f"answered {row['repeats_unlike']} of {counted(row['repeats'], 'repeated items')} otherwise",
        TOO_FAST: "answered faster than anybody can look",
        TRIAL_FAILED: "failed the trial",
        COPIED: f"gave the same answers as {row['same_as'] or 'somebody else'}",
    }
    reasons_given = [reasons[flag] for flag in flags]
    if aside:
        most, _ = aside.most_common(1)[0]
        reasons_given.append(f"{counted(row['quarantined'], 'answers')} in quarantine ({most})")
    return "; ".join(reasons_given) or "answered checks and repeats only"


def who_counted(raters: pl.DataFrame) -> str:
    """Say who counts and who does not, and what now rests on one person; nothing where all count, and are several."""
    rows = raters.to_dicts()
    kept, dropped = [row for row in rows if row["counted"]], [row for row in rows if not row["counted"]]
    lost = {row["annotator_region"] for row in dropped}
    alone = sorted(
        home for home in {row["annotator_region"] for row in kept} & lost
        if sum(row["annotator_region"] == home for row in kept) == 1
    )  # fmt: skip
    if not rows or not (dropped or len(kept) == 1):
        return ""
    names = f": {', '.join(row['annotator'] for row in kept)}" if 0 < len(kept) <= NAMED else ""
    left_out = [f"{row['annotator']} ({row['why']})" for row in dropped[:NAMED]]
    left_out += [f"and {len(dropped) - NAMED} more, whom raters.parquet names"] * (len(dropped) > NAMED)
    people = "person" if len(rows) == 1 else "people"
    sentences = [f"{len(rows)} {people} answered, and {len(kept)} of them count{'s' * (len(kept) == 1)}{names}."]
    sentences += [f"Left out: {', '.join(left_out)}."] if dropped else []
    if len(kept) == 1:
        sentences.append("Every score of people's answers rests on one person.")
    elif alone:
        sentences.append(f"What people of {', '.join(alone)} say rests on one person each.")
    return " ".join(sentences)


def status_line(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Write how one person did, in the columns of `STATUS`."""

    def of(good: int, all_of_them: int) -> str:
        return f"{good}/{all_of_them}" if all_of_them else "-"

    agree, minutes = row["agreement"], row["minutes"]
    return (
        row["annotator"], row["annotator_region"] or "-", str(row["items"]), str(row["answers"]), str(row["counted"]),
        of(row["checks"] - row["checks_failed"], row["checks"]),
        of(row["repeats"] - row["repeats_unlike"], row["repeats"]), of(row["gold_right"], row["gold"]),
        "-" if agree is None else f"{agree:.0%}", "-" if minutes is None else f"{minutes:.0f}", row["why"] or "",
    )  # fmt: skip
