"""What a stage reads, as typed handles: files by their roles, and what the manifests beside them say."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias, runtime_checkable

import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.families.handles.country_labels import check_countries
from culturekit.families.handles.mapped_alike import check_mapped_alike
from culturekit.families.handles.public_files import numbered, prompts_table, roles
from culturekit.families.handles.vector_files import (
    LabelledVectors,
    gathered,
    labelled,
    one_identity_of_all,
    tables_of_images,
    vector_inputs,
)
from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.index.encoder import Vectors
from culturekit.records.schemas import MATCHES, PAIR_DISTANCES, PROMPTS, VALUES
from culturekit.records.tables import Table
from culturekit.storage.digests import digest_file
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table, read_together

__all__ = [
    "AnyImages",
    "AnyValues",
    "Files",
    "GroupedPrompts",
    "ImageTables",
    "Input",
    "NamedVectors",
    "Numbered",
    "PairFolders",
    "ProbabilityFolders",
    "ValueTables",
    "VectorFolder",
    "VectorFolders",
    "asked",
    "check_apart",
    "roles_of",
]


@runtime_checkable
class Input(Protocol):
    """Something that a stage reads; it names the files whose content decides the result."""

    def files(self, role: str) -> dict[str, Path]:
        """Name every file by its role, given the role of the whole."""
        ...


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
            check_countries(whole, where=self.places)
            check_mapped_alike(self.places)
        return whole

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self.paths)


class Numbered(Files):
    """Files of one kind of which even a single one has a number."""

    __slots__ = ()

    def files(self, role: str) -> dict[str, Path]:
        """Name the files."""
        return dict(self.paths) if isinstance(self.paths, Mapping) else roles(role, self.paths)


class ImageTables(Files):
    """Tables of images."""

    __slots__ = ()

    def table(self, prompts: Path | None, scratch: Path) -> pl.DataFrame:
        """Read all as one; concept and country of their prompts fill in what they do not say."""
        return tables_of_images(self.places, prompts, scratch)


class ValueTables(Numbered):
    """Tables of the values behind scores."""

    __slots__ = ()

    def table(self) -> pl.DataFrame:
        """Read all as one."""
        return self.together(VALUES)


class VectorFolders(Files):
    """Folders of vectors, all of one encoder."""

    __slots__ = ()

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids of each folder."""
        return vector_inputs(Files.files(self, role))

    @property
    def encoder(self) -> dict[str, Any]:
        """What made the vectors, as their manifests say; empty where there are none."""
        return one_identity_of_all(self.places) if self else {}

    def vectors(self, scratch: Path) -> LabelledVectors | None:
        """Open all as one, in a folder for what has to be copied; None where there are none."""
        return gathered(self.places, scratch / "vectors.npy") if self else None


class ProbabilityFolders(VectorFolders):
    """Folders of class probabilities, in the form of vectors; they may stand in a folder of features, beside those."""

    __slots__ = ()

    def vectors(self, scratch: Path) -> LabelledVectors | None:
        """Open all as one."""
        return gathered(self.places, scratch / "probs.npy", role="probs") if self else None


