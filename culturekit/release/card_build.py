"""Building a card: its data, manifests and hand-written half, every page from these, and its Croissant description."""

import re
import shutil
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import orjson
import polars as pl

from culturekit.core.atomic import copy_file, write_atomically
from culturekit.core.digests import MANIFEST, RUN_RECORD, InputRecord, Manifest, digest, digest_file, read_manifest
from culturekit.core.errors import ConfigError, IntegrityError, UsageError, counted
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.yaml_source import parse_yaml
from culturekit.release.card_content import PLAIN_PATH, CardFinding, check_content, differences, is_plain
from culturekit.release.card_facts import (
    DATA,
    DESCRIPTIVE,
    FACTS,
    FILES,
    MANIFESTS,
    MEANINGS,
    SUMS,
    CardTable,
    ColumnFacts,
    Facts,
    FileFacts,
    carried_manifests,
    carry_manifests,
    described_files,
    facts_of,
    keys_behind,
    plain_files,
    release_files,
    scan,
    write_splits,
)
from culturekit.release.card_hand import FIELDS_FILE, MARKER, TEXT_FILE, Hand, empty_fields, read_hand
from culturekit.release.card_pages import BLOCK, PAGES, README, rendered, under_review_sentence

_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "String": "sc:Text", "Boolean": "sc:Boolean", "Date": "sc:Date",
        "Float32": "cr:Float32", "Float64": "cr:Float64",
        "UInt8": "cr:UInt8", "UInt16": "cr:UInt16", "UInt32": "cr:UInt32", "UInt64": "cr:UInt64",
        "Int8": "cr:Int8", "Int16": "cr:Int16", "Int32": "cr:Int32", "Int64": "cr:Int64",
    }
)  # fmt: skip


def _is_list(column: ColumnFacts) -> bool:
    """Tell whether the cells of a column are lists."""
    return column.type.startswith("List(")


def _data_type(column: ColumnFacts) -> str:
    """Name the type of a cell, or of the elements of a list cell."""
    inner = column.type.removeprefix("List(").removesuffix(")") if _is_list(column) else column.type
    return "sc:DateTime" if inner.startswith("Datetime") else _TYPES.get(inner, "sc:Text")


def _file_set_id(table: CardTable) -> str:
    """Name the files of a table."""
    return f"{table.name}-files"


def _field_of(table: CardTable, column: ColumnFacts) -> dict[str, Any]:
    """Describe one column, and where it is found."""
    field: dict[str, Any] = {
        "@type": "cr:Field",
        "@id": f"{table.name}/{column.name}",
        "name": column.name,
        "description": MEANINGS.get(column.name) or f"Column {column.name} of {table.name}.",
        "dataType": _data_type(column),
        "source": {"fileSet": {"@id": _file_set_id(table)}, "extract": {"column": column.name}},
    }
    if _is_list(column):
        field |= {"isArray": True, "arrayShape": "-1"}
    return field


CROISSANT = "croissant.json"

_CONFORMS = ("http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0")

_CONTEXT: Mapping[str, Any] = MappingProxyType(
    {
        "@language": "en", "@vocab": "https://schema.org/", "arrayShape": "cr:arrayShape", "citeAs": "cr:citeAs",
        "column": "cr:column", "conformsTo": "dct:conformsTo", "containedIn": "cr:containedIn",
        "cr": "http://mlcommons.org/croissant/", "data": {"@id": "cr:data", "@type": "@json"},
        "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "dct": "http://purl.org/dc/terms/",
        "description": {"@container": "@language"}, "equivalentProperty": "cr:equivalentProperty",
        "examples": {"@id": "cr:examples", "@type": "@json"}, "extract": "cr:extract", "field": "cr:field",
        "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty", "fileSet": "cr:fileSet",
        "format": "cr:format", "includes": "cr:includes", "isArray": "cr:isArray", "isLiveDataset": "cr:isLiveDataset",
        "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5", "name": {"@container": "@language"},
        "parentField": "cr:parentField", "path": "cr:path", "rai": "http://mlcommons.org/croissant/RAI/",
        "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
        "replace": "cr:replace", "samplingRate": "cr:samplingRate", "sc": "https://schema.org/",
        "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField", "transform": "cr:transform",
    }
)  # fmt: skip

