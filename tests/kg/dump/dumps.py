"""Small dumps in every form, cut into members anywhere, and their graphs; the truthy dump of the same entities."""

import bz2
import gzip
import json
import random
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pytest
import zstandard

from culturekit.core.atomic import clear_folder
from culturekit.core.schemas import ITEMS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table
from culturekit.kg.dump import read_dump
from culturekit.kg.dump.ingest import IngestOptions, ingest
from tests.conftest import HeardProgress, HereEngine

FORMS = (".json", ".json.gz", ".json.bz2", ".json.zst")


def packed(suffix: str, pieces: list[bytes]) -> bytes:
    """Compress pieces to members; what is not compressed is one."""
    if suffix.endswith(".gz"):
        return b"".join(gzip.compress(piece, mtime=0) for piece in pieces)
    if suffix.endswith(".bz2"):
        return b"".join(bz2.compress(piece) for piece in pieces)
    if suffix.endswith(".zst"):
        return b"".join(zstandard.ZstdCompressor(write_checksum=True).compress(piece) for piece in pieces)
    return b"".join(pieces)


def entity(number: int, rng: random.Random) -> bytes:
    label = {
        "en": {"language": "en", "value": f"{number} " + "".join(rng.choices("abcdefgh \u00e9", k=rng.randrange(90)))}
    }
    return json.dumps({"id": f"Q{number}", "type": "item", "labels": label, "claims": []}).encode()


def array(count: int, *, seed: int = 0) -> bytes:
    rng = random.Random(seed)
    return b"[\n" + b",\n".join(entity(number, rng) for number in range(1, count + 1)) + b"\n]\n"


def cut(content: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({place % len(content) for place in places} - {0}), len(content)]
    return [content[a:b] for a, b in pairwise(edges)]


def ingested(folder: Path, path: Path) -> tuple[pl.DataFrame, Outcome]:
    work = Work({}, folder / "out", folder / "scratch", HereEngine(), HeardProgress())
    clear_folder(work.out)
    clear_folder(work.scratch)
    outcome = ingest(work, [path], IngestOptions(max_malformed=1))
    return read_table(work.out / "items.parquet", ITEMS), outcome


def cut_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let small dumps be read in several ranges and runs."""
    for name, size in (("_SMALLEST_RANGE", 700), ("_LARGEST_RANGE", 700), ("_RUN_BYTES", 900)):
        monkeypatch.setattr(read_dump, name, size)


WD, WDT, WDNO = (f"http://www.wikidata.org/{part}/" for part in ("entity", "prop/direct", "prop/novalue"))
DATA = "https://www.wikidata.org/wiki/Special:EntityData/"
TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
XSD = "http://www.w3.org/2001/XMLSchema#"
TERMS = (
    ("labels", "http://www.w3.org/2000/01/rdf-schema#label"),
    ("labels", "http://www.w3.org/2004/02/skos/core#prefLabel"),
    ("labels", "http://schema.org/name"),
    ("descriptions", "http://schema.org/description"),
    ("aliases", "http://www.w3.org/2004/02/skos/core#altLabel"),
)


def truthy_lines(documents: Iterable[dict[str, Any]]) -> Iterator[str]:
    """Write each document: its page, its kind, its terms in every language, and its best statements."""
    blank = 0
    for document in documents:
        entity, page = f"<{WD}{document['id']}>", f"<{DATA}{document['id']}>"
        yield f"{page} <{TYPE}> <http://schema.org/Dataset> ."
        yield f"{page} <http://schema.org/about> {entity} ."
        yield f'{page} <http://schema.org/version> "42"^^<{XSD}integer> .'
        kind = {"item": "Item", "property": "Property"}[document["type"]]
        yield f"{entity} <{TYPE}> <http://wikiba.se/ontology#{kind}> ."
        for field, predicate in TERMS:
            for language, terms in (document.get(field) or {}).items():
                for term in terms if isinstance(terms, list) else [terms]:
                    yield f"{entity} <{predicate}> {text(term['value'])}@{bcp47(language)} ."
        for name, claims in (document.get("claims") or {}).items():
            for snak in best(claims):
                if snak["snaktype"] == "novalue":
                    yield f"{entity} <{TYPE}> <{WDNO}{name}> ."
                    continue
                blank += snak["snaktype"] == "somevalue"
                value = f"_:genid{blank}" if snak["snaktype"] == "somevalue" else written(snak["datavalue"], name)
                yield f"{entity} <{WDT}{name}> {value} ."


def best(claims: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Choose the main snaks of the best rank that is not deprecated."""
    ranks = [claim.get("rank", "normal") for claim in claims]
    wanted = "preferred" if "preferred" in ranks else "normal"
    return [claim["mainsnak"] for claim, rank in zip(claims, ranks, strict=True) if rank == wanted]


def written(data: dict[str, Any], name: str) -> str:
    """Write a value as the data type of its property asks for."""
    value = data["value"]
    if data["type"] == "wikibase-entityid":
        letter = {"item": "Q", "property": "P", "lexeme": "L"}[value["entity-type"]]
        return f"<{WD}{value.get('id') or letter + str(value['numeric-id'])}>"
    if data["type"] == "globecoordinate":
        globe = "" if value["globe"].endswith("/Q2") else f"<{value['globe']}> "
        point = f"{globe}Point({value['longitude']} {value['latitude']})"
        return f'"{point}"^^<http://www.opengis.net/ont/geosparql#wktLiteral>'
    if data["type"] == "monolingualtext":
        return f"{text(value['text'])}@{bcp47(value['language'])}"
    if name == "P18":
        return f"<http://commons.wikimedia.org/wiki/Special:FilePath/{quote(value, safe='')}>"
    return text(value) if isinstance(value, str) else text(str(value))


def text(value: str) -> str:
    """Quote a text as the dump does: all beyond ASCII is escaped."""
    short = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    return '"' + "".join(short.get(c) or (c if " " <= c <= "~" else escaped(c)) for c in value) + '"'


def escaped(character: str) -> str:
    """Write a character by its number."""
    return f"\\u{ord(character):04X}" if ord(character) < 0x10000 else f"\\U{ord(character):08X}"


def bcp47(code: str) -> str:
    """Write a language as RDF does: regions in capitals, scripts with one."""
    first, *rest = code.split("-")
    return "-".join([first, *(part.upper() if len(part) == 2 else part.title() for part in rest)])


def truthy_documents(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave in JSON documents what a truthy dump has: statements of best rank, no qualifiers, no pages."""
    kept = []
    for document in documents:
        claims = {
            name: [{"mainsnak": snak, "rank": "normal", "type": "statement"} for snak in best(statements)]
            for name, statements in (document.get("claims") or {}).items()
        }
        kept.append({**document, "claims": {name: some for name, some in claims.items() if some}, "sitelinks": {}})
    return kept
