"""The public CUBE layout: a JSON array of rows with text in every field, as CUBE-1K was released.

| field | becomes |
|---|---|
| `id` | the artifact's QID; anything else is an artifact without one, `LLM:` and a slug of its name |
| `name` | its name, without white space around it |
| `country` | the country's code |
| `domain` | its concept; `landscapes` are landmarks |
| `prompt` | a prompt; of an art row also the subconcept, by the released template it fits |
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import polars as pl

from culturekit.builders.prompt_templates import templates
from culturekit.core.atomic import decoding, whole_file
from culturekit.core.digests import digest
from culturekit.core.errors import ConfigError, Problem
from culturekit.core.schemas import CSPACE, DROPS, KEPT, OF_A_MODEL, PROMPTS, has_no_item
from culturekit.core.spreadsheet_cells import json_text
from culturekit.core.tables import read_table
from culturekit.kg.countries import Country, countries

QID = re.compile(r"^Q[1-9][0-9]*$")
CONCEPTS = {"cuisine": "cuisine", "art": "art", "landmarks": "landmarks", "landscapes": "landmarks"}
NOTHING = "nan"
FIELDS = ("id", "name", "country", "domain", "prompt")

Row: TypeAlias = dict[str, str | None]
Key: TypeAlias = tuple[str, str, str]  # concept, country and artifact


@dataclass(frozen=True, slots=True)
class PublicCube:
    """A file in the public layout, as our tables: `cspace`, `prompts`, and what fits neither."""

    space: pl.DataFrame
    prompts: pl.DataFrame
    drops: pl.DataFrame


def is_public_cube(path: Path) -> bool:
    """Tell by its suffix whether a file is in the public layout."""
    return path.suffix == ".json"


def read_public_cube(path: Path) -> PublicCube:
    """Read a file in the public layout."""
    places = {country.name: country for country in countries().values()}
    artifacts: dict[Key, dict[str, Any]] = {}
    prompts: dict[str, dict[str, Any]] = {}
    drops = []
    for number, row in enumerate(read_rows(path)):
        artifact = artifact_or_reason(row, places)
        if isinstance(artifact, str):
            drops.append(drop(number, row, artifact))
            continue
        key = key_of(artifact)
        if key in artifacts:
            drops.append(drop(number, row, "artifact given twice"))
        artifacts.setdefault(key, artifact)
        if clean(row["prompt"]) != NOTHING:
            prompt = prompt_of(row, artifact)
            prompts.setdefault(prompt["prompt_id"], prompt)
    return PublicCube(
        pl.DataFrame(list(artifacts.values()), schema=CSPACE.schema),
        pl.DataFrame(list(prompts.values()), schema=PROMPTS.schema),
        pl.DataFrame(drops, schema=DROPS.schema),
    )


def keyed_rows(rows: Sequence[Row]) -> Iterator[tuple[Key | None, Row]]:
    """Give each row with the artifact it is about; None where it is about none."""
    places = {country.name: country for country in countries().values()}
    found = ((artifact_or_reason(row, places), row) for row in rows)
    return ((None if isinstance(artifact, str) else key_of(artifact), row) for artifact, row in found)


def artifact_or_reason(row: Row, places: Mapping[str, Country]) -> dict[str, Any] | str:
    """Make the row of the cultural space that a row is about, or say why there is none."""
    name, stated = clean(row["name"]), clean(row["id"])
    country, concept = places.get(clean(row["country"])), CONCEPTS.get(clean(row["domain"]))
    if not name:
        return "no name"
    if country is None or concept is None:
        return "unknown country" if country is None else "unknown domain"
    qid = stated if QID.match(stated) else None
    artifact_id = qid or (stated if has_no_item(stated) else f"{OF_A_MODEL}{slug(name)}")
    return {
        **space_row(artifact_id, qid, country, source="wikidata" if qid else "llm"),
        "name": name,
        "concept": concept,
        "subconcept": subconcept_of(clean(row["prompt"]), name, country) if concept == "art" else None,
    }


def key_of(row: Mapping[str, Any]) -> Key:
    """Name what a row of the space, or a prompt, is about."""
    return row["concept"], row["country"], row["artifact_id"]


def read_rows(path: Path) -> Sequence[Row]:
    """Read the rows, or say everything that makes the file none of this layout."""
    with decoding(path, "not in the public CUBE layout", expected="an array of rows of texts"):
        rows = msgspec.json.decode(path.read_bytes(), type=list[Row])
    missing = [
        Problem(f"row {number} lacks {', '.join(absent)}", str(path))
        for number, row in enumerate(rows)
        if (absent := [field for field in FIELDS if row.get(field) is None])
    ]
    if missing:
        raise ConfigError(missing)
    return rows


def clean(text: str | None) -> str:
    """Strip white space around a text."""
    return (text or "").strip()


def space_row(artifact_id: str, qid: str | None, country: Country, *, source: str) -> dict[str, Any]:
    """Begin a row of a cultural space of which nobody knows how it was found, or how popular it is."""
    return {
        "artifact_id": artifact_id, "qid": qid, "country": country.iso, "country_name": country.name,
        "continent": country.continent, "source": source, "path": [],
    }  # fmt: skip


def subconcept_of(prompt: str, name: str, country: Country) -> str | None:
    """Find the art template that a prompt fits; white space may differ."""
    for key, template in templates().artifact["released"].templates.items():
        concept, _, subconcept = key.partition("/")
        text = template.format(name=name, country=country.name, adjective=country.adjective)
        if concept == "art" and subconcept and "".join(text.split()) == "".join(prompt.split()):
            return subconcept
    return None


def slug(name: str) -> str:
    """Make an identifier of a name; letters keep their accents, which can tell two dishes apart."""
    folded = unicodedata.normalize("NFC", name).casefold()
    return re.sub(r"[^\w]+", "-", folded).strip("-")


def prompt_of(row: Row, artifact: Mapping[str, Any]) -> dict[str, Any]:
    """Make a prompt row; the text stands as it was released."""
    about = {name: artifact[name] for name in ("artifact_id", "country", "concept")}
    prompt_id = f"cube-{artifact['concept']}-{digest([row['prompt'], *about.values()])[:10]}"
    plain = {"benchmark": "cube", "kind": "cube", "language": "en", "template_id": "public"}
    return {"prompt_id": prompt_id, "text": row["prompt"], **about, **plain}


def drop(number: int, row: Row, reason: str) -> dict[str, Any]:
    """Say why a row is left out; its place tells it apart from others of its name."""
    return {"key": f"row {number}", "concept": row["domain"], "stage": "read", "reason": reason, "detail": row["name"]}


# Writing the public CUBE layout: a JSON array of rows with text in every field, lists as Python writes them.

STATEMENTS = ("P31", "P279", "P495", "P17", "P2012", "P361")
NO_STATEMENTS = pl.DataFrame(schema=dict.fromkeys(("concept", "artifact_id", *STATEMENTS), pl.String))
ROWS_AT_ONCE = 20_000


def write_public(path: Path, frames: Iterable[pl.DataFrame]) -> int:
    """Write rows of texts as they come, whole or not at all, and count them."""
    count = 0
    with whole_file(path) as file:
        for rows in chain.from_iterable(frame.iter_slices(ROWS_AT_ONCE) for frame in frames):
            cells = [pl.concat_str(pl.lit(f'\n  "{name}": '), json_text(name)) for name in rows.columns]
            written = rows.select(pl.concat_str(cells, separator=",")).to_series()
            lines = ",".join(f"\n {{{cells}\n }}" for cells in written)
            file.write(f"{',' if count else '['}{lines}".encode())
            count += rows.height
        file.write(b"\n]\n" if count else b"[]\n")
    return count


def public_rows(space: pl.DataFrame, prompts: pl.Series, statements: pl.DataFrame) -> pl.DataFrame:
    """Give a row per artifact and country of CUBE's concepts; other concepts have no place in this layout.

    Args:
        space: rows of artifacts.
        prompts: that of each row, null where there is none.
        statements: the cells of artifacts, by `concept` and `artifact_id`.
    """
    rows = space.with_columns(prompt=prompts).filter(pl.col("concept").is_in(list(CONCEPTS)))
    unnamed = pl.when(pl.col("qid").is_null()).then("name")
    given = unnamed.map_elements(lambda name: f"{OF_A_MODEL}{slug(name)}", return_dtype=pl.String)
    released = pl.when(pl.col("artifact_id") == given).then(pl.lit("LLM")).otherwise("artifact_id")
    cells = rows.join(statements, on=["concept", "artifact_id"], how="left", maintain_order="left")
    return cells.select(
        pl.col(*STATEMENTS).fill_null(NOTHING), "name", pl.col("prompt").fill_null(NOTHING),
        id=pl.coalesce("qid", released), country="country_name", domain="concept",
    ).select(*STATEMENTS, *FIELDS)  # fmt: skip


def statements_of(kept: pl.DataFrame) -> pl.DataFrame:
    """Write the statements of kept candidates as cells, empty for those that no graph knows."""
    quoted = pl.concat_str(pl.lit("'"), pl.element(), pl.lit("'"))  # as Python writes a list of items
    cells = {name: pl.format("[{}]", pl.col(name.lower()).list.eval(quoted).list.join(", ")) for name in STATEMENTS}
    return kept.filter(pl.col("qid").str.starts_with("Q")).select("concept", artifact_id="qid", **cells)


def statements_of_file(path: Path) -> pl.DataFrame:
    """Read the statement cells of a kept table, or of a file in the public layout as they stand there."""
    if not is_public_cube(path):
        return statements_of(read_table(path, KEPT))
    cells = [
        {"concept": key[0], "artifact_id": key[2], **{name: row.get(name) or NOTHING for name in STATEMENTS}}
        for key, row in keyed_rows(read_rows(path))
        if key is not None
    ]
    return pl.DataFrame(cells, NO_STATEMENTS.schema).unique(
        ["concept", "artifact_id"], keep="first", maintain_order=True
    )