_FORMATS = {
    ".parquet": "application/x-parquet", ".csv": "text/csv", ".jsonl": "application/jsonlines",
    ".json": "application/json", ".tsv": "text/tab-separated-values", ".md": "text/markdown",
    ".yaml": "application/yaml", ".nt": "application/n-triples", ".ttl": "text/turtle",
    ".jsonld": "application/ld+json",
}  # fmt: skip

_KEYS = {"cspace": ("concept", "country", "artifact_id"), "prompts": ("prompt_id",)}


def croissant_bytes(hand: Hand, facts: Facts) -> bytes:
    """Write the description, the same bytes for the same card."""
    return orjson.dumps(croissant_of(hand, facts), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def croissant_of(hand: Hand, facts: Facts) -> dict[str, Any]:
    """Describe a release: its files with their hashes, its tables as record sets, and how to use it responsibly."""
    fields = hand.fields
    objects = [_file_object(file) for table in facts.tables for file in table.files]
    described: dict[str, Any] = {
        "@context": dict(_CONTEXT),
        "@type": "sc:Dataset",
        "conformsTo": list(_CONFORMS),
        "name": fields.name,
        "description": fields.summary or MARKER,
        "version": fields.version or "0.0.0",
        "license": fields.licence.url or fields.licence.id or MARKER,
        "creator": [{"@type": "sc:Organization", "name": name} for name in fields.creators],
        "publisher": [{"@type": "sc:Organization", "name": name} for name in fields.creators],
        "keywords": list(fields.tags),
        "inLanguage": list(fields.languages),
        **_optional(hand),
        **_responsible(hand, facts),
        "distribution": [
            *objects, *(_file_set(table) for table in facts.tables), *(_file_object(file) for file in facts.others),
        ],
        "recordSet": [_record_set(table) for table in facts.tables if table.columns],
    }  # fmt: skip
    return {key: value for key, value in described.items() if value not in ([], "", None)}


def _optional(hand: Hand) -> dict[str, Any]:
    """Give what a card may leave out, or has not been given yet."""
    fields = hand.fields
    published = fields.published if fields.published and MARKER not in fields.published else None
    named = (", ".join(fields.creators), fields.title or fields.name, fields.version, fields.published)
    cited = fields.citation or ". ".join(filter(None, named))
    return {"url": fields.homepage, "datePublished": published, "citeAs": cited}


def _responsible(hand: Hand, facts: Facts) -> dict[str, Any]:
    """Say in the words of the RAI vocabulary what the hand-written sections say."""
    sections = {name: text for name, text in hand.sections.items() if text}
    dropped = [f"{drop.stage}: {drop.reason} ({drop.count:,})" for drop in facts.drops]
    tools = sorted({f"{stage}, {setting.name}: {setting.value}" for stage, setting in facts.settings})
    dumps = ", ".join(f"{dump.name} (SHA-256 {dump.sha256})" for dump in facts.dumps)
    waiting = under_review_sentence(facts) if facts.under_review else ""
    dates = [dump.date for dump in facts.dumps if dump.date] or [hand.fields.dump_date or ""]
    return {
        "rai:dataCollection": f"Walked from root classes in {dumps}." if dumps else "",
        "rai:dataCollectionType": ["Secondary Data Analysis", "Software Collection"],
        "rai:dataCollectionTimeFrame": [date for date in dates if date and MARKER not in date],
        "rai:dataPreprocessingProtocol": dropped,
        "rai:machineAnnotationTools": tools,
        "rai:annotatorDemographics": _demographics(hand),
        "rai:dataAnnotationAnalysis": [
            *(orjson.dumps(row).decode() for row in facts.agreement),
            *(f"{measure}, {where}: {found}; {of} judged" for measure, where, found, of in facts.checked),
        ],
        "rai:dataUseCases": [text for text in (sections.get("Intended uses"), sections.get("Unsuitable uses")) if text],
        "rai:dataBiases": [text for text in (sections.get("Known biases"),) if text],
        "rai:dataLimitations": [text for text in (sections.get("Limitations"), waiting) if text],
        "rai:dataSocialImpact": sections.get("Social impact", ""),
        "rai:personalSensitiveInformation": [text for text in (sections.get("Sensitive content"),) if text],
        "rai:dataReleaseMaintenancePlan": sections.get("Maintenance", ""),
    }


def _demographics(hand: Hand) -> list[str]:
    """Say who judged, and for what pay."""
    people = hand.fields.annotators
    parts = (hand.sections.get("Annotators and pay"), people.who, f"Pay: {people.pay}" if people.pay else None)
    return [text for text in parts if text]


def _file_object(file: FileFacts) -> dict[str, Any]:
    """Describe one file."""
    return {
        "@type": "cr:FileObject",
        "@id": file.path,
        "name": file.path,
        "description": "A file of the release." if file.rows is None else f"{file.rows:,} rows.",
        "contentUrl": file.path,
        "contentSize": f"{file.bytes} B",
        "encodingFormat": _FORMATS.get(PurePosixPath(file.path).suffix, "text/plain"),
        "sha256": file.sha256,
    }


def _file_set(table: CardTable) -> dict[str, Any]:
    """Describe the files of a table together."""
    return {
        "@type": "cr:FileSet",
        "@id": _file_set_id(table),
        "name": _file_set_id(table),
        "description": f"All splits of {table.name}.",
        "encodingFormat": _FORMATS[".parquet"],
        "includes": f"data/{table.name}/*.parquet",
    }


def _record_set(table: CardTable) -> dict[str, Any]:
    """Describe a table: its columns, and which of them tell rows apart."""
    names = {column.name for column in table.columns}
    key = [{"@id": f"{table.name}/{name}"} for name in _KEYS.get(table.name, ()) if name in names]
    described: dict[str, Any] = {
        "@type": "cr:RecordSet", "@id": table.name, "name": table.name, "description": f"{table.rows:,} rows.",
        "field": [_field_of(table, column) for column in table.columns],
    }  # fmt: skip
    return {**described, "key": key} if key else described


HAND = "hand"


def build_card(work: Work, release: Path, hand_folder: Path) -> Outcome:
    """Write the card of a release into an empty folder."""
    hand = read_hand(hand_folder)
    held = release_files(release)
    for path in work.out.iterdir():  # begin again where a killed run left something
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    work.progress.begin(len(held.tables) + len(held.others), "files")
    for name, parquet in sorted(held.tables.items()):
        write_splits(name, parquet, work.out)
        work.progress.advance(1)
    copies = {work.out / FILES / relative: release / relative for relative in held.others}
    copies |= {work.out / HAND / name: hand_folder / name for name in (FIELDS_FILE, TEXT_FILE)}
    for to, path in copies.items():
        to.parent.mkdir(parents=True, exist_ok=True)
        copy_file(path, to)
    work.progress.advance(len(held.others))
    carry_manifests(release, work.out)
    facts = facts_of(work.out)
    for name, content in generated(hand, facts).items():
        write_atomically(work.out / name, content)
    known = {file.path: file.sha256 for file in described_files(facts.tables, facts.others)}
    paths = [path for path in plain_files(work.out) if path not in DESCRIPTIVE]
    sums = (f"{known.get(path) or digest_file(work.out / path)}  {path}\n" for path in paths)
    write_atomically(work.out / SUMS, "".join(sums).encode())  # in the form that `sha256sum --check` reads
    return outcome(hand, facts, held.left_out)


def generated(hand: Hand, facts: Facts) -> dict[str, bytes]:
    """Give every generated file of a card by name."""
    pages = {page: rendered(page, hand, facts).encode("utf-8") for page in PAGES}
    return {**pages, CROISSANT: croissant_bytes(hand, facts), FACTS: facts.encode()}


def outcome(hand: Hand, facts: Facts, left_out: tuple[str, ...]) -> Outcome:
    """Say what was built, and what still waits for a person."""
    empty = [f"{file}: {name}" for file, name in empty_fields(hand, dump_dated=facts.dump_dated)]
    counts = {table.name: table.rows for table in facts.tables}
    files = sum(1 for _ in described_files(facts.tables, facts.others))
    notes = {"to fill in": empty, "left out": list(left_out)}
    return Outcome({**counts, "files": files}, notes={key: value for key, value in notes.items() if value})


# The card of a release as a stage.


def card_stage(release: Path, hand: Path) -> Stage:
    """Build the card of a release from its folder and a hand-written half.

    Which stages behind the release are at hand decides what the card can say, so their keys count as an input.
    """
    return Stage(
        "card", "card", 4, lambda work: build_card(work, release, hand),
        {"release": release, "fields": hand / FIELDS_FILE, "text": hand / TEXT_FILE, "stages": release},
        packages=("polars", "PyYAML"),
        trees={"stages": lambda _: InputRecord(digest(keys_behind(release)), "the stages behind the release")},
    )  # fmt: skip


# The check of a card: it is built again from what it carries, and every difference is a finding.


_CARRIED = {DATA, FILES, MANIFESTS}  # folders whose bytes come from the release
_SUM = re.compile(r"^(?P<sha256>[0-9a-f]{64}) [ *](?P<path>.+)$")
_PATH_KEYS = {"contentUrl", "includes", "path", "data_files", "data_dir"}
_DESCRIBED = {
    r"\.sha256$": "hash-differs",
    r"\.contentUrl$": "file-missing",
    r"\.contentSize$": "size-differs",
    r"\.(dataType|isArray)$": "croissant-type",
    r"^recordSet$|^recordSet\[\d+\]\.field($|.*\.source)": "croissant-column",
    r"": "croissant-differs",
}  # what a difference in croissant.json means, by where it is; the first that fits
_LONGEST = 160


def check_card(folder: Path, *, sources: Sequence[Path] = (), hand: Path | None = None) -> tuple[CardFinding, ...]:
    """Find everything that keeps a card from being published, in order of the files.

    Args:
        folder: the card.
        sources: texts that must not be in it: files, or folders of them.
        hand: the hand-written half as it is now.
    """
    if not any((folder / name).is_file() for name in (README, FACTS, SUMS)):
        raise UsageError(
            "not a card", where=str(folder), expected="a folder that card build wrote",
            hint="Run culturekit card build.",
        )  # fmt: skip
    links = tuple(_links(folder))
    if links:  # nothing is read through a link
        return links
    hashes = {path: digest_file(folder / path) for path in plain_files(folder)}
    found = [*_sums(folder, hashes), *(unreadable := list(_unreadable_tables(folder)))]
    written, facts, manifest = None, None, None
    try:
        written = read_hand(folder / HAND)
    except UsageError as error:
        found.append(CardFinding(HAND, "hand-unreadable", "what people wrote about the release", str(error)))
    try:
        facts = facts_of(folder, hashes)
    except IntegrityError as error:
        found.append(CardFinding(MANIFESTS, "manifest-unreadable", "manifests of the stages behind it", str(error)))
    except (pl.exceptions.PolarsError, OSError) as error:
        problem = CardFinding(FILES, "table-unreadable", "tables in every form", str(error)[:_LONGEST])
        found += [] if unreadable else [problem]
    try:
        manifest = read_manifest(folder)
    except IntegrityError as error:
        found.append(CardFinding(MANIFEST, "manifest-unreadable", "the manifest of the card", str(error)))
    else:
        if manifest is None:
            found.append(CardFinding(MANIFEST, "file-missing", "the manifest of the card", "no such file"))
    found += [] if hand is None else _hand_changed(folder, hand)
    missing = {(each.file, each.code) for each in found if each.code == "file-missing"}
    if facts is not None:
        found += (each for each in _rebuilt(folder, written, facts, manifest) if (each.file, each.code) not in missing)
    if manifest is not None:
        found += _outputs(folder, hashes, manifest, {finding.file.split("/")[0] for finding in found})
    found += check_content(folder, hashes, sources=sources, tables=() if facts is None else facts.tables)
    return tuple(sorted(set(found)))


def _links(folder: Path) -> Iterator[CardFinding]:
    """Find what is no plain file, the folder itself aside."""
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            kind = f"a link to {path.readlink()}" if path.is_symlink() else "something else"
            yield CardFinding(path.relative_to(folder).as_posix(), "link", "a plain file", kind)


def _sums(folder: Path, hashes: Mapping[str, str]) -> Iterator[CardFinding]:
    """Hold each file against SHA256SUMS, and find files that it does not name."""
    lines = (folder / SUMS).read_bytes().decode("utf-8", "replace").splitlines() if SUMS in hashes else []
    if SUMS not in hashes:
        yield CardFinding(SUMS, "file-missing", "the checksums of every file", "no such file")
    named = set()
    for line in lines:
        match = _SUM.match(line)
        if match is None:
            yield CardFinding(SUMS, "sums-unreadable", "a SHA-256, two spaces and a path", repr(line[:_LONGEST]))
            continue
        path, wanted = match["path"], match["sha256"]
        named.add(path)
        if not is_plain(path):
            yield CardFinding(SUMS, "path-leaves", PLAIN_PATH, repr(path))
        elif path not in hashes:
            yield CardFinding(path, "file-missing", f"a file with SHA-256 {wanted}", "no such file")
        elif hashes[path] != wanted:
            yield CardFinding(path, _changed(path), f"SHA-256 {wanted} ({SUMS})", hashes[path])
    for path in hashes.keys() - named - DESCRIPTIVE if lines else ():
        yield CardFinding(path, "file-extra", f"a file that {SUMS} names", "one that nothing describes")


def _changed(path: str) -> str:
    """Give the code for other bytes: data that differ are damaged, a page or a hand-written file was edited."""
    return "hash-differs" if path.split("/")[0] in _CARRIED else "file-changed"


def _outputs(folder: Path, hashes: Mapping[str, str], manifest: Manifest, known: set[str]) -> Iterator[CardFinding]:
    """Hold the folder against the card's own manifest, except names that something is `known` about already."""
    there = {path.split("/")[0] for path in hashes} - {MANIFEST, RUN_RECORD}
    for name in sorted((manifest.outputs.keys() | there) - known):
        inside = [
            [path.removeprefix(f"{name}/"), sha256] for path, sha256 in hashes.items() if path.startswith(f"{name}/")
        ]
        found = digest(inside) if (folder / name).is_dir() else hashes.get(name, "no such file")
        record = manifest.outputs.get(name)
        if record is None or record.sha256 != found:
            expected = f"SHA-256 {record.sha256} ({MANIFEST})" if record else f"a name that {MANIFEST} has"
            yield CardFinding(name, _changed(name), expected, found)


def _unreadable_tables(folder: Path) -> Iterator[CardFinding]:
    """Find tables that cannot be read as a whole, or whose splits differ in their columns."""
    for path in sorted((folder / DATA).glob("*")):
        try:
            for _ in scan(folder, path.name).collect_batches():
                pass
        except (pl.exceptions.PolarsError, OSError) as error:
            expected = "Parquet, with the same columns in every split"
            yield CardFinding(f"{DATA}/{path.name}", "table-unreadable", expected, str(error)[:_LONGEST])


def _hand_changed(folder: Path, hand: Path) -> Iterator[CardFinding]:
    """Find files of the hand-written half that changed since the card was built."""
    for name in (FIELDS_FILE, TEXT_FILE):
        now, then = hand / name, folder / HAND / name
        if not now.is_file():
            raise UsageError("there is no such hand-written file", where=str(now))
        if then.is_file() and then.read_bytes() != now.read_bytes():
            yield CardFinding(f"{HAND}/{name}", "hand-changed", f"the bytes of {now}", "other bytes")


def _rebuilt(folder: Path, written: Hand | None, facts: Facts, manifest: Manifest | None) -> Iterator[CardFinding]:
    """Build the card again and compare; without its hand-written half the facts alone."""
    promised = {name: record.rows for name, record in carried_manifests(folder)[0].outputs.items()}
    for table in facts.tables:
        rows = promised.get(f"{table.name}.parquet")
        if rows is not None and rows != table.rows:
            expected = f"{rows:,} rows, as the release's manifest has it"
            yield CardFinding(f"{DATA}/{table.name}", "count-differs", expected, f"{table.rows:,}")
    if written is not None:
        yield from _empty_fields(written, facts)
    if written is not None and manifest is not None:
        for key, wanted, found in differences(dict(outcome(written, facts, ()).counts), dict(manifest.counts)):
            yield CardFinding(MANIFEST, "count-differs", f"counts.{key}: {wanted}", found)
    for name, content in ({FACTS: facts.encode()} if written is None else generated(written, facts)).items():
        path = folder / name
        if not path.is_file():
            yield CardFinding(name, "file-missing", "a file that card build writes", "no such file")
        elif name in {FACTS, CROISSANT}:
            yield from _json_file(name, content, path.read_bytes())
        elif path.read_bytes() != content:
            yield from _page(name, content.decode(), path.read_bytes().decode("utf-8", "replace"))


def _empty_fields(written: Hand, facts: Facts) -> Iterator[CardFinding]:
    """Find the fields of a file that nobody filled in."""
    empty: dict[str, list[str]] = defaultdict(list)
    for file, name in empty_fields(written, dump_dated=facts.dump_dated):
        empty[file].append(repr(name))
    for file, names in empty.items():
        found = counted(len(names), "fields with nothing, or their marker")
        yield CardFinding(f"{HAND}/{file}", "hand-empty", f"words of a person for {', '.join(names)}", found)


def _json_file(name: str, wanted: bytes, found: bytes) -> Iterator[CardFinding]:
    """Compare a JSON file with the one that the build writes."""
    unreadable = "facts-unreadable" if name == FACTS else "croissant-unreadable"
    try:
        value = orjson.loads(found)
    except orjson.JSONDecodeError as error:
        yield CardFinding(name, unreadable, "JSON", str(error))
        return
    if isinstance(value, dict):
        yield from json_findings(name, orjson.loads(wanted), value)
    else:
        yield CardFinding(name, unreadable, "a JSON object", type(value).__name__)


def json_findings(name: str, wanted: object, found: object) -> Iterator[CardFinding]:
    """Find where a JSON file differs from the one that the build writes, and paths in it that leave the folder."""
    for path, expected, there in differences(wanted, found):
        code = next(code for pattern, code in _DESCRIBED.items() if re.search(pattern, path))
        yield CardFinding(name, "count-differs" if name == FACTS else code, f"{path}: {expected}", there)
    yield from _leaving(name, found)


def _leaving(name: str, value: Any, key: str = "") -> Iterator[CardFinding]:  # noqa: ANN401 - JSON or YAML
    """Find paths that leave the folder under the keys that name files, however nested."""
    if isinstance(value, dict):
        for inner, below in value.items():
            yield from _leaving(name, below, inner if inner in _PATH_KEYS else key * (key == "data_files"))
    elif isinstance(value, list):
        for below in value:
            yield from _leaving(name, below, key)
    elif key and not is_plain(value):
        yield CardFinding(name, "path-leaves", PLAIN_PATH, repr(value))


def _page(page: str, wanted: str, found: str) -> Iterator[CardFinding]:
    """Compare a page block by block, and then around its blocks; the paths in a header may not leave the folder."""
    blocks = {match["name"]: match["text"] for match in BLOCK.finditer(found)}
    for match in BLOCK.finditer(wanted):
        name, text = match["name"], blocks.get(match["name"], "")
        if text != match["text"]:
            expected, there = _first_difference(match["text"], text)
            yield CardFinding(page, "block-edited", f"in {name}: {expected}", there)
    around = [BLOCK.sub(r"\g<name>", text) for text in (wanted, found)]
    if around[0] != around[1]:
        yield CardFinding(page, "page-edited", *_first_difference(*around))
    if page == README and found.startswith("---\n"):
        try:
            header = parse_yaml(found.removeprefix("---\n").partition("\n---")[0], name=README).value
        except ConfigError as error:
            yield CardFinding(page, "page-edited", "a YAML header", str(error))
        else:
            yield from _leaving(page, header)


def _first_difference(wanted: str, found: str) -> tuple[str, str]:
    """Show the first line in which two texts differ."""
    pairs = zip_longest(wanted.split("\n"), found.split("\n"), fillvalue="")
    first = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return tuple(repr(line[:_LONGEST]) if line else "nothing" for line in first)  # type: ignore[return-value]
