"""Ingest dump files into the graph store: runs of lines to parts, parts to one sorted result."""

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.arrays import save_array
from culturekit.core.atomic import clear_folder
from culturekit.core.declared import Typed
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import ITEMS, STARTS, STATEMENTS
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_part, save_part, write_frames, write_table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, final_target, flags_of, read_redirects
from culturekit.kg.dump.entities import ALWAYS, LARGEST, part_schema
from culturekit.kg.dump.members import STDIN, tells_damage
from culturekit.kg.dump.read_dump import FileReport, Parts, read_dump
from culturekit.kg.dump.runs import Tally
from culturekit.kg.dump.triples import LACKS

_ROWS_PER_RANGE = 2_000_000
_WAITING_BYTES = 300_000_000  # how much may wait in memory before it is written out
_BIN_BITS = 16  # numbers are counted by their upper half, which decides where ranges begin

# What stands of an item in a store that was made of no dump, unless something is known.
NO_DUMP = {"aliases": [], "sitelinks": 0, "file": 0, "member": 0, "line": 0, "offset": 0}

_ORDER = {"items": ("number", "file", "line"), "statements": ("number", "file", "line", "property", "position")}


class _Shuffle:
    """Takes frames with a column `number` in any order, and gives them back range by range."""

    def __init__(self, folder: Path, edges: Sequence[int]) -> None:
        """Begin with nothing; what does not fit into memory goes to `folder`."""
        clear_folder(folder)
        self.folder = folder
        self.ranges = list(pairwise(edges))
        self.waiting: list[list[pl.DataFrame]] = [[] for _ in self.ranges]
        self.size = self.flushes = 0

    def add(self, frame: pl.DataFrame) -> None:
        """Deal the rows of a frame; write out what waits where it is too much."""
        for waiting, (low, high) in zip(self.waiting, self.ranges, strict=True):
            inside = pl.col("number").is_between(low, high, closed="left")
            rows = frame if len(self.ranges) == 1 else frame.filter(inside)
            if rows.height:
                waiting.append(rows)
                self.size += int(rows.estimated_size())
        if self.size > _WAITING_BYTES:
            for number, frames in enumerate(self.waiting):
                if frames:
                    save_part(pl.concat(frames), self.folder / f"{number:05d}-{self.flushes:05d}.arrows")
                    frames.clear()
            self.size = 0
            self.flushes += 1

    def frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows of each range, in the order in which they were added; each only once."""
        for number, waiting in enumerate(self.waiting):
            written = [read_part(path) for path in sorted(self.folder.glob(f"{number:05d}-*.arrows"))]
            if written or waiting:
                yield pl.concat([*written, *waiting])
            waiting.clear()


@dataclass(frozen=True, slots=True)
class Built:
    """What a store holds.

    Attributes:
        counts: its sizes.
        duplicates: lines that repeated an item.
        redirected: statements whose target was redirected, and now is where that led.
        dangling: items that statements point to and the dump does not describe.
    """

    counts: dict[str, int]
    duplicates: int
    redirected: int
    dangling: int


def build_store(
    out: Path, parts: Sequence[Parts], scratch: Path, redirects: pl.DataFrame | None = None, *, items: int,
    labels: bool = False,
) -> Built:  # fmt: skip
    """Write the tables and arrays of a graph from so many items; `redirects` has a value and its target per row."""
    edges = _edges_of(parts) if items > _ROWS_PER_RANGE else [0, 1 << 32]
    dealt = {table: _Shuffle(scratch / f"shuffled-{table}", edges) for table in _ORDER}
    for table, shuffle in dealt.items():
        for path, part in _part_files(parts, table):
            frame = read_part(path).with_columns(line=pl.col("line") + part.lines)  # lines and members of the file
            if "member" in frame.columns:
                first = pl.when(pl.col("member") == 0).then(part.offset).otherwise(0).cast(pl.UInt64)
                frame = frame.with_columns(offset=pl.col("offset") + first, member=pl.col("member") + part.members)
            shuffle.add(frame)
    builder = _ArrayBuilder(out)
    first_lines = [pl.DataFrame(schema={name: part_schema("items")[name] for name in _ORDER["items"]})]
    seen = moved = 0

    def unique_items() -> Iterator[pl.DataFrame]:
        nonlocal seen
        for frame in dealt["items"].frames():
            seen += frame.height
            ordered = frame.sort(_ORDER["items"])
            unique = ordered.filter(pl.col("number").ne_missing(pl.col("number").shift()))
            first_lines.append(unique.select(_ORDER["items"]))
            builder.items.append(unique["number"].to_numpy().copy())
            shown = unique if labels else unique.drop("labels")
            yield shown.select(pl.format("Q{}", "number").alias("qid"), pl.all())

    def their_statements() -> Iterator[pl.DataFrame]:
        nonlocal moved
        first = pl.concat(first_lines)
        for frame in dealt["statements"].frames():
            inside = pl.col("number").is_between(frame["number"].min(), frame["number"].max())
            lines = first.filter(inside)
            kept = frame.join(lines, on=_ORDER["items"], how="semi").sort(_ORDER["statements"])
            if redirects is not None:
                kept = kept.join(redirects, on="value", how="left", maintain_order="left")
                moved += kept.height - kept["target"].null_count()
                kept = kept.with_columns(value=pl.coalesce("target", "value")).drop("target")
            builder.add_statements(kept)
            yield kept.drop("file", "line").sort(STATEMENTS.key, maintain_order=True)

    write_frames(out, ITEMS, unique_items(), without=() if labels else ("labels",))
    write_frames(out, STATEMENTS, their_statements())
    counts = builder.finish()
    return Built(counts, seen - counts["items"], moved, counts["nodes"] - counts["items"])


def store_rows(out: Path, items: pl.DataFrame, statements: pl.DataFrame) -> dict[str, int]:
    """Write a graph from tables that conform to ITEMS and STATEMENTS and fit into memory; return its sizes."""
    write_table(out, ITEMS, items)
    write_table(out, STATEMENTS, statements)
    builder = _ArrayBuilder(out)
    builder.items.append(items["number"].sort().to_numpy())
    builder.add_statements(statements)
    return builder.finish()


def _edges_of(parts: Sequence[Parts]) -> list[int]:
    """Choose where ranges of numbers begin, so that each holds about as many items."""
    counts = np.zeros(1 << (32 - _BIN_BITS), np.int64)
    for path, _ in _part_files(parts, "items"):
        counts += np.bincount(read_part(path)["number"].to_numpy() >> _BIN_BITS, minlength=len(counts))
    before = np.cumsum(counts)
    bins = np.unique(np.searchsorted(before, np.arange(_ROWS_PER_RANGE, before[-1], _ROWS_PER_RANGE)) + 1)
    return [0, *(int(each) << _BIN_BITS for each in bins), 1 << 32]


def _part_files(parts: Sequence[Parts], table: str) -> Iterator[tuple[Path, Parts]]:
    """Name the part files of a table, each with the parts it belongs to."""
    return ((part.folder / f"{table}-{number:05d}.arrows", part) for part in parts for number in range(part.count))


class _ArrayBuilder:
    """Collects what the arrays need, and writes them; edges are kept as numbers of items until all nodes are known."""

    def __init__(self, out: Path) -> None:
        """Begin with nothing; `items` are the numbers of items that the dump describes, ascending."""
        self.out = out
        self.items: list[NDArray[np.uint32]] = []
        self.values: list[NDArray[np.uint32]] = []
        self.edges: list[tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]]] = []
        self.countries: list[tuple[NDArray[np.uint32], NDArray[np.uint16]]] = []
        self.statements = 0

    def add_statements(self, statements: pl.DataFrame) -> None:
        """Take the statements of some items."""
        self.statements += statements.height
        self.values.append(statements["value"].drop_nulls().unique().sort().to_numpy())
        edges = flags_of(statements, EDGE_PROPERTIES)
        self.edges.append(_united(*(edges[name].to_numpy() for name in ("value", "number", "flags"))))
        countries = flags_of(statements, COUNTRY_PROPERTIES).group_by("number").agg(pl.col("flags").bitwise_or())
        self.countries.append((countries["number"].to_numpy(), countries["flags"].to_numpy()))

    def finish(self) -> dict[str, int]:
        """Write the arrays; return the sizes of all."""
        nodes = np.concatenate([np.empty(0, np.uint32), *self.items, *self.values])
        nodes.sort()
        nodes = nodes[_starts(nodes)]
        save_array(self.out / "nodes.npy", nodes)
        flags = np.zeros(len(nodes), np.uint16)
        for numbers, bits in self.countries:
            flags[np.searchsorted(nodes, numbers)] |= bits
        save_array(self.out / "country_flags.npy", flags)
        edges = self._write_edges(nodes)
        return {"items": sum(map(len, self.items)), "statements": self.statements, "nodes": len(nodes), "edges": edges}

    def _write_edges(self, nodes: NDArray[np.uint32]) -> int:
        """Write the inverse class edges once each, by parent and child, in two passes: count, then fill."""
        counts = np.zeros(len(nodes), np.int64)
        for parents, _, _ in self.edges:
            first = _starts(parents)
            counts[np.searchsorted(nodes, parents[first])] += np.diff(first, append=len(parents))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        save_array(self.out / "children_offsets.npy", offsets)
        children, flags = np.zeros(offsets[-1], np.int32), np.zeros(offsets[-1], np.uint16)
        filled = offsets[:-1].copy()
        for parents, numbers, bits in self.edges:
            first = _starts(parents)
            sizes, above = np.diff(first, append=len(parents)), np.searchsorted(nodes, parents[first])
            places = np.repeat(filled[above] - first, sizes) + np.arange(len(parents))
            children[places] = np.searchsorted(nodes, numbers)
            flags[places] = bits
            filled[above] += sizes
        save_array(self.out / "children.npy", children)
        save_array(self.out / "edge_flags.npy", flags)
        return len(children)


def _starts(ordered: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """Find where a new value begins."""
    new = np.ones(len(ordered), np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(new)


def _united(
    parents: NDArray[np.uint32], children: NDArray[np.uint32], flags: NDArray[np.uint16]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint16]]:
    """Order edges by parent and child; those that are alike become one with the flags of all."""
    edges = parents.astype(np.uint64) << 32 | children
    order = np.argsort(edges)
    edges, flags = edges[order], flags[order]
    first = _starts(edges)
    together = np.bitwise_or.reduceat(flags, first) if len(first) else flags
    return (edges[first] >> 32).astype(np.uint32), edges[first].astype(np.uint32), together


logger = logging.getLogger(__name__)

# A code of a language of Wikidata, such as `pt-br`, which others write `pt-BR`.
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z0-9]+)*")
_SAMPLES = 3  # malformed lines that are quoted


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How a dump is read."""

    languages: Annotated[
        tuple[str, ...],
        Field(description="Languages whose labels are kept, and name what en and mul do not, separated by commas."),
        Typed(once=True),
    ] = ("en",)
    max_malformed: Annotated[
        float,
        Field(ge=0, le=1, description="Share of malformed lines above which the run stops."),
        Typed("max-malformed"),
    ] = 0.001

    def __post_init__(self) -> None:
        codes = dict.fromkeys(code.replace("_", "-").lower() for code in self.languages)
        object.__setattr__(self, "languages", tuple(codes))
        strange = [code for code in self.languages if not _LANGUAGE.fullmatch(code)]
        if strange or not self.languages:
            raise UsageError(
                "languages must be codes of Wikidata", expected="such as en or en,pt-BR",
                found=repr(strange[0]) if strange else "none",
            )  # fmt: skip

    @property
    def beside_english(self) -> bool:
        """Whether labels in other languages are kept."""
        return not set(self.languages) <= set(ALWAYS)


