"""The check of a card: everything is recomputed from the data, and every difference is a finding."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson
import polars as pl

from culturekit.cards.build import HAND
from culturekit.cards.card_tables import DATA
from culturekit.cards.check_content import check_content
from culturekit.cards.check_files import (
    check_croissant,
    check_croissant_paths,
    check_header_paths,
    check_links,
    check_outputs,
    check_page,
    check_sums,
    hashes_of,
    read_croissant,
)
from culturekit.cards.croissant import croissant_of
from culturekit.cards.facts import FACTS, Facts, facts_of
from culturekit.cards.findings import CardFinding, differences
from culturekit.cards.hand import FIELDS_FILE, TEXT_FILE, Hand, empty_fields, read_hand
from culturekit.cards.pages import PAGES, README, rendered
from culturekit.cards.provenance import carried_manifests
from culturekit.cards.release_files import SUMS
from culturekit.counting import counted
from culturekit.errors import IntegrityError, UsageError
from culturekit.storage.manifest import MANIFEST, read_manifest

__all__ = ["check_card"]


def check_card(folder: Path, *, sources: Sequence[Path] = (), hand: Path | None = None) -> tuple[CardFinding, ...]:
    """Find everything that keeps a card from being published, in order of the files.

    `sources` are texts that must not be in it: files, or folders of them. `hand` is the hand-written half as it is now.
    """
    if not any((folder / name).is_file() for name in (README, FACTS, SUMS)):
        raise UsageError(
            "not a card",
            where=str(folder),
            expected="a folder that card build wrote",
            hint="Run culturekit card build.",
        )
    links = list(check_links(folder))
    if links:  # nothing is read through a link
        return tuple(sorted({*links, *check_header_paths(folder)}))
    hashes = hashes_of(folder)
    found = [*check_sums(folder, hashes), *check_header_paths(folder)]
    found += list(check_manifests(folder, hashes, found))
    described = read_croissant(folder)
    found += [described] if isinstance(described, CardFinding) else check_croissant_paths(described, hashes)
    unreadable = list(unreadable_tables(folder))
    facts = None if unreadable else facts_found(folder, hashes)
    found += unreadable
    found += [] if hand is None else check_hand(folder, hand)
    written, problems = hand_found(folder)
    found += problems
    if facts is not None:
        found += check_facts(folder, facts)
    if facts is not None and written is not None:
        found += empty_ones(written, facts)
        for page in PAGES:
            found += check_page(folder, page, rendered(page, written, facts).encode("utf-8"))
        if not isinstance(described, CardFinding):
            found += check_croissant(described, croissant_of(written, facts), facts)
    found += check_content(folder, hashes, sources=sources, tables=() if facts is None else facts.tables)
    return tuple(sorted(set(found)))


def facts_found(folder: Path, hashes: Mapping[str, str]) -> Facts | None:
    """Compute the facts; None where the manifests or tables do not let that be done, which is found by others."""
    try:
        return facts_of(folder, hashes)
    except (IntegrityError, pl.exceptions.PolarsError):
        return None


def unreadable_tables(folder: Path) -> Iterator[CardFinding]:
    """Find tables that cannot be read, and splits whose columns differ."""
    for place in sorted((folder / DATA).glob("*")):
        schemas = {}
        for path in sorted(place.glob("*.parquet")):
            try:
                schemas[path] = pl.scan_parquet(path, glob=False).collect_schema()
                pl.scan_parquet(path, glob=False).collect()
            except (pl.exceptions.PolarsError, OSError) as error:
                yield CardFinding(f"{DATA}/{place.name}/{path.name}", "table-unreadable", "Parquet", str(error)[:200])
        for path, schema in schemas.items():
            if schema != next(iter(schemas.values())):
                name = f"{DATA}/{place.name}/{path.name}"
                yield CardFinding(name, "table-unreadable", "the columns of the other splits", ", ".join(schema))


def check_manifests(folder: Path, hashes: Mapping[str, str], found: Sequence[CardFinding]) -> Iterator[CardFinding]:
    """Find manifests that cannot be read, and what differs from the card's own; `found` is what checksums said."""
    try:
        carried_manifests(folder)
    except IntegrityError as error:
        yield CardFinding("manifests", "manifest-unreadable", "the manifests of the stages behind it", str(error))
    try:
        own = read_manifest(folder)
    except IntegrityError as error:
        yield CardFinding(MANIFEST, "manifest-unreadable", "the manifest of the card", str(error))
        return
    if own is None:
        yield CardFinding(MANIFEST, "file-missing", "the manifest of the card", "no such file")
        return
    yield from check_outputs(hashes, own, found)


def hand_found(folder: Path) -> tuple[Hand | None, list[CardFinding]]:
    """Read the hand-written half that the card carries."""
    try:
        return read_hand(folder / HAND), []
    except UsageError as error:
        return None, [CardFinding(HAND, "hand-unreadable", "what people wrote about the release", str(error))]


def check_hand(folder: Path, hand: Path) -> Iterator[CardFinding]:
    """Find files of the hand-written half that changed since the card was built."""
    for name in (FIELDS_FILE, TEXT_FILE):
        now, then = hand / name, folder / HAND / name
        if not now.is_file():
            raise UsageError("there is no such hand-written file", where=str(now))
        if then.is_file() and then.read_bytes() != now.read_bytes():
            yield CardFinding(f"{HAND}/{name}", "hand-changed", f"the bytes of {now}", "other bytes")


def empty_ones(hand: Hand, facts: Facts) -> Iterator[CardFinding]:
    """Find the fields of a file that nobody filled in."""
    empty: dict[str, list[str]] = defaultdict(list)
    for file, name in empty_fields(hand, dump_dated=facts.dump_dated):
        empty[file].append(repr(name))
    for file, names in empty.items():
        found = counted(len(names), "fields with nothing, or their marker")
        yield CardFinding(f"{HAND}/{file}", "hand-empty", f"words of a person for {', '.join(names)}", found)


def check_facts(folder: Path, facts: Facts) -> Iterator[CardFinding]:
    """Hold facts.json, and what the release said of its rows, against the data."""
    try:
        told = orjson.loads((folder / FACTS).read_bytes())
    except FileNotFoundError:
        yield CardFinding(FACTS, "file-missing", "the facts of the card", "no such file")
        return
    except orjson.JSONDecodeError as error:
        yield CardFinding(FACTS, "facts-unreadable", "JSON", str(error))
        return
    for path, wanted, found in differences(orjson.loads(facts.encode()), told):
        yield CardFinding(FACTS, "count-differs", f"{path}: {wanted}", found)
    release = carried_manifests(folder)[0]
    rows: Mapping[str, int | None] = {name: record.rows for name, record in release.outputs.items()}
    for table in facts.tables:
        promised = rows.get(f"{table.name}.parquet")
        if promised is not None and promised != table.rows:
            yield CardFinding(
                f"{DATA}/{table.name}", "count-differs", f"{promised:,} rows, as the release's manifest has it",
                f"{table.rows:,}",
            )  # fmt: skip
