"""How far a stage of a run is."""

from pathlib import Path

from culturekit.pipeline.known_inputs import known_records
from culturekit.stages.stage import Stage, input_records, key_of
from culturekit.storage.manifest import read_manifest

__all__ = ["state_of"]


def waits(stage: Stage, undone: set[Path]) -> bool:
    """Tell whether a stage reads what is still to be made."""
    return any(path in undone or path.parent in undone for path in stage.inputs.values())


def state_of(stage: Stage, folder: Path, undone: set[Path]) -> str:
    """Tell whether a stage is done, cut off, out of date, or not begun."""
    manifest = read_manifest(folder)
    begun = folder.with_name(f".{folder.name}.partial").joinpath("key").is_file()
    if waits(stage, undone):
        return "cut off" if begun else "to do" if manifest is None else "to check again"
    if manifest is not None and manifest.key == key_of(
        stage, input_records(stage.inputs, known=known_records(stage, folder))
    ):
        return "done"
    return "cut off" if begun else "to do" if manifest is None else "out of date"
