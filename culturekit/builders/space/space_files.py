"""A cultural space from a file: a table of ours, the public CUBE layout, or artifacts typed into a CSV file."""

import difflib
import logging
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec
import polars as pl

from culturekit.builders.country_names import READ_AS, UNKNOWN, countries_in, near_to, read_as
from culturekit.builders.prompt_templates import templates
from culturekit.builders.space.public_cube import (
    CONCEPTS,
    NOTHING,
    QID,
    is_public_cube,
    read_public_cube,
    slug,
    space_row,
)
from culturekit.core.atomic import decoding
from culturekit.core.digests import digest
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.schemas import CSPACE, DROPS, OF_A_LIST, PROMPTS, has_no_item
from culturekit.core.spreadsheet_cells import SheetRow, read_sheet, sheet_bytes
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.kg.countries import ADDRESS, CARRIED, countries_text, own_countries, whole_world

# A cultural space of somebody else: names, concepts and countries as people write them, brought into our form.

logger = logging.getLogger(__name__)

LIST = "list"  # the source of artifacts that a person's file names

ONLY_BETWEEN = set(".,:;/\\'\"·")
# Signs that tell no two names apart, though others of their kind do, such as those of `C#` and `Wham!`.


def id_of(stated: str, name: str) -> str:
    """Give the identifier of an artifact without an item, from the one that its list states, or from its name.

    What a slug has no room for, and tells names apart, is told by a hash: signs as in `C++` and `C#`, and the vowels
    that some scripts write so.
    """
    if has_no_item(stated):
        return stated
    plain = " ".join(unicodedata.normalize("NFC", stated or name).casefold().split())
    kinds = ((sign, unicodedata.category(sign)) for sign in plain)
    telling = any(
        kind[0] == "M" or kind in {"Sm", "Sc", "So"} or (kind == "Po" and sign not in ONLY_BETWEEN)
        for sign, kind in kinds
    )
    short = slug(stated or name)
    return f"{OF_A_LIST}{short}" if short and not telling else f"{OF_A_LIST}{short}~{digest(plain)[:8]}"


def item_of(text: str) -> str | None:
    """Read the item that a text names, if it is nothing else."""
    item = ADDRESS.sub("", text.strip(), count=1).upper()
    return item if QID.fullmatch(item) else None


STAGE = "cspace.import"
READ = {"name", "concept", "domain", "country", "continent", "id", "subconcept"}
"""The columns that mean something; `domain` is what the public CUBE layout calls a concept."""

KEPT = {"duplicate", "column not read", "continent set aside", READ_AS}  # reasons for which nothing is lost but words

WARNED = 5  # rows that could not be read, and are quoted


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


def warn_of(drops: pl.DataFrame, path: Path) -> None:
    """Say which rows of a list could not be read, and which countries were read as one of several."""
    for detail in drops.filter(reason=READ_AS)["detail"]:
        logger.warning("%s: %s", path.name, detail)
    lost = drops.filter(~pl.col("reason").is_in(sorted(KEPT)))
    for key, reason, detail in lost.head(WARNED).select("key", "reason", "detail").iter_rows():
        logger.warning("%s, %s: left out, %s (%s)", path.name, key.partition(":")[0], reason, detail)
    if lost.height > WARNED:
        logger.warning("%s: %d more are left out: drops.parquet has them all", path.name, lost.height - WARNED)


def import_foreign(work: Work, path: Path, concept: str, columns: Mapping[str, str]) -> Outcome:
    """Write the space, the countries that it needs, and every row or country that is left out with its reason.

    Args:
        work: where to.
        path: a CSV, JSON, JSON Lines or Parquet file with the columns name, concept and country.
        concept: of rows that name none; may be empty.
        columns: which column of the file has a name, a concept or a country, where it is called otherwise.
    """
    found = read_list(path, concept, columns)
    warn_of(found.drops, path)
    if found.space.is_empty():
        raise UsageError(
            "no row names an artifact, a concept and a country", where=str(path), found=f"{len(found.rows)} rows"
        )
    write_table(work.out, CSPACE, found.space)
    reasons = write_drops(work.out, found.drops)
    used = found.space["country"].unique().sort()
    added = own_countries(used)
    (work.out / CARRIED).write_text(countries_text(added) if added else "countries: []\n", encoding="utf-8")
    counts = {
        CSPACE.name: found.space.height, DROPS.name: len(found.left), "rows": len(found.rows), "countries": len(used),
    }  # fmt: skip
    return Outcome(
        counts, reasons, {"caveat": f"Taken from {path.name}; who chose its artifacts, and how, is not known here."}
    )


