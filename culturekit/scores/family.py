"""What a family of scores declares: its metrics, the stage that scores them, and options that are said once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.core.errors import NothingScored
from culturekit.core.schemas import SCORES, VALUES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand
from culturekit.core.tables import write_table
from culturekit.core.work import MARKED, Outcome, Work
from culturekit.metrics.corrected.audit_gates import MARKS
from culturekit.scores.catalog import CATALOG, Metric
from culturekit.scores.form_answers import read_answers
from culturekit.scores.rating_pools import careful_answers, of_criterion
from culturekit.scores.score_rows import Scored, scored

Confidence: TypeAlias = Annotated[float, Field(ge=0.5, le=0.9999, description="Of the intervals.")]
Correction: TypeAlias = Annotated[
    Literal["holm", "benjamini-hochberg"], Field(description="How p values are corrected for their number.")
]
Pair: TypeAlias = Annotated[
    tuple[str, ...],
    Field(description="Column of prompts that a prompt shares with its counterparts; repeat it for more than one."),
]


@dataclass(frozen=True, slots=True)
class Family(StageCommand):
    """A family of scores, as the command line, the documentation and a recipe find it.

    Attributes:
        metrics: that it writes.
        check: what packages for earlier versions named; `verify` makes scores again, and reads it nowhere.
    """

    metrics: tuple[Metric, ...] = field(kw_only=True)
    check: str = ""


def described(names: str) -> tuple[Metric, ...]:
    """Give the descriptions of metrics of ours, by their names with spaces between."""
    return tuple(CATALOG[name] for name in names.split())


# A stage that scores one family of metrics: tables in, scores and the values behind them out.


def family_stage(
    family: str,
    inputs: Mapping[str, Path],
    options: Mapping[str, object],
    score: Callable[[Work], Scored],
    *,
    version: int = 1,
    seeds: Mapping[str, int] | None = None,
    name: str = "scores",
    packages: tuple[str, ...] = ("numpy", "polars", "scipy"),
) -> Stage:
    """Describe the stage; `score` reads the inputs and computes, and is called only when there is work to do.

    Where it can score nothing, a command refuses, and a run goes on: `scored_in`.
    """
    return Stage(
        name,
        f"score-{family}",
        version,
        lambda work: write_scored(work, scored_in(work, lambda: score(work))),
        dict(inputs),
        dict(options),
        dict(seeds or {}),
        packages=packages,
    )


def scored_in(work: Work, score: Callable[[], Scored]) -> Scored:
    """Score; where nothing can be scored, a command refuses tables that do not belong together.

    A run goes on without these scores, and says why: its images are made and paid, and people may answer later.
    """
    try:
        answer = score()
        if not answer.scores.height and not work.in_run:
            raise NothingScored(
                "nothing could be scored",
                expected="tables of one run, whose ids occur in each other",
                found="; ".join(f"{reason}: {count:,}" for reason, count in answer.left_out.items()) or "no rows",
            )
    except NothingScored as nothing:
        if not work.in_run:
            raise
        left_out = {nothing.problem: 1} if nothing.left_out is None else nothing.left_out
        write_table(work.out, VALUES, pl.DataFrame(schema=VALUES.schema))  # stages behind it read them
        return scored([], left_out=left_out)
    return answer


def answers_in(work: Work, annotations: Path, criterion: str) -> pl.DataFrame:
    """Read people's answers; where none to a question counts, a run has none, and scores what else it can."""
    answers = read_answers(annotations)
    try:
        of_criterion(careful_answers(answers), criterion)
    except NothingScored:
        if not work.in_run:
            raise
        return answers.clear()
    return answers


def write_scored(work: Work, answer: Scored) -> Outcome:
    """Write `scores.parquet`, and `values.parquet` where single items were scored; say what stands beside scores."""
    write_table(work.out, SCORES, answer.scores)
    counts = {"scores": answer.scores.height}
    if answer.values.height:
        write_table(work.out, VALUES, answer.values)
        counts["values"] = answer.values.height
    marks = [mark for mark in MARKS if answer.scores["params"].str.contains(f'"{mark}"', literal=True).any()]
    notes = {MARKED: marks, "caveat": " ".join(MARKS[mark] for mark in marks)} if marks else {}
    return Outcome(counts, answer.left_out, notes)
