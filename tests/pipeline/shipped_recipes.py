"""Shipped recipes, run small."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.pipeline.run_recipe import run_recipe
from culturekit.pipeline.workers.local_engine import LocalEngine
from culturekit.stages.run_stage import StageRun
from culturekit.verify.verify_run import Verification, verify_run

__all__ = ["Finished", "check_built_then_reused", "run_small", "verified"]

Finished: TypeAlias = tuple[Path, list[StageRun]]
"""The folder of a run, and what became of its stages."""


def run_small(recipe: str, settings: Sequence[str], folder: Path) -> Finished:
    """Run a recipe with other settings, in one process."""
    with LocalEngine(1) as engine:
        return folder, run_recipe(load_any_recipe(find_recipe(recipe), settings), folder, engine=engine)


def check_built_then_reused(recipe: str, settings: Sequence[str], finished: Finished) -> None:
    """See that a run built every stage, and that a second one does nothing."""
    folder, runs = finished
    assert {run.state for run in runs} == {"built"}
    assert {run.state for run in run_small(recipe, settings, folder)[1]} == {"reused"}


def verified(folder: Path) -> Verification:
    """Verify a run that nobody touched: nothing but notes is found."""
    answer = verify_run(folder)
    assert [str(finding) for finding in answer.findings if finding.severity != "note"] == []
    return answer
