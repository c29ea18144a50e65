"""What a run would be refused for: found before its first stage, hours before it is the turn of those that lack it."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.llm.ledger import journal_for
from culturekit.stages.known_inputs import known_records
from culturekit.stages.stage import Stage, input_records, key_of
from culturekit.storage.manifest import read_manifest

__all__ = ["refusals", "state_of"]


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


def refusals(stages: Sequence[Stage], workdir: Path) -> list[tuple[UsageError, list[str]]]:
    """Find what is missing, each once, with the stages that need it.

    A finished stage needs nothing any more; one that is next, and was asked for replies before, may have all of them.
    """
    missing: dict[str, tuple[UsageError, list[str]]] = {}
    for place, stage in enumerate(stages):
        try:
            stage.before()
        except UsageError as error:
            if needs_it(stages[:place], stage, workdir):
                missing.setdefault(str(error), (error, []))[1].append(stage.name)
    return list(missing.values())


def needs_it(earlier: Sequence[Stage], stage: Stage, workdir: Path) -> bool:
    """Tell whether a stage is still to be done, and would not find out at once."""
    undone: set[Path] = set()
    for one in earlier:
        if state_of(one, workdir / one.name, undone) != "done":
            undone.add(workdir / one.name)
    if state_of(stage, workdir / stage.name, undone) == "done":
        return False
    return bool(undone) or journal_for(workdir / stage.name) is None
