"""The report of a run as its last stage, and for a run that is finished already."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from culturekit.errors import UsageError
from culturekit.pipeline.stage import Stage
from culturekit.report.run_folders import COMPARISON, SHOWN, RunFolders
from culturekit.report.write import write_report

__all__ = ["RECIPE_RECORD", "folders_of", "report_stage"]

RECIPE_RECORD = "recipe.json"
"""The recipe as it was run, everything filled in: it lies beside the stage folders."""


def report_stage(run: RunFolders, *, name: str = "report") -> Stage:
    """Write the report of a run."""
    return Stage(
        name,
        "report",
        1,
        lambda work: write_report(work, run),
        {stage: run.root / stage for stage in run.stage_names()},
        {"models": list(run.models)},
        packages=("jinja2", "polars"),
    )


class RecordedModel(msgspec.Struct):
    """A model as the recipe record names it."""

    name: str


class RecordedRecipe(msgspec.Struct):
    """The part of a recipe record that a report needs."""

    models: Sequence[RecordedModel]


def folders_of(root: Path) -> RunFolders:
    """Read from a run's recipe record which models it has."""
    path = root / RECIPE_RECORD
    try:
        recipe = msgspec.json.decode(path.read_bytes(), type=RecordedRecipe)
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError) as error:
        raise UsageError(
            "not the folder of a run", where=str(root), expected=f"a folder with a {RECIPE_RECORD}"
        ) from error
    names = tuple(model.name for model in recipe.models)
    truthful = frozenset(name for name in names if (root / f"truth-{name}").is_dir())
    return RunFolders(
        root,
        names,
        truthful,
        audited=any((root / f"audit-{name}").is_dir() for name in names),
        diagnosed=(root / "diagnosis").is_dir(),
        compared=(root / "stability").is_dir(),
        counted=(root / SHOWN).is_dir(),
        differed=(root / COMPARISON).is_dir(),
        completed=(root / "completion").is_dir(),
    )