def read_list(path: Path, concept: str = "", columns: Mapping[str, str] | None = None) -> Listed:
    """Read a list of artifacts, each under its countries, with what is left out of it."""
    rows = renamed(read_rows(path), columns or {}, path)
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
    left += [Left(None, READ_AS, words) for words in said_of(row.text("country") for row in rows)]
    return Listed(pl.DataFrame(list(artifacts.values()), schema=CSPACE.schema).sort(CSPACE.key), left, rows)


def said_of(cells: Iterable[str]) -> list[str]:
    """Say which names of countries were read as one of several, each once."""
    named = {one.text.casefold(): one for cell in dict.fromkeys(cells) if cell for one in countries_in(cell)}
    return [words for one in named.values() if (words := read_as(one))]


def artifacts_in(row: Row, concept: str) -> Iterator[dict[str, Any] | Left]:
    """Give an artifact for each country of a row, and what cannot be read."""
    name, stated, about = row.text("name"), row.text("id"), row.text("concept") or row.text("domain") or concept
    cells = {"name": name, "concept": about, "country": row.text("country")}
    lacking = [column for column, value in cells.items() if not value]
    if lacking:
        yield Left(row, f"no {lacking[0]}", "; ".join(map(str, row.cells.values())))
        return
    for named in countries_in(cells["country"]):
        if named.problem:
            near = near_to(named.text) if named.problem == UNKNOWN else ""
            yield Left(row, named.problem, f"{name}: {named.text}{near}", named.text)
            continue
        country, qid = whole_world()[named.iso], item_of(stated)
        artifact_id = qid or id_of("" if stated.casefold() == NOTHING else stated, name)
        yield {
            **space_row(artifact_id, qid, country, source=LIST),
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
        sheet = read_sheet(path)
        return [Row(number, row.cells, row.line) for number, row in enumerate(sheet, 1)]
    with decoding(path, f"not a {path.suffix} file"):
        if path.suffix.lower() == ".parquet":
            found: Any = pl.read_parquet(path).to_dicts()
        elif path.suffix.lower() == ".jsonl":
            found = [msgspec.json.decode(line) for line in path.read_bytes().splitlines() if line.strip()]
        elif path.suffix.lower() == ".json":
            found = msgspec.json.decode(path.read_bytes())
        else:
            raise UsageError("unknown kind of file", where=str(path), expected=".csv, .tsv, .json, .jsonl or .parquet")
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
            hint="--concept names that of all rows." if missing == ["concept"] else column_hint(missing[0], columns),
        )  # fmt: skip


def column_hint(missing: str, columns: Set[str]) -> str:
    """Offer the column that may be meant, of those that mean nothing."""
    unread = sorted(columns - READ)
    near = difflib.get_close_matches(missing, unread, n=1, cutoff=0.5) or unread[:1]
    asked = f"Did you mean {near[0]!r}? " if near else ""
    return f"{asked}Say so: culturekit cspace import --columns {missing}={near[0] if near else 'COLUMN'}"


def renamed(rows: Sequence[Row], columns: Mapping[str, str], path: Path) -> Sequence[Row]:
    """Call columns of a file what they mean."""
    there = {column for row in rows for column in row.cells}
    named = {stated.casefold(): meant for meant, stated in columns.items()}
    for meant, stated in columns.items():
        if meant not in READ or stated.casefold() not in there:
            problem = f"--columns {meant}={stated} names no column" if meant in READ else f"no column means {meant!r}"
            raise UsageError(problem, where=str(path), expected=", ".join(sorted(there if meant in READ else READ)))
    return [replace(row, cells={named.get(name, name): cell for name, cell in row.cells.items()}) for row in rows]


