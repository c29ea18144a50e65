"""A cultural space of somebody else: names, concepts and countries as people write them, brought into our form."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from culturekit.builders.country_names import country_code, is_doubtful
from culturekit.builders.space.public_cube import CONCEPTS, NOTHING
from culturekit.builders.space.space_ids import ADDRESS, OF_A_LIST, id_of, item_of
from culturekit.builders.space.spreadsheet_rows import read_sheet_rows
from culturekit.errors import UsageError
from culturekit.kg.countries import Country, countries
from culturekit.kg.world import countries_text, whole_world
from culturekit.records.schemas import CSPACE, DROPS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import write_table

__all__ = ["COUNTRIES_FILE", "import_foreign"]

COUNTRIES_FILE = "countries.yaml"
"""The countries of a space that are not shipped with their items, for the key `countries_file` of a recipe."""

BETWEEN = (re.compile(r"[;|/\n]"), re.compile(","), re.compile(" and | & "))
"""What divides several countries of a cell, the surest first; what is a country as a whole is not divided."""

IN_BRACKETS = re.compile(r"([^()]+)\(([^()]+)\)")
PART_OF = {
    "AU": "CC CX HM NF", "CN": "HK MO TW", "DK": "FO GL", "FI": "AX", "FR": "BL GF GP MF MQ NC PF PM RE TF WF YT",
    "GB": "AI BM FK GG GI GS IM IO JE KY MS PN SH TC VG", "NL": "AW BQ CW SX", "NO": "BV SJ", "NZ": "CK NU TK",
    "US": "AS GU MP PR UM VI",
}  # fmt: skip
"""Codes of ISO 3166-1 for places behind which lists write a country, as in `Hong Kong, China`: they mean the place."""

NAMESAKES = {"BE": "LU", "GR": "MK", "IR": "AZ", "NG": "NE", "RO": "MD", "US": "GE WS"}
"""Countries that share their names with a region of another, as in `Georgia, USA`."""

UNKNOWN, DOUBTFUL = "unknown country", "country in doubt"
STAGE = "cspace.import"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the file: its number, from 1, and its cells; a cell of JSON may be a list."""

    number: int
    cells: Mapping[str, Any]

    def text(self, column: str) -> str:
        """Give a cell as text without white space around it."""
        value = self.cells.get(column)
        if value is None or value != value:  # NaN, as frames write what is not there
            return ""
        return "; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value).strip()


def import_foreign(work: Work, path: Path, concept: str) -> Outcome:
    """Write the space, the countries that it needs, and every row or country that is left out with its reason.

    Args:
        work: where to.
        path: a CSV, JSON, JSON Lines or Parquet file with the columns name, concept and country.
        concept: of rows that name none; may be empty.
    """
    rows = read_rows(path)
    check_columns(rows, path, concept)
    world = whole_world()
    places = Places({qid: iso for iso, country in world.items() for qid in country.qids})
    artifacts: dict[tuple[str, ...], dict[str, Any]] = {}
    drops: list[dict[str, Any]] = []
    for row in rows:
        for found in artifacts_in(row, concept, world, places):
            key = tuple(found.get(name, "") for name in CSPACE.key)
            if "reason" in found:
                drops.append(found)
            elif key in artifacts:
                drops.append(dropped(row, "duplicate", f"{found['name']} in {found['country_name']}", found["country"]))
            else:
                artifacts[key] = found
    if not artifacts:
        raise UsageError(
            "no row names an artifact, a concept and a country", where=str(path), found=f"{len(rows)} rows"
        )
    space = pl.DataFrame(list(artifacts.values()), schema=CSPACE.schema).sort(CSPACE.key)
    left_out = pl.DataFrame(drops, schema=DROPS.schema).sort(DROPS.key)
    write_table(work.out, CSPACE, space)
    write_table(work.out, DROPS, left_out)
    own = [world[iso] for iso in space["country"].unique().sort() if iso not in countries()]
    (work.out / COUNTRIES_FILE).write_text(countries_text(own) if own else "countries: []\n", encoding="utf-8")
    counts = {
        CSPACE.name: space.height,
        DROPS.name: left_out.height,
        "rows": len(rows),
        "countries": space["country"].n_unique(),
    }
    reasons = dict(left_out["reason"].value_counts().sort("reason").iter_rows())
    return Outcome(
        counts, reasons, {"caveat": f"Taken from {path.name}; who chose its artifacts, and how, is not known here."}
    )


