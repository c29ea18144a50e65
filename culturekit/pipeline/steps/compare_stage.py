"""The stage that writes what changed between two graphs or two extractions."""

from pathlib import Path

from culturekit.kg.looking.compare import write_comparison
from culturekit.stages.stage import Stage

__all__ = ["compare_stage"]


def compare_stage(a: Path, b: Path, *, name: str = "diff") -> Stage:
    """Compare two graphs or two extractions."""
    return Stage(
        name, "diff", 1, lambda work: write_comparison(work, a, b), {"before": a, "after": b}, {}, packages=("polars",)
    )
