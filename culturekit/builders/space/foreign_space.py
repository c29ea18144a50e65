"""A cultural space of somebody else: names, concepts and countries as people write them, brought into our form."""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.builders.country_names import countries_in
from culturekit.builders.space.public_cube import CONCEPTS, NOTHING, QID, slug, space_row
from culturekit.builders.space.spreadsheet_rows import read_sheet_rows
from culturekit.errors import UsageError
from culturekit.kg.countries import CARRIED, countries_text, own_countries, whole_world
from culturekit.kg.qids import ADDRESS
from culturekit.records.schemas import CSPACE, DROPS
from culturekit.records.work import Outcome, Work
from culturekit.storage.digests import digest
from culturekit.storage.tables import write_drops, write_table

__all__ = ["KEPT", "import_foreign", "item_of", "read_list"]

OF_A_LIST = "list"
"""The source of artifacts that a person's file names."""

ONLY_BETWEEN = set(".,:;/\\'\"·")
"""Signs that tell no two names apart, though others of their kind do, such as those of `C#` and `Wham!`."""


def id_of(stated: str, name: str) -> str:
    """Give the identifier of an artifact without an item, from the one that its list states, or from its name."""
    return stated if stated.startswith("LLM:") and stated[4:] else f"LLM:{slug_of(stated or name)}"


def slug_of(name: str) -> str:
    """Make an identifier of a name; what it has no room for, and tells names apart, is told by a hash."""
    plain = " ".join(unicodedata.normalize("NFC", name).casefold().split())
    is_whole = slug(name) and not any(map(is_telling, plain))
    return slug(name) if is_whole else f"{slug(name)}~{digest(plain)[:8]}"


def is_telling(character: str) -> bool:
    """Tell the signs that can tell two names apart, as in `C++` and `C#`, and the vowels that some scripts write so."""
    kind = unicodedata.category(character)
    return kind[0] == "M" or kind in {"Sm", "Sc", "So"} or (kind == "Po" and character not in ONLY_BETWEEN)


def item_of(text: str) -> str | None:
    """Read the item that a text names, if it is nothing else."""
    item = ADDRESS.sub("", text.strip(), count=1).upper()
    return item if QID.fullmatch(item) else None


STAGE = "cspace.import"
READ = {"name", "concept", "domain", "country", "continent", "id", "subconcept"}
"""The columns that mean something; `domain` is what the public CUBE layout calls a concept."""

KEPT = {"duplicate", "column not read", "continent set aside"}
"""Reasons for which nothing is lost but words."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the file: its number, from 1, its cells, its line where there is one; a cell of JSON may be a list."""

    number: int
    cells: Mapping[str, Any]
    line: int = 0

    def text(self, column: str) -> str:
        """Give a cell as text without white space around it; several countries with semicolons, other lists as none."""
        value = self.cells.get(column)
        if column == "country" and isinstance(value, list | tuple):
            value = "; ".join(str(one) for one in value if one is not None)
        if value is None or value != value or isinstance(value, list | tuple | dict):  # NaN is what is not there
            return ""
        return str(value).strip()