def read_space(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a cultural space, with what could not be read."""
    if is_public_cube(path):
        public = read_public_cube(path)
        return public.space, public.drops
    if path.suffix == ".csv":
        found = read_list(path)
        return found.space, found.drops
    return read_table(path, CSPACE), pl.DataFrame(schema=DROPS.schema)


# Prompts that a person typed: a CSV file of sentences and what each is about, or the names of their pictures.

BENCHMARK = "prompts"
NEEDED = ("prompt", "concept")
OPTIONAL = ("id", "country", "language")
COUNTED = re.compile(r"(?:[\s_.-]+|(?<=\D))\(?\d+(?:[-_.]\d+)*\)?$")
"""The number that tells the pictures of a prompt apart, at the end of a name."""


SHORTEST = 4  # letters of a word that tells a concept: `a` and `of` tell none


def is_typed(path: Path) -> bool:
    """Tell by its suffix whether a file of prompts was typed by hand."""
    return path.suffix.lower() == ".csv"


def read_typed_prompts(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read sentences, each with its concept, and what is left out: repetitions, and columns that mean nothing.

    Raises:
        ConfigError: all problems, each with its line.
    """
    rows = read_sheet(path, NEEDED)
    columns = sorted({name for row in rows for name in row.cells} - {*NEEDED, *OPTIONAL, ""})
    drops = [dropped(name, None, "column not read", None) for name in columns]
    found: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    for row in rows:
        read = prompt_of(row)
        if isinstance(read, str):
            problems.append(Problem(read, str(path), row.line))
        elif read["prompt_id"] not in found:
            found[read["prompt_id"]] = read
        elif found[read["prompt_id"]] == read:
            drops.append(dropped(f"line {row.line}", read["concept"], "duplicate", read["text"]))
        else:
            problems.append(
                Problem(f"the id {read['prompt_id']!r} stands for another prompt above", str(path), row.line)
            )
    if not rows:
        problems.append(Problem("there is no prompt: expected a row for each, under prompt,concept", str(path), 1))
    if problems:
        raise ConfigError(problems)
    drops += [dropped(words, None, READ_AS, words) for words in said_of(row.cells.get("country", "") for row in rows)]
    return pl.DataFrame(list(found.values()), schema=PROMPTS.schema), pl.DataFrame(drops, schema=DROPS.schema)


def prompt_of(row: SheetRow) -> dict[str, Any] | str:
    """Make a row of the table of prompts, or say what is wrong with it."""
    text, concept = row.cells["prompt"], row.cells["concept"].casefold()
    if not text or not concept:
        return f"there is no {'concept' if text else 'prompt'}"
    stated = row.cells.get("country", "")
    places = countries_in(stated) if stated else []
    if len(places) > 1 or any(one.problem for one in places):
        problem = places[0].problem if len(places) == 1 else "several countries"
        return f"{problem} {stated!r}: expected the name, code or item of one{near_to(stated)}"
    concept, country = CONCEPTS.get(concept, concept), places[0].iso if places else None
    about = {"text": text, "concept": concept, "country": country, "language": row.cells.get("language") or "en"}
    kind = "within-country" if country else "underspecified"
    prompt_id = row.cells.get("id") or f"{concept}-{digest(list(about.values()))[:10]}"
    return {"prompt_id": prompt_id, **about, "benchmark": BENCHMARK, "kind": kind, "template_id": "typed"}


def dropped(key: str, concept: str | None, reason: str, detail: str | None) -> dict[str, Any]:
    """Make a row of what is left out."""
    return {"key": key, "concept": concept, "stage": "read", "reason": reason, "detail": detail}


def sentences_in(names: Iterable[str]) -> list[str]:
    """Read the prompts off the names of their pictures: `Image of a bowl of soup__3.jpg`, or a folder for each."""
    found = set()
    for name in names:
        path = PurePosixPath(name)
        text = words_of(COUNTED.sub("", path.stem))
        found.add(text if any(map(str.isalpha, text)) else words_of(path.parent.name))
    return sorted(text for text in found if " " in text)


def words_of(name: str) -> str:
    """Write a part of a name as words."""
    return " ".join(re.sub(r"[_\s]+", " ", name).split())


def concept_of(text: str, concepts: Collection[str]) -> str | None:
    """Tell which concept of a space a sentence is about, by its words; None where none or several may be meant.

    A shipped prompt that leaves the artifact open tells its concept, then the name of one does, then a word that the
    shipped prompts of no other concept have, such as `food`.
    """
    if len(concepts) == 1:
        return next(iter(concepts))
    folded_text, shipped = text.casefold(), templates().underspecified
    words: Mapping[str, set[str]] = {
        name: {word for known in texts for word in known.casefold().split() if len(word) >= SHORTEST}
        for name, texts in shipped.items()
    }

    def tells(concept: str) -> bool:
        others = set().union(*(of for name, of in words.items() if name != concept))
        return any(word in folded_text for word in words.get(concept, set()) - others)

    named = [one for one in concepts if folded_text in map(str.casefold, shipped.get(one, ()))]
    named = named or [one for one in concepts if re.search(rf"\b{re.escape(one)}\b", folded_text)]
    named = named or [one for one in concepts if tells(one)]
    return named[0] if len(named) == 1 else None


def typed_bytes(rows: Sequence[tuple[str, str]]) -> bytes:
    """Write sentences and their concepts as a CSV file for a person to read and change."""
    return sheet_bytes(NEEDED, [dict(zip(NEEDED, row, strict=True)) for row in rows])


# A published cultural space, and prompts from a file, taken into a run as they are.

TAKEN = "The cultural space was taken from {name} as it was: how its artifacts were chosen is no part of this run."

SHOWN = 3  # so many prompts are named as examples in a message


def import_space(work: Work, path: Path) -> Outcome:
    """Write a cultural space that somebody released as a table of ours; what cannot be read is listed."""
    space, drops = read_space(path)
    if path.suffix == ".csv":
        warn_of(drops, path)
    if space.is_empty():
        raise UsageError(
            "the cultural space has no artifact",
            where=str(path),
            expected="at least one row that can be read",
            found=f"{drops.height:,} rows that cannot" if drops.height else "no rows",
        )
    write_table(work.out, CSPACE, space)
    reasons = write_drops(work.out, drops)
    return Outcome(counted(CSPACE.name, space, drops), reasons, {"caveat": TAKEN.format(name=path.name)})


def import_prompts(work: Work, path: Path, space_path: Path, kinds: Iterable[str]) -> Outcome:
    """Write prompts that somebody published as a table of ours, and say which of them the space knows nothing of.

    Raises:
        UsageError: no prompt is of the kinds that images were made for.
    """
    prompts, drops = read_prompts(path)
    if is_typed(path):
        warn_of(drops, path)
    wanted = sorted(kinds)
    if prompts.filter(pl.col("kind").is_in(wanted)).is_empty():
        raise UsageError(
            "no prompt is of the kinds that images.kinds asks for",
            where=str(path),
            expected=" or ".join(wanted),
            found=", ".join(prompts["kind"].unique().sort()) or "no prompts",
            hint="Name the kinds of the file in images.kinds.",
        )
    findings = list(strangers(prompts, read_table(space_path, CSPACE)))
    write_table(work.out, PROMPTS, prompts)
    reasons = write_drops(work.out, drops)
    notes = {"findings": findings} if findings else {}
    return Outcome(counted(PROMPTS.name, prompts, drops), reasons, notes)


def count_of_kinds(path: Path, kinds: Sequence[str]) -> int:
    """Count the prompts of some kinds in a file; of all, where none is named."""
    prompts, _ = read_prompts(path)
    return prompts.filter(pl.col("kind").is_in(list(kinds))).height if kinds else prompts.height


def read_prompts(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read prompts from our table, from the public layout or as typed by hand, with what could not be read."""
    if is_typed(path):
        return read_typed_prompts(path)
    if is_public_cube(path):
        public = read_public_cube(path)
        return public.prompts, public.drops
    return read_table(path, PROMPTS), pl.DataFrame(schema=DROPS.schema)


def strangers(prompts: pl.DataFrame, space: pl.DataFrame) -> Iterable[str]:
    """Say of which concepts and artifacts prompts speak that the space does not have."""
    for column, what in (("concept", "concepts"), ("artifact_id", "artifacts")):
        known = space[column].unique()
        unknown = prompts.filter(pl.col(column).is_not_null(), ~pl.col(column).is_in(known.implode()))
        if unknown.height:
            named = ", ".join(unknown[column].unique().sort().head(SHOWN))
            more = ", ..." if unknown[column].n_unique() > SHOWN else ""
            count = f"{unknown.height:,} prompts are" if unknown.height > 1 else "1 prompt is"
            yield f"{count} about {what} that the cultural space lacks: {named}{more}"


def counted(name: str, table: pl.DataFrame, drops: pl.DataFrame) -> dict[str, int]:
    """Count the rows of a table and of what is left out."""
    return {name: table.height, DROPS.name: drops.height}
