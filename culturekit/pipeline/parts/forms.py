"""Answers to a form that a run hands out: given files, what was answered in browsers, or what simulated people say."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.annotate.answer_journal import served_answers
from culturekit.pipeline.steps.annotate_stages import ANSWERS_FILE, import_stage
from culturekit.stages.roles import Role
from culturekit.stages.run import Run
from culturekit.stages.stage import Stage

__all__ = ["imported_answers"]


def imported_answers(
    run: Run, project: Path, given: Sequence[str], people: Stage | None, *, answers: Role, imported: Role,
    model: str = "", variant: str = "",
) -> Path | None:  # fmt: skip
    """Import what people said of a form; None while nobody has. Simulated `people` answer in a stage of their own."""
    said = [Path(name) for name in given] or served_answers(project)
    if people is not None:
        said = [run.add(people, answers, model, variant) / ANSWERS_FILE]
    return run.add(import_stage(project, said, pool=None), imported, model, variant) if said else None
