"""Doing a part of a stage's work: it stays in the unfinished folder, and the next run goes on from there."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from culturekit.pipeline.known_inputs import known_records
from culturekit.records.work import Engine, Progress, Work
from culturekit.stages.stage import Stage, check_expected, input_records, key_of
from culturekit.storage.manifest import read_manifest
from culturekit.storage.stage_folder import staging
from culturekit.storage.system_errors import explained_outside

__all__ = ["run_part"]

Result = TypeVar("Result")


def run_part(
    stage: Stage,
    final: Path,
    part: Callable[[Work], Result],
    *,
    engine: Engine,
    progress: Progress,
    wait: bool = False,
) -> Result | None:
    """Do a part of a stage where its run will go on; None, and nothing is done, where the stage is finished."""
    inputs = input_records(stage.inputs, known=known_records(stage, final))
    check_expected(stage, inputs)
    key = key_of(stage, inputs)
    with explained_outside(final), staging(final, stage=stage.kind, wait=wait) as place:
        manifest = read_manifest(final)
        if manifest is not None and manifest.key == key:
            return None
        place.open(key)
        return part(Work(dict(stage.inputs), place.out, place.scratch, engine, progress, stage.in_run))