def ingest(work: Work, dump: Sequence[Path], options: IngestOptions, *, redirects: Path | None = None) -> Outcome:
    """Read dump files into a graph store at `work.out`; `redirects` lists QIDs that now stand for others."""
    if len(dump) > LARGEST:
        raise UsageError(f"a dump is read from {LARGEST:,} files at most", found=f"{len(dump):,}")
    moved = None
    if redirects is not None:
        stated = read_redirects(redirects)
        rows = [(int(qid[1:]), int(final_target(qid, stated)[1:])) for qid in stated]
        moved = pl.DataFrame(rows, schema={"value": pl.UInt32, "target": pl.UInt32}, orient="row")
    # How many bytes standard input will have nobody knows.
    sizes = [path.stat().st_size for path in dump if path != STDIN and path.is_file()]
    work.progress.begin(sum(sizes), "bytes of the dump")
    reports = [read_dump(work, file, path, options.languages) for file, path in enumerate(dump)]
    tally = Tally()
    for report in reports:
        tally.add(report.tally)
    _check_malformed(reports, tally, options.max_malformed, dump)
    starts = sorted((file, *start) for file, report in enumerate(reports) for start in report.starts)
    write_table(work.out, STARTS, pl.DataFrame(starts, schema=STARTS.schema, orient="row"))
    parts = [part for report in reports for part in report.parts]
    count = tally.kinds.get("item", 0)
    built = build_store(work.out, parts, work.scratch, moved, items=count, labels=options.beside_english)
    drops = {f"not an item: {kind}": count for kind, count in tally.kinds.items() if kind != "item"}
    drops |= {f"malformed: {reason}": count for reason, count in tally.malformed.items()} | tally.left_out
    if built.duplicates:
        drops["item given twice"] = built.duplicates
    notes: dict[str, object] = {
        "members": sum(report.members for report in reports),
        "bytes": sum(report.length for report in reports),
        "redirected targets": built.redirected,
        "dangling targets": built.dangling,
    }
    if any(report.syntax == "triples" for report in reports):
        if built.duplicates:  # only the first lines of an item would count
            raise IntegrityError(
                "the triples about an item do not stand together",
                where=", ".join(path.name for path in dump),
                found=f"{built.duplicates:,} items that come again",
                hint="Nothing was published. Sort the lines: LC_ALL=C sort FILE, which moves no item apart.",
            )
        notes["lacks"] = list(LACKS)
        logger.warning("triples say nothing of %s: the graph has none", ", ".join(LACKS))
    return Outcome({"lines": tally.entities, **built.counts}, drops, notes)


