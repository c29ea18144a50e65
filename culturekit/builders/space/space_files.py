"""A cultural space from a file: a table of ours, the public CUBE layout, or a few artifacts typed into a CSV file."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from culturekit.builders.space.public_cube import CONCEPTS, QID, Row, is_public_cube, read_public_cube
from culturekit.builders.space.space_ids import OF_A_LIST, id_of
from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.countries import countries
from culturekit.records.schemas import CSPACE, DROPS
from culturekit.storage.tables import read_table

__all__ = ["read_space"]

COLUMNS = ("name", "concept", "country")
OPTIONAL = ("continent", "id", "subconcept")


def read_space(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a cultural space, with what could not be read; of a file typed by hand everything must be readable."""
    if is_public_cube(path):
        public = read_public_cube(path)
        return public.space, public.drops
    space = read_typed(path) if path.suffix == ".csv" else read_table(path, CSPACE)
    return space, pl.DataFrame(schema=DROPS.schema)


def read_typed(path: Path) -> pl.DataFrame:
    """Read a CSV file with a name, a concept and a country in each row; a country is a name or an ISO code.

    Raises:
        ConfigError: all problems, each with its line.
    """
    problems: list[Problem] = []
    artifacts: dict[tuple[str, ...], dict[str, Any]] = {}
    called = {
        name.casefold(): Place(each.iso, each.name, each.continent)
        for each in countries().values()
        for name in (each.name, each.iso, each.iso3)
    }
    for line, row in rows_of(path):
        artifact = artifact_in(row, called)
        if isinstance(artifact, str):
            problems.append(Problem(artifact, str(path), line))
            continue
        key = artifact["concept"], artifact["country"], artifact["artifact_id"]
        if key in artifacts:
            problems.append(Problem(f"{row['name']} stands twice under this concept and country", str(path), line))
        artifacts[key] = artifact
    if problems:
        raise ConfigError(problems)
    return pl.DataFrame(list(artifacts.values()), schema=CSPACE.schema).sort(CSPACE.key)


def rows_of(path: Path) -> Iterator[tuple[int, Row]]:
    """Give each row that is not empty with its line, cells without white space around them.

    Raises:
        UsageError: there is no such file, it is no CSV file, or its columns are others.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, strict=True)
            columns = [name.strip().casefold() for name in next(reader, [])]
            check_columns(columns, path)
            for cells in reader:
                row: Row = dict(zip(columns, (cell.strip() for cell in cells), strict=False))
                if len(cells) > len(columns):
                    raise ConfigError(
                        [Problem(f"{len(cells)} cells under {len(columns)} columns", str(path), reader.line_num)]
                    )
                if any(row.values()):
                    yield reader.line_num, row
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise UsageError("not a CSV file in UTF-8", where=str(path), found=str(error)) from error


def check_columns(columns: Sequence[str], path: Path) -> None:
    """Make sure that the columns are those of a cultural space."""
    if not set(COLUMNS) <= set(columns) <= {*COLUMNS, *OPTIONAL} or len(set(columns)) < len(columns):
        raise UsageError(
            "the columns are not those of a cultural space",
            where=str(path),
            expected=f"{', '.join(COLUMNS)}, each once, with commas between them; {', '.join(OPTIONAL)} where known",
            found=", ".join(columns) or "nothing",
        )


class Place(NamedTuple):
    """A country as a row of the space names it."""

    iso: str
    name: str
    continent: str


def artifact_in(row: Row, called: Mapping[str, Place]) -> dict[str, Any] | str:
    """Make the artifact of a row, or say what is wrong with it."""
    missing = [name for name in COLUMNS if not row.get(name)]
    if missing:
        return f"there is no {' and no '.join(missing)}"
    name, stated, concept = (str(row.get(column) or "") for column in ("name", "id", "concept"))
    place = called.get(str(row["country"]).casefold()) or place_of(row)
    if place is None:
        known = "another country of ISO 3166 needs a column `continent` that says where it lies"
        return f"unknown country {row['country']!r}: expected its name or its code; {known}"
    if stated and not QID.match(stated) and not stated.startswith("LLM:"):
        return f"id {stated!r} is no item of Wikidata: expected such as Q13276, or none"
    qid = stated if QID.match(stated) else None
    return {
        "artifact_id": qid or id_of(stated, name),
        "qid": qid,
        "name": name,
        "concept": CONCEPTS.get(concept.casefold(), concept.casefold()),
        "subconcept": row.get("subconcept") or None,
        "country": place.iso,
        "country_name": place.name,
        "continent": place.continent,
        "source": OF_A_LIST,
        "popularity": None,
        "popularity_source": None,
        "path": [],
    }


def place_of(row: Row) -> Place | None:
    """Find a country of ISO 3166 of which the row says the continent."""
    import pycountry

    found = pycountry.countries.get(name=row["country"]) or pycountry.countries.get(alpha_2=row["country"])
    found = found or pycountry.countries.get(alpha_3=row["country"])
    continent = row.get("continent")
    return Place(found.alpha_2, found.name, continent) if found and continent else None