@dataclass(frozen=True, slots=True)
class VectorFolder:
    """One folder of vectors."""

    folder: Path

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids."""
        return vector_inputs({role: self.folder})

    def vectors(self) -> LabelledVectors:
        """Open it."""
        return labelled(self.folder)


@dataclass(frozen=True, slots=True)
class NamedVectors:
    """One folder of vectors whose ids are looked up, such as image ids or captions."""

    folder: Path

    def files(self, role: str) -> dict[str, Path]:
        """Name vectors and ids."""
        return {f"{role}-values": self.folder / "vectors.npy", f"{role}-ids": self.folder / "ids.parquet"}

    def vectors(self) -> tuple[Vectors, list[str]]:
        """Open it."""
        return load_vectors(self.folder)

    @property
    def encoder(self) -> str:
        """What made the vectors, in a few words, where the manifest knows it."""
        manifest = read_manifest(self.folder)
        identity = {} if manifest is None else manifest.notes.get("identity", {})
        return " ".join(str(identity[part]) for part in ("name", "revision") if identity.get(part))


class PairFolders(Files):
    """Folders of the stage that measures how far pictures are apart."""

    __slots__ = ()

    def files(self, role: str) -> dict[str, Path]:
        """Name the table of each folder."""
        named = Files.files(self, role)
        return {role: folder / f"{PAIR_DISTANCES.name}.parquet" for role, folder in named.items()}

    def table(self) -> pl.DataFrame | None:
        """Read all as one; None where there are none."""
        tables = [read_table(path, PAIR_DISTANCES) for path in self.files("").values()]
        return pl.concat(tables) if tables else None

    def check_images(self, images: Files) -> None:
        """Refuse distances that were measured between pictures of other tables of images, as their manifests say."""
        given = {digest_file(path) for path in images.places} if self else set()
        for folder in self.places:
            manifest = read_manifest(folder)
            table = None if manifest is None else manifest.inputs.get("images")
            if table is not None and table.sha256 not in given:
                raise UsageError(
                    "the distances are between other images", where=str(folder), found=f"of another {table.name}",
                    expected="those of the tables of images, as `score pairs` was given them",
                    hint="Give the tables it was given, or measure again.",
                )  # fmt: skip

    @property
    def measures(self) -> dict[str, Any]:
        """What measured, by name: everything that the manifests say of it; one name is one measure."""
        found: dict[str, Any] = {}
        for folder in self.places:
            manifest = read_manifest(folder)
            notes = {} if manifest is None else manifest.notes
            own = dict(notes.get("parameters", {}))
            if not own:
                continue
            own["licence"] = str(notes.get("licence", ""))
            known = found.setdefault(str(own["name"]), own)
            if known != own:
                differ = [key for key in {**known, **own} if known.get(key) != own.get(key)]
                raise UsageError(
                    "the distances were measured in different ways", where=", ".join(map(str, self.places)),
                    expected=", ".join(f"{key} {known.get(key)}" for key in differ),
                    found=", ".join(f"{key} {own.get(key)}" for key in differ), hint="Measure all with one.",
                )  # fmt: skip
        return found


AnyImages: TypeAlias = Annotated[Numbered, Field(description="Table of images; repeat it for more than one.")]
AnyValues: TypeAlias = Annotated[
    ValueTables, Field(description="Table of values beside scores; repeat it for more than one.")
]
GroupedPrompts: TypeAlias = Annotated[Path, Field(description="Table of their prompts, with the group of each.")]


def roles_of(given: object) -> dict[str, Path]:
    """Name every file that a stage reads: the fields of a dataclass of handles, paths, and paths that are not given."""
    found: dict[str, Path] = {}
    for each in fields(given):  # type: ignore[arg-type]
        value = getattr(given, each.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Input):
                files = one.files(each.name)
                if any(found.get(role, path) != path for role, path in files.items()):
                    raise UsageError(
                        f"two inputs would be known as one: {each.name}", hint="Give each a name of its own."
                    )
                found |= files
        if isinstance(value, Path):
            found[each.name] = value
    return found


def asked(prompts: Path, scratch: Path) -> pl.DataFrame:
    """Read prompts, a table of ours or a file in the public layout."""
    table = prompts_table(prompts, scratch)
    read_table(table, PROMPTS)  # refuses what is no such table; columns of one's own, such as pairs, stay
    return pl.read_parquet(table)


def check_apart(what: str, paths: Sequence[Path]) -> None:
    """Refuse a file that is given twice where two things are held against each other."""
    files = [path.resolve() for path in paths]
    if twice := [str(path) for path, file in zip(paths, files, strict=True) if files.count(file) > 1]:
        raise UsageError(
            f"{what} is compared with itself", expected="another file on each side", found=" and ".join(twice)
        )