@dataclass(frozen=True, slots=True)
class Left:
    """What is left out: where it stands, why, and what it says; the country, where that is what nobody knows."""

    row: Row | None
    reason: str
    detail: str
    country: str = ""

    def as_drop(self) -> dict[str, Any]:
        """Make a row of `drops`."""
        key = f"row {self.row.number:06}{f': {self.country}' if self.country else ''}" if self.row else self.detail
        return {"key": key, "concept": None, "stage": STAGE, "reason": self.reason, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Listed:
    """A list as it was read: its artifacts, what is left out, and its rows."""

    space: pl.DataFrame
    left: Sequence[Left]
    rows: Sequence[Row]

    @property
    def drops(self) -> pl.DataFrame:
        """What is left out, as a table."""
        return pl.DataFrame([one.as_drop() for one in self.left], schema=DROPS.schema).sort(DROPS.key)


def import_foreign(work: Work, path: Path, concept: str) -> Outcome:
    """Write the space, the countries that it needs, and every row or country that is left out with its reason.

    Args:
        work: where to.
        path: a CSV, JSON, JSON Lines or Parquet file with the columns name, concept and country.
        concept: of rows that name none; may be empty.
    """
    found = read_list(path, concept)
    if found.space.is_empty():
        raise UsageError(
            "no row names an artifact, a concept and a country", where=str(path), found=f"{len(found.rows)} rows"
        )
    write_table(work.out, CSPACE, found.space)
    reasons = write_drops(work.out, found.drops)
    used = found.space["country"].unique().sort()
    own = own_countries(used)
    (work.out / CARRIED).write_text(countries_text(own) if own else "countries: []\n", encoding="utf-8")
    counts = {
        CSPACE.name: found.space.height, DROPS.name: len(found.left), "rows": len(found.rows), "countries": len(used),
    }  # fmt: skip
    return Outcome(
        counts, reasons, {"caveat": f"Taken from {path.name}; who chose its artifacts, and how, is not known here."}
    )


def read_list(path: Path, concept: str = "") -> Listed:
    """Read a list of artifacts, each under its countries, with what is left out of it."""
    rows = read_rows(path)
    check_columns(rows, path, concept)
    artifacts: dict[tuple[str, ...], dict[str, Any]] = {}
    left = [
        Left(None, "column not read", column) for column in sorted({name for row in rows for name in row.cells} - READ)
    ]
    elsewhere: set[str] = set()
    for row in rows:
        for found in artifacts_in(row, concept):
            if isinstance(found, Left):
                left.append(found)
                continue
            key, stated = tuple(found[name] for name in CSPACE.key), row.text("continent")
            if key in artifacts:
                left.append(Left(row, "duplicate", f"{found['name']} in {found['country_name']}", found["country"]))
            if stated and stated.casefold() != found["continent"].casefold():
                elsewhere.add(f"{found['country_name']}: {stated}, in the table of countries {found['continent']}")
            artifacts.setdefault(key, found)
    left += [Left(None, "continent set aside", words) for words in sorted(elsewhere)]
    return Listed(pl.DataFrame(list(artifacts.values()), schema=CSPACE.schema).sort(CSPACE.key), left, rows)


def artifacts_in(row: Row, concept: str) -> Iterator[dict[str, Any] | Left]:
    """Give an artifact for each country of a row, and what cannot be read."""
    name, stated, about = row.text("name"), row.text("id"), row.text("concept") or row.text("domain") or concept
    said = {"name": name, "concept": about, "country": row.text("country")}
    lacking = [column for column, value in said.items() if not value]
    if lacking:
        yield Left(row, f"no {lacking[0]}", "; ".join(map(str, row.cells.values())))
        return
    for place in countries_in(said["country"]):
        if place.problem:
            yield Left(row, place.problem, f"{name}: {place.text}", place.text)
            continue
        country, qid = whole_world()[place.iso], item_of(stated)
        artifact_id = qid or id_of("" if stated.casefold() == NOTHING else stated, name)
        yield {
            **space_row(artifact_id, qid, country, source=OF_A_LIST),
            "name": name,
            "concept": CONCEPTS.get(about.casefold(), about.casefold()),
            "subconcept": row.text("subconcept") or None,
        }


def read_rows(path: Path) -> list[Row]:
    """Read a file by the end of its name.

    Raises:
        UsageError: it is not there, or is not what its name says.
    """
    if path.suffix.lower() in {".csv", ".tsv"}:
        sheet = read_sheet_rows(path, ("name", "country"))
        return [Row(number, row.cells, row.line) for number, row in enumerate(sheet, 1)]
    try:
        if path.suffix.lower() == ".parquet":
            found: Any = pl.read_parquet(path).to_dicts()
        elif path.suffix.lower() == ".jsonl":
            found = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
        elif path.suffix.lower() == ".json":
            found = msgspec.json.decode(path.read_bytes())
        else:
            raise UsageError("unknown kind of file", where=str(path), expected=".csv, .tsv, .json, .jsonl or .parquet")
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such file", where=str(path)) from error
    except (msgspec.DecodeError, pl.exceptions.PolarsError) as error:
        raise UsageError(f"not a {path.suffix} file", where=str(path), found=str(error)) from error
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise UsageError("not a list of rows", where=str(path), expected='[{"name": ..., "country": ...}, ...]')
    return [
        Row(number, {str(key).casefold(): value for key, value in row.items()}) for number, row in enumerate(found, 1)
    ]


def check_columns(rows: Sequence[Row], path: Path, concept: str) -> None:
    """Make sure that there are names, countries and a concept."""
    if not rows:
        raise UsageError("the list has no rows", where=str(path), expected="name, concept, country, and rows of them")
    columns = {column for row in rows for column in row.cells}
    missing = [name for name in ("name", "country") if name not in columns]
    if not concept and not columns & {"concept", "domain"}:
        missing.append("concept")
    if missing:
        raise UsageError(
            f"there is no column {' and no column '.join(missing)}", where=str(path), expected="name, concept, country",
            found=", ".join(sorted(columns)),
            hint="--concept names that of all rows." if missing == ["concept"] else "",
        )  # fmt: skip