def artifacts_in(row: Row, concept: str, world: Mapping[str, Country], places: "Places") -> Iterator[dict[str, Any]]:
    """Give an artifact for each country of a row, and rows of `drops` for what cannot be read."""
    name, stated, about = row.text("name"), row.text("id"), row.text("concept") or concept
    lacking = [column for column, value in (("name", name), ("concept", about)) if not value]
    lacking += [] if row.text("country") else ["country"]
    if lacking:
        yield dropped(row, f"no {lacking[0]}", "; ".join(map(str, row.cells.values())))
        return
    for said in places.in_cell(row.text("country")):
        country = world.get(said.iso)
        if country is None:
            yield dropped(row, said.problem or UNKNOWN, f"{name}: {said.text}", said.text)
            continue
        qid = item_of(stated)
        yield {
            "artifact_id": qid or id_of("" if stated.casefold() == NOTHING else stated, name),
            "qid": qid,
            "name": name,
            "concept": CONCEPTS.get(about.casefold(), about.casefold()),
            "subconcept": row.text("subconcept") or None,
            "country": country.iso,
            "country_name": country.name,
            "continent": country.continent,
            "source": OF_A_LIST,
            "popularity": None,
            "popularity_source": None,
            "path": [],
        }


@dataclass(frozen=True, slots=True)
class Said:
    """What a cell says of one country: its words, the code of it, or why there is none."""

    text: str
    iso: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """Reads cells of countries: names, codes and items, one or several."""

    by_item: Mapping[str, str]

    def in_cell(self, cell: str) -> list[Said]:
        """Divide a cell into what it calls countries, each once; what is one as a whole is not divided."""
        cell = ADDRESS.sub("", cell)
        found = self.code_of(cell)
        if found or is_doubtful(cell):
            return [Said(cell, found, "" if found else DOUBTFUL)]
        for between in BETWEEN:
            parts = [part.strip() for part in between.split(cell) if part.strip()]
            if between.pattern == "," and len(parts) == 2 and (place := self.place_in(cell, *parts)).text:
                return [place]
            if len(parts) > 1:
                each = list({one.iso or one.text: one for part in parts for one in self.in_cell(part)}.values())
                known = [one.problem != UNKNOWN for one in each]
                is_sure = any(known) if between is BETWEEN[0] else all(one.iso for one in each)
                return each if is_sure else [Said(cell, problem=UNKNOWN)]
        pair = IN_BRACKETS.fullmatch(cell)
        return [self.place_in(cell, *pair.groups(), alone=True) if pair else Said(cell, problem=UNKNOWN)]

    def place_in(self, cell: str, place: str, whole: str, *, alone: bool = False) -> Said:
        """Read a place with its country behind it; empty where they are two countries; `alone` they are none."""
        inner, outer = self.code_of(place), self.code_of(whole)
        if inner and (inner == outer or inner in PART_OF.get(outer, "").split()):
            return Said(cell, inner)
        both = {inner: outer, outer: inner}
        near = any(one in f"{PART_OF.get(other, '')} {NAMESAKES.get(other, '')}".split() for one, other in both.items())
        if inner and outer and (near or alone):
            return Said(cell, problem=DOUBTFUL)
        return Said(cell, problem=UNKNOWN) if alone else Said("")

    def code_of(self, text: str) -> str:
        """Find the code of one country, by its item, its name or a code; empty where nothing is called so."""
        item = item_of(text)
        return country_code(text) or "" if item is None else self.by_item.get(item, "")


def dropped(row: Row, reason: str, detail: str, country: str = "") -> dict[str, Any]:
    """Make a row of `drops`."""
    key = f"row {row.number:06}{f': {country}' if country else ''}"
    return {"key": key, "concept": None, "stage": STAGE, "reason": reason, "detail": detail}


def read_rows(path: Path) -> list[Row]:
    """Read a file by the end of its name.

    Raises:
        UsageError: it is not there, or is not what its name says.
    """
    if path.suffix.lower() in {".csv", ".tsv"}:
        return [Row(number, sheet.cells) for number, sheet in enumerate(read_sheet_rows(path, ("name", "country")), 1)]
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
    columns = {column for row in rows for column in row.cells}
    missing = [name for name in ("name", "country") if name not in columns]
    if not concept and "concept" not in columns:
        missing.append("concept")
    if missing:
        raise UsageError(
            f"there is no column {' and no column '.join(missing)}", where=str(path), expected="name, concept, country",
            found=", ".join(sorted(columns)) or "no rows",
            hint="--concept names that of all rows." if missing == ["concept"] else "",
        )  # fmt: skip
