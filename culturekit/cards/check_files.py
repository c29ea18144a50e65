"""Files against what is said of them: links, checksums, what is missing, what nobody describes; and croissant.json."""

import difflib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

import orjson

from culturekit.cards.card_tables import DATA, FILES, CardTable, FileFacts, described_files
from culturekit.cards.croissant import CROISSANT
from culturekit.cards.croissant_types import data_type, is_list
from culturekit.cards.facts import Facts
from culturekit.cards.findings import PLAIN_PATH, CardFinding, differences, is_plain
from culturekit.cards.markdown import BLOCK
from culturekit.cards.pages import README
from culturekit.cards.provenance import MANIFESTS
from culturekit.cards.release_files import OWN, SUMS
from culturekit.errors import ConfigError
from culturekit.storage.digests import digest, digest_file
from culturekit.storage.manifest import MANIFEST, RUN_RECORD, Manifest
from culturekit.storage.yaml_source import YamlValue, parse_yaml

__all__ = [
    "check_croissant",
    "check_croissant_paths",
    "check_header_paths",
    "check_links",
    "check_outputs",
    "check_page",
    "check_sums",
    "hashes_of",
    "read_croissant",
]

CARRIED = {DATA, FILES, MANIFESTS}
"""Folders whose bytes come from the release."""

LINE = re.compile(r"^(?P<sha256>[0-9a-f]{64}) [ *](?P<path>.+)$")

LONGEST = 160
HEADER = "---\n"

Node: TypeAlias = Mapping[str, Any]


def check_links(folder: Path) -> Iterator[CardFinding]:
    """Find what is no plain file, the folder itself aside."""
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            kind = f"a link to {path.readlink()}" if path.is_symlink() else "something else"
            yield CardFinding(path.relative_to(folder).as_posix(), "link", "a plain file", kind)


def hashes_of(folder: Path) -> dict[str, str]:
    """Hash every file of a folder that holds no links, by relative path."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest_file(path) for path in paths}


def changed(path: str) -> str:
    """Give the code for other bytes: data that differ are damaged, a page or a hand-written file was edited."""
    return "hash-differs" if path.split("/")[0] in CARRIED else "file-changed"


def check_outputs(hashes: Mapping[str, str], own: Manifest, found: Iterable[CardFinding]) -> Iterator[CardFinding]:
    """Hold the folder against the card's own manifest, as far as nothing was found below a name already."""
    known = {finding.file.split("/")[0] for finding in found}
    outputs = outputs_of(hashes)
    for name in sorted({*own.outputs, *outputs} - known):
        wanted, there = own.outputs.get(name), outputs.get(name, "nothing of that name")
        if wanted is None or wanted.sha256 != there:
            expected = f"SHA-256 {wanted.sha256} ({MANIFEST})" if wanted else f"a name that {MANIFEST} has"
            yield CardFinding(name, changed(name), expected, there)


def outputs_of(hashes: Mapping[str, str]) -> dict[str, str]:
    """Give the hashes of files and of whole folders as a manifest has them."""
    outputs: dict[str, str] = {}
    below: dict[str, list[list[str]]] = {}
    for path in sorted(hashes, key=PurePosixPath):
        name, inside, rest = path.partition("/")
        if inside:
            below.setdefault(name, []).append([rest, hashes[path]])
        elif path not in {MANIFEST, RUN_RECORD}:
            outputs[path] = hashes[path]
    return {**outputs, **{name: digest(listing) for name, listing in below.items()}}


