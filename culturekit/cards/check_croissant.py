"""croissant.json against the files and tables themselves, which `mlcroissant validate` does not look at."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import orjson

from culturekit.cards.card_tables import CardTable, FileFacts, described_files
from culturekit.cards.croissant import CROISSANT
from culturekit.cards.croissant_types import data_type, is_list
from culturekit.cards.differences import differences
from culturekit.cards.facts import Facts
from culturekit.cards.findings import CardFinding
from culturekit.cards.safe_paths import PLAIN_PATH, is_plain

__all__ = ["check_croissant", "check_croissant_paths", "read_croissant"]

Node: TypeAlias = Mapping[str, Any]


def read_croissant(folder: Path) -> Node | CardFinding:
    """Read the description, or say why it cannot be read."""
    try:
        value = orjson.loads((folder / CROISSANT).read_bytes())
    except FileNotFoundError:
        return CardFinding(CROISSANT, "file-missing", "a Croissant description", "no such file")
    except orjson.JSONDecodeError as error:
        return CardFinding(CROISSANT, "croissant-unreadable", "JSON", str(error))
    if not isinstance(value, dict):
        return CardFinding(CROISSANT, "croissant-unreadable", "a JSON object", type(value).__name__)
    return value


def nodes(value: Node, key: str) -> list[Node]:
    """List the objects under a key; what is none is found as a difference later."""
    found = value.get(key, [])
    return [node for node in (found if isinstance(found, list) else [found]) if isinstance(node, dict)]


def check_croissant_paths(described: Node, hashes: Mapping[str, str]) -> Iterator[CardFinding]:
    """Find paths that leave the folder, files that are not there, and hashes that are not theirs."""
    for node in nodes(described, "distribution"):
        name = str(node.get("@id", "a file without @id"))
        includes = node.get("includes", [])
        for pattern in includes if isinstance(includes, list) else [includes]:
            if not is_plain(pattern):
                yield CardFinding(CROISSANT, "path-leaves", PLAIN_PATH, f"{pattern!r} of {name}")
        if "contentUrl" in node:
            yield from check_content(node, name, hashes)


def check_content(node: Node, name: str, hashes: Mapping[str, str]) -> Iterator[CardFinding]:
    """Hold one file against its description."""
    path = node["contentUrl"]
    if not is_plain(path):
        yield CardFinding(CROISSANT, "path-leaves", PLAIN_PATH, f"{path!r} of {name}")
    elif path not in hashes:
        yield CardFinding(CROISSANT, "file-missing", f"the file {path!r} of {name}", "no such file")
    elif node.get("sha256") != hashes[path]:
        yield CardFinding(CROISSANT, "hash-differs", f"SHA-256 {hashes[path]} of {path}", repr(node.get("sha256")))


def check_croissant(described: Node, expected: Node, facts: Facts) -> Iterator[CardFinding]:
    """Hold record sets against tables, sizes against files, and all the rest against what the card would write."""
    yield from check_sizes(described, list(described_files(facts.tables, facts.others)))
    sets = {str(node.get("@id")): node for node in nodes(described, "recordSet")}
    for table in facts.tables:
        if table.columns and table.name not in sets:
            yield CardFinding(CROISSANT, "croissant-column", f"a record set {table.name!r}", ", ".join(sorted(sets)))
        elif table.columns:
            yield from check_fields(sets[table.name], table)
    for path, wanted, found in differences(orjson.loads(orjson.dumps(expected)), described):
        yield CardFinding(CROISSANT, "croissant-differs", f"{path}: {wanted}", found)


def check_sizes(described: Node, files: Sequence[FileFacts]) -> Iterator[CardFinding]:
    """Hold the sizes of files against their descriptions."""
    sizes = {file.path: f"{file.bytes} B" for file in files}
    for node in nodes(described, "distribution"):
        path = node.get("contentUrl")
        if isinstance(path, str) and path in sizes and node.get("contentSize") != sizes[path]:
            yield CardFinding(CROISSANT, "size-differs", f"{sizes[path]} of {path}", repr(node.get("contentSize")))


def check_fields(record_set: Node, table: CardTable) -> Iterator[CardFinding]:
    """Hold the fields of a record set against the columns of its table."""
    columns = {column.name: column for column in table.columns}
    named = set()
    for field in nodes(record_set, "field"):
        source = field.get("source")
        extract = source.get("extract") if isinstance(source, dict) else None
        name = extract.get("column") if isinstance(extract, dict) else None
        if not isinstance(name, str) or name not in columns:
            yield CardFinding(
                CROISSANT, "croissant-column", f"a column of {table.name}: {', '.join(columns)}", repr(name)
            )
            continue
        named.add(name)
        column = columns[name]
        wanted, found = (data_type(column), is_list(column)), (field.get("dataType"), bool(field.get("isArray", False)))
        if wanted != found:
            yield CardFinding(
                CROISSANT,
                "croissant-type",
                f"{table.name}/{name}: {type_text(*wanted)}",
                type_text(str(found[0]), found[1]),
            )
    for name in columns:
        if name not in named:
            yield CardFinding(CROISSANT, "croissant-column", f"a field for {table.name}/{name}", "none")


def type_text(kind: str, listed: bool) -> str:
    """Write a type."""
    return f"a list of {kind}" if listed else kind
