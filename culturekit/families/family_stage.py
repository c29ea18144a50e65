"""A stage that scores one family of metrics: tables in, scores and the values behind them out."""

from collections.abc import Callable, Mapping
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.metrics.corrected.audit_marks import MARKS
from culturekit.metrics.scoring.score_rows import Scored
from culturekit.records.schemas import SCORES, VALUES
from culturekit.records.work import MARKED, Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import write_table

__all__ = ["family_stage", "write_scored"]


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
    required: bool = True,
) -> Stage:
    """Describe the stage; `score` reads the inputs and computes, and is called only when there is work to do.

    Inputs that give no score are refused with what was left out of them, unless none is `required`.
    """

    def run(work: Work) -> Outcome:
        answer = score(work)
        if required and not answer.scores.height:
            raise UsageError(
                "nothing could be scored",
                expected="tables of one run, whose ids occur in each other",
                found="; ".join(f"{reason}: {count:,}" for reason, count in answer.left_out.items()) or "no rows",
            )
        return write_scored(work, answer)

    return Stage(
        name,
        f"score-{family}",
        version,
        run,
        dict(inputs),
        dict(options),
        dict(seeds or {}),
        packages=packages,
    )


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