def check_sums(folder: Path, hashes: Mapping[str, str]) -> Iterator[CardFinding]:
    """Hold each file against SHA256SUMS, and find files that it does not name."""
    if SUMS not in hashes:
        yield CardFinding(SUMS, "file-missing", "the checksums of every file", "no such file")
        return
    named = set()
    for line in (folder / SUMS).read_bytes().decode("utf-8", "replace").splitlines():
        match = LINE.match(line)
        if match is None:
            yield CardFinding(SUMS, "sums-unreadable", "a SHA-256, two spaces and a path", repr(line[:120]))
            continue
        path = match["path"]
        named.add(path)
        if not is_plain(path):
            yield CardFinding(SUMS, "path-leaves", PLAIN_PATH, repr(path))
        elif path not in hashes:
            yield CardFinding(path, "file-missing", f"a file with SHA-256 {match['sha256']}", "no such file")
        elif hashes[path] != match["sha256"]:
            yield CardFinding(path, changed(path), f"SHA-256 {match['sha256']} ({SUMS})", hashes[path])
    for path in hashes:
        if path not in named and path not in OWN:
            yield CardFinding(path, "file-extra", "a file that SHA256SUMS names", "one that nothing describes")


def check_page(folder: Path, page: str, expected: bytes) -> Iterator[CardFinding]:
    """Compare a page block by block, and then around its blocks."""
    path = folder / page
    if not path.is_file():
        yield CardFinding(page, "file-missing", "a page of the card", "no such file")
        return
    found = path.read_bytes()
    if found == expected:
        return
    text, wanted = found.decode("utf-8", "replace"), expected.decode("utf-8")
    edited = list(check_blocks(page, wanted, text))
    yield from edited
    if BLOCK.sub(r"\g<name>", text) != BLOCK.sub(r"\g<name>", wanted) or not edited:
        yield CardFinding(page, "page-edited", *first_difference(BLOCK.sub("", wanted), BLOCK.sub("", text)))


def check_blocks(page: str, wanted: str, text: str) -> Iterator[CardFinding]:
    """Compare the generated blocks."""
    blocks = {match["name"]: match["text"] for match in BLOCK.finditer(text)}
    for match in BLOCK.finditer(wanted):
        name = match["name"]
        if name not in blocks:
            yield CardFinding(page, "block-edited", f"the block {name}", "no such block")
        elif blocks[name] != match["text"]:
            expected, found = first_difference(match["text"], blocks[name])
            yield CardFinding(page, "block-edited", f"in {name}: {expected}", found)


def first_difference(wanted: str, found: str) -> tuple[str, str]:
    """Show the first line in which two texts differ."""
    gone, came = "", ""
    for line in difflib.unified_diff(wanted.splitlines(), found.splitlines(), n=0, lineterm=""):
        if line.startswith(("---", "+++")) and len(line) < 5:
            continue
        if line.startswith("@@"):
            if gone or came:
                break
        elif line.startswith("-") and not gone:
            gone = line[1:]
        elif line.startswith("+") and not came:
            came = line[1:]
    return cut(gone), cut(came)


def cut(line: str) -> str:
    """Quote a line, or what there is of it."""
    return repr(line[:LONGEST]) if line else "nothing"


def check_header_paths(folder: Path) -> Iterator[CardFinding]:
    """Find paths in the header of the README that leave the folder."""
    path = folder / README
    text = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
    if not text.startswith(HEADER):
        return
    try:
        value = parse_yaml(text.removeprefix(HEADER).partition("\n---")[0], name=README).value
    except ConfigError as error:
        yield CardFinding(README, "page-edited", "a YAML header", str(error))
        return
    for place in data_paths(value):
        if not is_plain(place):
            yield CardFinding(README, "path-leaves", PLAIN_PATH, repr(place))


def data_paths(value: YamlValue, key: str = "") -> Iterator[YamlValue]:
    """Find everything under `path`, `data_files` and `data_dir`, however nested."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from data_paths(inner, name if name in {"path", "data_files", "data_dir"} else "")
            if name == "data_files" and isinstance(inner, dict):
                yield from (place for place in inner.values() if isinstance(place, str))
    elif isinstance(value, list):
        for inner in value:
            yield from data_paths(inner, key)
    elif key:
        yield value


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
