"""What a stage reads, as typed handles: files by their roles."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Protocol, runtime_checkable

import polars as pl

from culturekit.core.errors import UsageError
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
