"""The finished stages of a run on disk, and where each found its inputs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from culturekit.errors import UsageError
from culturekit.storage.manifest import MANIFEST, RUN_RECORD, Manifest, read_manifest
from culturekit.verify.findings import Ledger

__all__ = ["RECIPE", "FinishedStage", "RunTree", "open_tree"]

CHECK = "folders"
RECIPE = "recipe.json"
"""The recipe as it was run, beside the stages."""

REPORT = "report"
"""The stage that a recipe record does not name."""


@dataclass(frozen=True, slots=True)
class FinishedStage:
    """A stage folder: its name in the run, its manifest, and by role the places where its run found its inputs."""

    name: str
    folder: Path
    manifest: Manifest
    places: Mapping[str, Path]


@dataclass(slots=True)
class RunTree:
    """A run, or one stage folder standing alone.

    Attributes:
        root: the folder that was named.
        stages: by name.
        alone: whether the root is itself the stage folder.
        sources: by stage and role, where an input was found with the content that the manifest states.
    """

    root: Path
    stages: dict[str, FinishedStage]
    alone: bool
    sources: dict[tuple[str, str], Path] = field(default_factory=dict)

    def of_kind(self, *kinds: str) -> Iterator[FinishedStage]:
        """List the stages of some kinds, by name."""
        for name in sorted(self.stages):
            if self.stages[name].manifest.stage in kinds:
                yield self.stages[name]

    def source(self, stage: FinishedStage, role: str) -> Path | None:
        """Give where an input lies, when it was found with the content that the manifest states."""
        return self.sources.get((stage.name, role))

    def inputs_of(self, stage: FinishedStage, begin: str = "") -> dict[str, Path] | None:
        """Give where the inputs lie whose roles begin so, by role; None where one was not found as it was."""
        roles = [role for role in sorted(stage.manifest.inputs) if role.startswith(begin)]
        found = {role: path for role in roles if (path := self.source(stage, role)) is not None}
        return found if len(found) == len(roles) else None

    def sources_of(self, stage: FinishedStage, *files: str) -> list[tuple[str, Path]]:
        """List the inputs of a stage that are files of some names, by role."""
        found = [(role, self.source(stage, role)) for role in sorted(stage.manifest.inputs)]
        return [(role, path) for role, path in found if path is not None and path.name in files]


class RecipeRecord(msgspec.Struct):
    """The part of a recipe record that names its stages."""

    stages: list[str]


class RunRecord(msgspec.Struct):
    """The part of a run record that says where inputs were."""

    inputs: dict[str, str] = {}
    outside: dict[str, str] = {}


def open_tree(root: Path, ledger: Ledger) -> RunTree:
    """Read the manifests of a run, or of one stage folder.

    Raises:
        UsageError: there is no finished stage.
    """
    if not root.is_dir():
        raise UsageError("there is no such folder", where=str(root), expected="the folder of a run")
    alone = (root / MANIFEST).is_file()
    folders = [root] if alone else sorted(path for path in root.iterdir() if path.is_dir() and path.name[0] != ".")
    stages: dict[str, FinishedStage] = {}
    for folder in folders:
        if folder.is_symlink() and not alone:
            ledger.broken(CHECK, folder.name, "a link leads out of the run", found=folder.readlink())
            continue
        with ledger.guarded(CHECK, f"{folder.name}/{MANIFEST}"):
            manifest = read_manifest(folder)
            if manifest is None:
                ledger.finding(CHECK, folder.name, "not a finished stage", expected=f"a {MANIFEST} in it")
                continue
            stages[folder.name] = FinishedStage(folder.name, folder, manifest, places_of(folder, manifest, ledger))
    if not alone:
        look_beside(root, ledger)
        for name in sorted(set(stages) - of_recipe(root, stages)):
            ledger.note(CHECK, name, "is of an earlier recipe, and no stage of this one reads it: not looked at")
            del stages[name]
    if not stages and not any(finding.severity == "broken" for finding in ledger.findings):
        raise UsageError("not the folder of a run", where=str(root), expected=f"folders with a {MANIFEST}, or one")
    ledger.count("finished stages", len(stages))
    return RunTree(root, stages, alone)


def of_recipe(root: Path, stages: Mapping[str, FinishedStage]) -> set[str]:
    """Name the stages of the recipe, and those that they read; all, where no recipe tells."""
    try:
        waiting = [*msgspec.json.decode((root / RECIPE).read_bytes(), type=RecipeRecord).stages, REPORT]
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return set(stages)
    found: set[str] = set()
    while waiting:
        stage = stages.get(waiting.pop())
        if stage is not None and stage.name not in found:
            found.add(stage.name)
            waiting += [name for place in stage.places.values() for name in (place.name, place.parent.name)]
    return found


def look_beside(root: Path, ledger: Ledger) -> None:
    """Look at what lies beside the stages: the recipe, and nothing else but what runs hide."""
    for path in sorted(root.iterdir()):
        if path.name.startswith(".") and path.name.endswith(".partial"):
            ledger.note(CHECK, path.name, "is a stage that was begun and not finished")
        elif path.is_file() and path.name != RECIPE and not path.name.startswith("."):
            ledger.finding(CHECK, path.name, "lies beside the stages and is of none of them")


def places_of(folder: Path, manifest: Manifest, ledger: Ledger) -> dict[str, Path]:
    """Read from the run record where inputs were; it is outside the hashes, so what lies there is hashed anew."""
    path = folder / RUN_RECORD
    try:
        record = msgspec.json.decode(path.read_bytes(), type=RunRecord)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        if manifest.inputs:
            ledger.finding(CHECK, f"{folder.name}/{RUN_RECORD}", f"the run record cannot be read ({error})")
        return {}
    places = {}
    for role, text in record.inputs.items():
        if "\0" in text + record.outside.get(role, ""):
            ledger.finding(CHECK, f"{folder.name}/{RUN_RECORD}", f"the place of {role!r} is one that no file can have")
            continue
        beside = (folder / text).resolve()
        places[role] = beside if beside.exists() or role not in record.outside else Path(record.outside[role])
    return places
