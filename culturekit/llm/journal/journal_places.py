"""Where the journals of a run lie, finished or not."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.errors import UsageError
from culturekit.llm.journal.journal_file import FILE
from culturekit.storage.manifest import JOURNAL

__all__ = ["JournalPlace", "journals_below"]

PARTIAL = ".partial"
PREVIOUS = ".previous"


@dataclass(frozen=True, slots=True)
class JournalPlace:
    """A journal, the stage it belongs to, and whether that stage is finished."""

    stage: str
    path: Path
    finished: bool


def journals_below(folders: Sequence[Path]) -> list[JournalPlace]:
    """Find the journals of runs, of stages, or of folders full of these, in the order of their stages' names.

    The journal of an unfinished stage began as a copy of the finished one's, so only the former is listed.
    """
    found: dict[Path, JournalPlace] = {}
    for folder in folders:
        if not folder.exists():
            partial = folder.with_name(f".{folder.name}{PARTIAL}")
            if not partial.exists():
                raise UsageError("there is no such folder", where=str(folder))
        for path in files_below(folder):
            place = place_of(path, folder)
            stage = stage_folder(path)
            if stage not in found or found[stage].finished:
                found[stage] = place
    if not found:
        raise UsageError(
            "no journal of replies lies below",
            where=" ".join(str(folder) for folder in folders),
            expected=f"a folder {JOURNAL} with {FILE}, which a stage that asks a paid model writes",
            hint="Name the folder of a run, or the --out of a stage.",
        )
    return sorted(found.values(), key=lambda place: (place.stage, place.path))


def files_below(folder: Path) -> list[Path]:
    """List the files of journals in a folder, and in the unfinished one beside it."""
    beside = folder.absolute().with_name(f".{folder.absolute().name}{PARTIAL}")
    paths = [folder] if folder.name == FILE else [*folder.rglob(FILE), *beside.rglob(FILE)]
    return [path for path in paths if path.parent.name == JOURNAL and not path.parent.parent.name.endswith(PREVIOUS)]


def stage_folder(path: Path) -> Path:
    """Give the folder in which the stage of a journal is, or will be, finished."""
    for parent in path.absolute().parents:
        if parent.name.startswith(".") and parent.name.endswith(PARTIAL):
            return parent.with_name(parent.name[1 : -len(PARTIAL)])
    return path.absolute().parent.parent


def place_of(path: Path, folder: Path) -> JournalPlace:
    """Describe a journal by its stage, as seen from the folder that was named."""
    stage = stage_folder(path)
    above = folder.absolute()
    name = stage.relative_to(above).as_posix() if stage != above and stage.is_relative_to(above) else stage.name
    return JournalPlace(name, path, finished=stage == path.absolute().parent.parent)
