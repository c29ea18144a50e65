"""The stage that writes what changed between two cultural spaces, and why."""

from pathlib import Path

from culturekit.records.schemas import DIFF
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import write_table
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.causes import compare_spaces
from culturekit.trail.space.told import cause_totals

__all__ = ["space_diff_stage"]


def space_diff_stage(before: Path, after: Path, *, name: str = "diff") -> Stage:
    """Compare two cultural spaces; the keys of all stages behind them are part of what decides."""
    sides = [SpaceBehind.of(path) for path in (before, after)]
    return Stage(
        name,
        "space-diff",
        1,
        lambda work: write_space_diff(work, *sides),
        {"before": sides[0].file, "after": sides[1].file},
        {
            f"behind {word}": {
                **{kind: manifest.key for kind, manifest in sorted(side.manifests.items())},
                "missing": list(side.missing),
            }
            for word, side in zip(("before", "after"), sides, strict=True)
        },
        packages=("polars",),
    )


def write_space_diff(work: Work, before: SpaceBehind, after: SpaceBehind) -> Outcome:
    """Write the differences; their totals by cause are in the notes."""
    found = compare_spaces(before, after, work)
    write_table(work.out, DIFF, found.rows)
    counts = {"diff": found.rows.height, **dict(sorted(found.rows.group_by("change").len().iter_rows()))}
    notes = {"factors": found.factors, "missing": found.missing, "untold": found.untold}
    return Outcome(counts, notes={**notes, "causes": cause_totals(found.rows)})
