"""Inputs of scores: files by role, read and checked, with what their manifests say."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.arrays import load_array, save_rows
from culturekit.core.digests import digest_file, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.schemas import IMAGES, MATCHES, PAIR_DISTANCES, PROMPTS, VALUES
from culturekit.core.stage import NOT_COMPARABLE, Outcome
from culturekit.core.tables import check_rows, prompts_table, read_table

if TYPE_CHECKING:
    from culturekit.generation.comparability import Traits
    from culturekit.index.encoder import Vectors

# Matches as scores take them: countries by their codes, or by their names, throughout.

# How the code of a country looks; most tables have nothing else, and then no name is looked up
CODE = re.compile("[A-Z]{2}")


def tables_of_matches(paths: Sequence[Path]) -> list[pl.DataFrame]:
    """Read each table of matches; in all of them countries have codes, or all have names."""
    tables = [read_table(path, MATCHES) for path in paths]
    check_countries(*tables, where=paths)
    return tables


def check_matches(matches: pl.DataFrame, paths: Sequence[Path]) -> None:
    """Refuse matches of several tables that no score may rest on together."""
    from culturekit.index.matching.comparison import check_mapped_alike

    check_countries(matches, where=paths)
    check_mapped_alike(paths)


def check_countries(*matches: pl.DataFrame, where: Sequence[Path]) -> None:
    """Refuse matches that put a country on two continents, or that have codes for countries and the name of one.

    That name would be a label of its own.
    """
    lies = [table.select("country", "continent") for table in matches] or [pl.DataFrame()]
    check_rows(pl.concat(lies), MATCHES, ", ".join(map(str, where)))
    places = sorted({name for table in matches for name in table["country"].drop_nulls().unique()})
    if all(map(CODE.fullmatch, places)):
        return

    from culturekit.builders.country_names import country_code

    codes = {name: country_code(name) for name in places}
    named = [name for name in places if codes[name] not in (None, name)]
    if named and any(code == name for name, code in codes.items()):
        raise UsageError(
            "matches name a country, and have codes for others", where=", ".join(map(str, where)),
            expected=str(codes[named[0]]), found=repr(named[0]), hint="Write codes in all rows, or names in all.",
        )  # fmt: skip


# Folders of vectors as inputs of a score: their files, what made them, and where images belong.

ROWS_AT_ONCE = 16_384

UNKNOWN = {"name": "unknown"}  # Of vectors whose folder has no manifest with an encoder


@dataclass(frozen=True, slots=True)
class LabelledVectors:
    """Vectors, float (n, dim), and what each belongs to: `ITEM`, or `ITEM#k` for its token or object k."""

    vectors: NDArray[np.floating]
    ids: Sequence[str]


def vector_inputs(folders: Mapping[str, Path | None]) -> dict[str, Path]:
    """Name the files of each folder by its role; a folder that is not given has none."""
    return {
        f"{role}-{part}": path
        for role, folder in folders.items()
        if folder is not None
        for part, path in {"vectors": vectors_in(folder, role), "ids": folder_of(folder) / "ids.parquet"}.items()
    }


def folder_of(path: Path) -> Path:
    """Give the folder of vectors, or of a file in it."""
    return path.parent if path.suffix == ".npy" else path


def vectors_in(folder: Path, role: str) -> Path:
    """Name the file of vectors; class probabilities may stand in a folder of features, beside those."""
    if folder.suffix == ".npy":
        return folder
    beside = folder / "probabilities.npy"
    return beside if role.startswith("probs") and beside.is_file() else folder / "vectors.npy"


def labelled(folder: Path, *, role: str = "") -> LabelledVectors:
    """Open a folder of vectors, or the class probabilities in it: the folder, or the file with them."""
    from culturekit.index.embedding.embedding import load_vectors

    vectors, ids = load_vectors(folder_of(folder))
    path = vectors_in(folder, role)
    return LabelledVectors(vectors if path.name == "vectors.npy" else probabilities_in(path, len(ids)), ids)


def probabilities_in(path: Path, rows: int) -> "Vectors":
    """Open class probabilities."""
    probabilities: Vectors = load_array(path)
    if probabilities.ndim != 2 or len(probabilities) != rows:
        raise IntegrityError("the probabilities and their ids do not belong together", where=str(path),
                             expected=f"({rows}, classes)", found=str(probabilities.shape))  # fmt: skip
    return probabilities


def identity_behind(folder: Path) -> dict[str, Any]:
    """Say what made the vectors of a folder: everything that its manifest says of the encoder."""
    manifest = read_manifest(folder_of(folder))
    identity = {} if manifest is None else manifest.notes.get("identity", {})
    return dict(identity) or dict(UNKNOWN)


def one_identity(first: Path, second: Path) -> dict[str, Any]:
    """Give the encoder of two folders; two that are known must be one."""
    identity, other = identity_behind(first), identity_behind(second)
    if UNKNOWN not in (identity, other) and identity != other:
        differ = [key for key in {**identity, **other} if identity.get(key) != other.get(key)]
        raise UsageError(
            "the vectors were made by different encoders", where=f"{first}, {second}",
            expected=", ".join(f"{key} {identity.get(key)}" for key in differ),
            found=", ".join(f"{key} {other.get(key)}" for key in differ), hint="Encode both with one.",
        )  # fmt: skip
    return other if identity == UNKNOWN else identity


def one_identity_of_all(folders: Sequence[Path]) -> dict[str, Any]:
    """Give the encoder of all folders; those that are known must be one."""
    known = [folder for folder in folders if identity_behind(folder) != UNKNOWN]
    for first, other in pairwise(known):
        one_identity(first, other)
    return identity_behind(known[0]) if known else dict(UNKNOWN)


def gathered(folders: Sequence[Path], scratch: Path, *, role: str = "") -> LabelledVectors:
    """Open the vectors of several folders as one; more than one are copied into a scratch file, not into memory."""
    parts = [labelled(folder, role=role) for folder in folders]
    if len(parts) == 1:
        return parts[0]
    widths = {part.vectors.shape[1] for part in parts}
    if len(widths) > 1:
        raise UsageError(
            "the vectors are not of one length", where=", ".join(map(str, folders)), expected="one encoder",
            found=" and ".join(map(str, sorted(widths))),
        )  # fmt: skip
    ids = [name for part in parts for name in part.ids]
    blocks = (
        part.vectors[start : start + ROWS_AT_ONCE] for part in parts for start in range(0, len(part.ids), ROWS_AT_ONCE)
    )
    save_rows(scratch, blocks, shape=(len(ids), widths.pop()), dtype=np.float32)
    return LabelledVectors(np.load(scratch, mmap_mode="r", allow_pickle=False), ids)


def tables_of_images(paths: Sequence[Path], prompts: Path | None, scratch: Path) -> pl.DataFrame:
    """Read tables of images as one, with what places an image; an image in two of them is a mistake."""
    names = [*IMAGES.columns, "concept", "country", "group"]
    tables = [images_with_prompts(path, prompts, scratch) for path in paths]
    whole = pl.concat([table.select(name for name in names if name in table.columns) for table in tables],
                      how="diagonal")  # fmt: skip
    twice = whole.filter(pl.col("image_id").is_duplicated())
    if twice.height:
        raise UsageError(
            "two tables have the same image", where=", ".join(map(str, paths)), found=repr(twice["image_id"].sort()[0]),
            hint="Give each table once.",
        )  # fmt: skip
    return whole


def images_with_prompts(images: Path, prompts: Path | None, scratch: Path) -> pl.DataFrame:
    """Read a table of images; concept, country and group of their prompts fill in what it does not say."""
    table = read_table(images, IMAGES)
    if prompts is None:
        return table
    prompt_rows = read_table(prompts_table(prompts, scratch), PROMPTS).select(
        "prompt_id", asked_concept="concept", asked_country="country", asked_group="group"
    )
    joined = table.join(prompt_rows, on="prompt_id", how="left", maintain_order="left")
    for name in ("concept", "country", "group"):
        known = [pl.col(name)] if name in table.columns else []
        joined = joined.with_columns(pl.coalesce(*known, f"asked_{name}").alias(name))
    return joined.drop("^asked_.*$")


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

    def vectors(self) -> "tuple[Vectors, list[str]]":
        """Open it."""
        from culturekit.index.embedding.embedding import load_vectors

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
            params = dict(notes.get("parameters", {}))
            if not params:
                continue
            params["licence"] = str(notes.get("licence", ""))
            known = found.setdefault(str(params["name"]), params)
            if known != params:
                differ = [key for key in {**known, **params} if known.get(key) != params.get(key)]
                raise UsageError(
                    "the distances were measured in different ways", where=", ".join(map(str, self.places)),
                    expected=", ".join(f"{key} {known.get(key)}" for key in differ),
                    found=", ".join(f"{key} {params.get(key)}" for key in differ), hint="Measure all with one.",
                )  # fmt: skip
        return found


AnyImages: TypeAlias = Annotated[Numbered, Field(description="Table of images; repeat it for more than one.")]
AnyValues: TypeAlias = Annotated[
    ValueTables, Field(description="Table of values beside scores; repeat it for more than one.")
]
GroupedPrompts: TypeAlias = Annotated[Path, Field(description="Table of their prompts, with the group of each.")]


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


# Whether the images that are scored together were made alike, noted beside the scores.


def traits_in(images: Sequence[Path]) -> "dict[str, Traits]":
    """Read the traits of every model in tables of images."""
    return traits_by_model([read_table(path, IMAGES) for path in images])


def traits_by_model(images: Sequence[pl.DataFrame]) -> "dict[str, Traits]":
    """Read the traits of every model; what one model's tables say is taken together."""
    from culturekit.generation.comparability import traits_of

    every = [table.select(list(IMAGES.schema)) for table in images if table.height]
    models = pl.concat(every).partition_by("model", as_dict=True) if every else {}
    return {str(key[0]): traits_of(table) for key, table in sorted(models.items())}


def noted(outcome: Outcome, traits: "Mapping[str, Traits]") -> Outcome:
    """Add to an account what is not comparable; nothing where all images were made alike."""
    from culturekit.generation.comparability import not_comparable

    apart = not_comparable(traits)
    return replace(outcome, notes={**outcome.notes, NOT_COMPARABLE: apart}) if apart else outcome
