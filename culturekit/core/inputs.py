"""What a stage reads, as files by their roles; and from a finished stage back to what it was made from."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec
import polars as pl

from culturekit.core.digests import RUN_RECORD, Manifest, digest_file, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import MATCHES
from culturekit.core.table import Table
from culturekit.core.tables import read_together

# Imported when matches are read: what it knows of countries and of mappings is no business of this room.
CHECK_OF_MATCHES = "culturekit.scores.inputs:check_matches"


def roles(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind, in the order given: `values-0`, `values-1`."""
    return {f"{role}-{number}": path for number, path in enumerate(paths)}


def numbered(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind; a single one has no number."""
    return {role: paths[0]} if len(paths) == 1 else roles(role, paths)


@runtime_checkable
class Input(Protocol):
    """Something that a stage reads; it names the files whose content decides the result."""

    def files(self, role: str) -> dict[str, Path]:
        """Name every file by its role, given the role of the whole."""


@dataclass(frozen=True, slots=True)
class Files:
    """Files or folders of one kind: in the order given, or each by a role of its own."""

    paths: Sequence[Path] | Mapping[str, Path] = ()

    @property
    def places(self) -> list[Path]:
        """The paths without their roles."""
        return list(self.paths.values() if isinstance(self.paths, Mapping) else self.paths)

    def files(self, role: str) -> dict[str, Path]:
        """Name the files; a single one has no number."""
        return dict(self.paths) if isinstance(self.paths, Mapping) else numbered(role, self.paths)

    def together(self, table: Table) -> pl.DataFrame:
        """Read tables of one kind as one: `read_together`; matches are of one index, and countries in them alike."""
        whole = read_together(self.places, table)
        if table is MATCHES:
            module, _, name = CHECK_OF_MATCHES.partition(":")
            getattr(importlib.import_module(module), name)(whole, self.places)
        return whole

    def __bool__(self) -> bool:
        return bool(self.paths)


class Numbered(Files):
    """Files of one kind of which even a single one has a number."""

    __slots__ = ()

    def files(self, role: str) -> dict[str, Path]:
        """Name the files."""
        return dict(self.paths) if isinstance(self.paths, Mapping) else roles(role, self.paths)


def roles_of(given: object) -> dict[str, Path]:
    """Name every file that a stage reads: the fields of a dataclass of handles, paths, and paths that are not given."""
    return roles_among({each.name: getattr(given, each.name) for each in fields(given)})  # type: ignore[arg-type]


def roles_among(given: Mapping[str, object]) -> dict[str, Path]:
    """Name every file among values by its role: those of handles, and paths."""
    found: dict[str, Path] = {}
    for name, value in given.items():
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Input):
                files = one.files(name)
                if any(found.get(role, path) != path for role, path in files.items()):
                    raise UsageError(f"two inputs would be known as one: {name}", hint="Give each a name of its own.")
                found |= files
        if isinstance(value, Path):
            found[name] = value
    return found


class RunRecord(msgspec.Struct):
    """The parts of a run record that are read again.

    `inputs` are paths from the stage's folder, which hold when a tree is moved as a whole; `outside` are the
    full paths of what lay outside the run, which hold when the run alone is moved. `traces` have size and time of
    change, in nanoseconds, of large inputs by role; `plugins` the packages of plugins in use, by what they bring.
    """

    inputs: dict[str, str] = {}
    outside: dict[str, str] = {}
    traces: dict[str, tuple[int, int]] = {}
    plugins: dict[str, str] = {}

    def place_of(self, folder: Path, role: str) -> Path:
        """Say where an input of a stage folder was; raises KeyError where no place is known."""
        beside = (folder / self.inputs[role]).resolve()
        return beside if beside.exists() or role not in self.outside else Path(self.outside[role])


def manifest_of(folder: Path) -> Manifest:
    """Read the manifest of a finished stage."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise UsageError("not a finished stage folder", where=str(folder), expected="a folder with a manifest.json")
    return manifest


def upstream(folder: Path, role: str) -> Path:
    """Find an input of a stage where the stage's run found it, and make sure that it is still the same."""
    manifest = manifest_of(folder)
    if role not in manifest.inputs:
        raise UsageError(
            f"the stage has no input {role!r}", where=str(folder), expected=", ".join(sorted(manifest.inputs))
        )
    path = recorded(folder, role)
    expected = manifest.inputs[role].sha256
    if not path.exists():
        raise IntegrityError(
            f"the {role} of this stage is no longer where its run found it",
            where=str(path),
            expected=f"content with SHA-256 {expected}",
        )
    check_same(folder, role, path, expected, manifest_of(path).sha256 if path.is_dir() else digest_file(path))
    return path


def check_same(folder: Path, role: str, path: Path, expected: str, found: str) -> None:
    """Refuse an input that is not the one a stage was made from."""
    if found != expected:
        raise IntegrityError(
            f"the {role} is not the one that {folder.name} was made from", where=str(path),
            expected=f"SHA-256 {expected}", found=found, hint="Run the recipe again, so that everything fits together.",
        )  # fmt: skip


def check_together(root: Path, stages: Sequence[str]) -> None:
    """Make sure that the stages of a run were made from one another, as their manifests say.

    They are not where a run of a changed recipe was stopped early: what came after is from before the change.
    """
    for folder in [root / name for name in stages]:
        stages_read = {role: record for role, record in manifest_of(folder).inputs.items() if record.stage}
        for role, record in stages_read.items():
            path = recorded(folder, role)
            upper = path if path.parent == root.resolve() else path.parent
            if upper.parent == root.resolve():
                there = manifest_of(upper)
                hashes = {name: output.sha256 for name, output in there.outputs.items()}
                found = there.sha256 if upper == path else hashes.get(path.name, "no such file")
                check_same(folder, role, path, record.sha256, found)


def recorded(folder: Path, role: str) -> Path:
    """Read from the run record where an input was."""
    path = folder / RUN_RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRecord).place_of(folder, role)
    except (FileNotFoundError, KeyError, ValueError, RecursionError) as error:
        raise IntegrityError(f"the run record does not say where the {role} was", where=str(path)) from error