def _check_malformed(reports: Sequence[FileReport], tally: Tally, share: float, dump: Sequence[Path]) -> None:
    """Stop when more lines are malformed than a dump can have by accident."""
    name = ", ".join(path.name for path in dump)
    if tally.entities == 0:
        raise IntegrityError("the dump holds no entity", where=name)
    samples = [
        f"{path}, line {sample.line} (member {sample.member}, byte {sample.offset}): {sample.problem}"
        for path, report in zip(dump, reports, strict=True)
        for sample in report.tally.samples
    ][:_SAMPLES]
    for sample in samples:
        logger.warning("malformed: %s", sample)
    malformed = sum(tally.malformed.values())
    if malformed > share * tally.entities:
        raise IntegrityError(
            f"{malformed:,} of {tally.entities:,} lines are not entities", where=name, expected=f"at most {share:.2%}",
            found="; ".join(samples),
            hint="Nothing was published. If the dump is sound, allow more with --max-malformed.",
        )  # fmt: skip


# The stage from a dump to a graph; apart from the others, so that reading a dump waits for none of their packages.


_LABELLED, _ENGLISH_ONLY = 6, 5  # versions of graphs with labels in several languages, and of others
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def ingest_stage(
    dump: Sequence[Path], options: IngestOptions, *, sha256: Sequence[str] = (), redirects: Path | None = None
) -> Stage:
    """Read a dump into a graph; `sha256` holds its files, in their order, to what was published.

    What standard input holds is known only afterwards, so that its graph is never reused.
    """
    if len(sha256) not in {0, len(dump)}:
        raise UsageError("give a SHA-256 for each dump file, in their order", found=f"{len(sha256)} for {len(dump)}")
    for text in sha256:
        if not _SHA256.fullmatch(text):
            raise UsageError("not a SHA-256", where="--sha256", expected="64 hexadecimal digits", found=repr(text))
    settings: dict[str, object] = asdict(options)
    if from_stdin := STDIN in dump:
        if len(dump) > 1:
            raise UsageError("standard input is the whole dump", expected="- alone", found=" ".join(map(str, dump)))
        if sha256:
            raise UsageError(
                "standard input cannot be held to a SHA-256 before it is read",
                hint="Check the stream on its way: curl ... | tee >(sha256sum >&2) | culturekit kg ingest -",
            )
        settings["standard input, begun"] = datetime.now(UTC).isoformat()
    for path in () if sha256 or from_stdin else dump:
        if path.is_file() and not tells_damage(path):
            logger.warning("nothing in %s tells whether it is whole: hold it to its published --sha256", path)
    files = {} if from_stdin else {f"dump-{number}": path for number, path in enumerate(dump)}
    return Stage(
        "graph", "ingest", _LABELLED if options.beside_english else _ENGLISH_ONLY,
        lambda work: ingest(work, dump, options, redirects=redirects),
        {**files, **({} if redirects is None else {"redirects": redirects})}, settings,
        packages=("isal", "msgspec", "numpy", "polars"),
        expected={f"dump-{number}": text for number, text in enumerate(sha256)},
    )  # fmt: skip
