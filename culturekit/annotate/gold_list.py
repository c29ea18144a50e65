"""Gold pictures that a user lists: files beside the list, and the artifact or country that each is known to show."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from culturekit.builders.country_names import country_code
from culturekit.builders.folded_names import folded
from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.generation.folder.folder_list import FILE_COLUMNS, name_problem, plain_name
from culturekit.generation.folder.folder_list_forms import Row, bounded, rows_of
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.storage.digests import digest_file
from culturekit.storage.tables import read_table

__all__ = ["known_pictures", "listed_files"]

COLUMNS = ("artifact", "country")
SCHEMA = {
    name: pl.String()
    for name in ("image_id", "path", "sha256", "status", "model", "truth_artifact_id", "truth_country")
}  # fmt: skip

Place = Mapping[str, str]


def listed_files(path: Path) -> list[Path]:
    """Name the pictures of a list that are there; a table of images knows the hashes of its own."""
    if path.suffix == ".parquet":
        return []
    names = (str(row[file_column(row, path)]) for _, row in rows_of(path))
    files = (path.parent / plain_name(name) for name in names if not name_problem(name))
    return [file for file in files if file.is_file()]


def known_pictures(path: Path, space: pl.DataFrame, prompts: Path | None = None) -> pl.DataFrame:
    """Read a table of images, or a list of files with the name or id of an artifact, a country, or neither.

    Of a list the id of a picture is its file's name; a row without artifact and country shows no culture.

    Args:
        path: IMAGES with `truth_artifact_id`, or a list in CSV, TSV or JSON.
        space: conforms to CSPACE.
        prompts: PROMPTS that name what each of the images shows, where these do not say it themselves.

    Raises:
        ConfigError: all problems of a list, each with its line.
    """
    if path.suffix == ".parquet":
        pictures = read_table(path, IMAGES)
        if "truth_artifact_id" in pictures.columns or prompts is None:
            return pictures
        named = read_table(prompts, PROMPTS).select("prompt_id", truth_artifact_id="artifact_id").drop_nulls()
        return pictures.join(named, on="prompt_id", maintain_order="left")
    places = space.select("artifact_id", "name", "country").unique().sort(pl.all()).to_dicts()
    problems: list[Problem] = []
    found: dict[str, tuple[str | None, ...]] = {}
    for line, row in rows_of(path):
        name = str(row[file_column(row, path)] or "")
        known = shown(row, places)
        problem = file_problem(name, path.parent, found) or (known if isinstance(known, str) else "")
        if problem:
            problems.append(Problem(problem, str(path), line))
        elif not isinstance(known, str):
            file = plain_name(name)
            found[file] = file, file, digest_file(path.parent / file), "ok", "gold", *known
    if problems:
        raise ConfigError(bounded(problems, str(path)))
    return pl.DataFrame(list(found.values()), schema=SCHEMA, orient="row")


def file_column(row: Row, path: Path) -> str:
    """Find the column of the files; those of what they show must be there too."""
    column = next((name for name in FILE_COLUMNS if name in row), None)
    if column is None or not set(COLUMNS) <= set(row):
        raise UsageError(
            "the list does not say what gold pictures show", where=str(path),
            expected="columns image, artifact, country; both cells empty for no culture", found=", ".join(row),
        )  # fmt: skip
    return column


def file_problem(name: str, folder: Path, found: Mapping[str, object]) -> str:
    """Say why a picture cannot be taken; an empty text where it can."""
    if not name:
        return "names no file"
    if problem := name_problem(name):
        return problem
    if plain_name(name) in found:
        return f"{name!r} is listed already"
    return "" if (folder / plain_name(name)).is_file() else f"there is no file {name!r} beside the list"


def shown(row: Row, places: Sequence[Place]) -> tuple[str | None, str | None] | str:
    """Give the artifact and the country that a row names, or say what is wrong with it."""
    artifact, said = (str(row.get(name) or "").strip() for name in COLUMNS)
    country = country_code(said) if said else None
    if said and country is None:
        return f"unknown country {said!r}: expected its name or its code"
    if not artifact:
        return None, country
    named = [one for one in places if artifact == one["artifact_id"] or folded(artifact) == folded(one["name"])]
    ids = sorted({one["artifact_id"] for one in named if country in (None, one["country"])})
    if len(ids) == 1 and (country or len({one["country"] for one in named}) == 1):
        return ids[0], country
    if ids:
        return f"{artifact!r} is several artifacts, or one of several countries: give the id, and the country"
    where = f" of {said}" if named else ""
    return f"the space has no artifact {artifact!r}{where}: leave the cell empty, and the country alone is asked"
