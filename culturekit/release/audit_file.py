"""The audit of a file: read, held against what is known, told, and mended into a copy."""

import gzip
import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from culturekit.core.atomic import decoding, write_atomically
from culturekit.core.digests import once_per_state
from culturekit.core.errors import UsageError
from culturekit.core.schemas import ARTIFACTS
from culturekit.core.spreadsheet_cells import frame_as_csv, read_csv_texts
from culturekit.core.tables import read_table, save_parquet
from culturekit.index.embedding.embedding import load_vectors
from culturekit.kg.concepts import load_concept, shipped_concepts
from culturekit.kg.countries import countries, use_countries_beside
from culturekit.release import check_characters as characters
from culturekit.release import check_items as items
from culturekit.release import check_places as places
from culturekit.release import check_templates as templates
from culturekit.release.findings import (
    Change,
    Check,
    Code,
    Finding,
    Knowledge,
    Turn,
    known_from_graph,
    known_from_space,
)
from culturekit.release.sheet import LAYOUTS, Form, Row, Sheet, layout_of

# Every check, in the order in which mends are made, and an audit of a file that has been read.

CHECKS: tuple[Check, ...] = (
    characters.unicode_slips, characters.white_space, places.countries_named,
    places.concepts_named, items.identifiers, items.statements, templates.negative_prompts,
    characters.unusable_names, characters.other_concepts, items.item_countries,
    templates.template_slips, items.repeated_rows, characters.two_concepts,
    templates.long_prompts, items.near_duplicates, places.imbalance,
)  # fmt: skip

CODES: tuple[Code, ...] = tuple(code for check in CHECKS for code in check.codes)


def inspect(sheet: Sheet, knowledge: Knowledge, turn: Turn | None = None) -> list[Finding]:
    """Run every check, or those of one turn; findings stand in the order of the checks, then of the rows."""
    return [
        finding for check in CHECKS if turn is None or check.turn == turn for finding in check.find(sheet, knowledge)
    ]


def counted(finding: Finding) -> bool:
    """Tell whether a finding counts for the exit code: notes do not."""
    return finding.severity != "note"


# Mending a file by what it says itself, round by round, and writing the mended copy with a log.

MOST_ROUNDS = 50


@dataclass(frozen=True, slots=True)
class LogLine:
    """One thing that was changed; `field` is empty where a row was set aside, and `before` then holds it whole."""

    row: int
    action: str
    code: str
    field: str
    before: str
    after: str
    message: str


@dataclass(frozen=True, slots=True)
class Mended:
    """A mended file, what was changed, and what is left: notes."""

    sheet: Sheet
    log: tuple[LogLine, ...]
    left: tuple[Finding, ...]


def mend(sheet: Sheet, knowledge: Knowledge) -> Mended:
    """Mend a file. Cells come first, then rows as a whole, and repeated rows when all else is mended.

    Each round changes a row by one kind of finding only: what the next would say may no longer be so.
    A finding that comes back, or that no rule can mend, sets its row aside.
    """
    log: list[LogLine] = []
    tried: set[tuple[str, int, str, str]] = set()
    for _ in range(MOST_ROUNDS):
        by_turn = ([f for f in inspect(sheet, knowledge, turn) if counted(f) and f.changes] for turn in Turn)
        open_ones = next(filter(None, by_turn), None)
        if open_ones is None:
            return Mended(sheet, tuple(log), tuple(inspect(sheet, knowledge)))
        sheet = one_round(sheet, open_ones, log, tried)
    return last_resort(sheet, knowledge, log)


def one_round(
    sheet: Sheet, findings: Sequence[Finding], log: list[LogLine], tried: set[tuple[str, int, str, str]],
) -> Sheet:  # fmt: skip
    """Make the changes of one turn, at most one kind to a row."""
    rows = {row.number: row for row in sheet.rows}
    touched: dict[int, str] = {}
    for finding in findings:
        for change in finding.changes:
            if change.row in rows and touched.setdefault(change.row, finding.code) == finding.code:
                attempt = (finding.code, change.row, finding.field, finding.value)
                again = finding.row is not None and attempt in tried
                tried.add(attempt)
                apply(rows, Change(change.row) if again else change, finding, log)
    return sheet.with_rows([rows[row.number] for row in sheet.rows if row.number in rows])


def apply(rows: dict[int, Row], change: Change, finding: Finding, log: list[LogLine]) -> None:
    """Make a change and write it down."""
    row = rows[change.row]
    if change.cells is None:
        whole = orjson.dumps(dict(row.cells), default=str).decode()
        log.append(LogLine(row.number, "set aside", finding.code, "", whole, "", finding.message))
        del rows[change.row]
        return
    for field, after in change.cells.items():
        if (before := row.cells.get(field)) != after:
            old, new = ("" if value is None else str(value) for value in (before, after))
            log.append(LogLine(row.number, "changed", finding.code, field, old, new, finding.message))
    rows[change.row] = Row(row.number, {**row.cells, **change.cells})


def last_resort(sheet: Sheet, knowledge: Knowledge, log: list[LogLine]) -> Mended:
    """Set aside every row that still has an error or a warning; a row less can only bring notes."""
    findings = inspect(sheet, knowledge)
    bad = {change.row: finding for finding in findings if counted(finding) for change in finding.changes}
    rows = {row.number: row for row in sheet.rows}
    for number, finding in sorted(bad.items()):
        apply(rows, Change(number), finding, log)
    sheet = sheet.with_rows([rows[row.number] for row in sheet.rows if row.number in rows])
    return Mended(sheet, tuple(log), tuple(inspect(sheet, knowledge)))


def change_log_path(out: Path) -> Path:
    """Name the change log beside a mended copy."""
    return out.with_name(f"{out.name}.changes.csv")


def write_sheet(sheet: Sheet, source: Path, out: Path) -> None:
    """Write a copy; it must have the suffix of its source, and never replaces it."""
    if out.suffix.lower() != source.suffix.lower():
        raise UsageError("a mended copy keeps its layout", expected=f"--fix NAME{source.suffix}", found=out.name)
    if out.exists() and out.samefile(source):
        raise UsageError("a mended copy is another file", where=str(out), hint="Name another file after --fix.")
    if out.exists() and not change_log_path(out).is_file():
        raise UsageError(
            "a mended copy replaces an earlier one only", where=str(out),
            expected="a new file, or one with its .changes.csv",
            found="a file that no audit wrote", hint="Name another file after --fix.",
        )  # fmt: skip
    rows = [dict(row.cells) for row in sheet.rows]
    out.parent.mkdir(parents=True, exist_ok=True)
    if sheet.form == "json":
        write_atomically(out, (json.dumps(rows, ensure_ascii=False, indent=1) + "\n").encode())
    elif sheet.form == "csv":
        frame = pl.DataFrame(rows, schema=dict.fromkeys(sheet.columns, pl.String))
        write_atomically(out, frame_as_csv(frame).encode())
    else:
        schema = pl.read_parquet_schema(source)
        save_parquet(pl.DataFrame(rows, schema=schema).sort(sheet.layout.key, maintain_order=True), out)


# Counting a text's tokens as CLIP does: exactly with the vocabulary of an installed open_clip, else by estimate.
#
# The vocabulary is read from the package's folder; the package, and torch with it, is never imported.

VOCABULARY = "bpe_simple_vocab_16e6.txt.gz"
MERGES = 49_152 - 256 - 2
LONGEST_COUNTED = 20_000  # characters of a text that are counted; what is longer has too many tokens anyway

# Fractions and their like: numbers to CLIP, letters to Python's patterns
NUMERALS = "".join(chr(code) for code in range(0xB2, 0x3400) if unicodedata.category(chr(code)) in {"No", "Nl"})

CLIP_WORD = re.compile(rf"'s|'t|'re|'ve|'m|'ll|'d|[^\W\d_{NUMERALS}]+|[\d{NUMERALS}]|(?:[^\s\w]|_)+", re.IGNORECASE)
# With these, prompts of some twelve tokens on names of many languages are estimated within five of the exact count
LETTERS_PER_TOKEN, BYTES_PER_TOKEN = 7, 3


def clip_tokens() -> tuple[Callable[[str], int], bool]:
    """Give the best count at hand, and whether it is exact; without the marks of beginning and end."""
    path = vocabulary_file()
    if path is None:
        return estimated_tokens, False
    ranks = read_ranks(path)
    known: dict[str, int] = {}

    def count(text: str) -> int:
        words = words_of(text)
        for word in words:
            if word not in known:
                known[word] = pieces(word, ranks)
        return sum(known[word] for word in words)

    return count, True


def vocabulary_file() -> Path | None:
    """Find the vocabulary of an installed open_clip."""
    spec = find_spec("open_clip")
    folders = [] if spec is None else spec.submodule_search_locations or []
    return next((path for folder in folders if (path := Path(folder) / VOCABULARY).is_file()), None)


def words_of(text: str) -> list[str]:
    """Clean a text and cut it into words as CLIP's tokenizer does."""
    plain = html.unescape(html.unescape(unicodedata.normalize("NFC", text[:LONGEST_COUNTED])))
    return CLIP_WORD.findall(" ".join(plain.split()).lower())


def estimated_tokens(text: str) -> int:
    """Estimate tokens from the lengths of words."""
    return sum(
        ceil(len(word) / LETTERS_PER_TOKEN) if word.isascii() else ceil(len(word.encode()) / BYTES_PER_TOKEN)
        for word in words_of(text)
    )


@once_per_state
def read_ranks(path: Path) -> Mapping[tuple[str, str], int]:
    """Read the merge ranks: which pairs of pieces are joined, and in which order."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        lines = file.read().split("\n")[1 : MERGES + 1]
    return {(first, second): rank for rank, (first, second) in enumerate(line.split() for line in lines)}


@cache
def byte_letters() -> Mapping[int, str]:
    """Name each byte by a printable letter, as the vocabulary does."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + index) for index, byte in enumerate(others)}


def pieces(word: str, ranks: Mapping[tuple[str, str], int]) -> int:
    """Count the pieces that a word is cut into."""
    letters = byte_letters()
    parts = [letters[byte] for byte in word.encode()]
    parts[-1] += "</w>"
    while len(parts) > 1:
        pairs = list(pairwise(parts))
        best = min(pairs, key=lambda pair: ranks.get(pair, MERGES))
        if best not in ranks:
            break
        parts = joined(parts, best)
    return len(parts)


def joined(parts: list[str], pair: tuple[str, str]) -> list[str]:
    """Join every occurrence of a pair."""
    result: list[str] = []
    index = 0
    while index < len(parts):
        if tuple(parts[index : index + 2]) == pair:
            result.append(parts[index] + parts[index + 1])
            index += 2
        else:
            result.append(parts[index])
            index += 1
    return result


NEAR = 0.98  # the cosine from which two artifacts are worth a look

ROWS_AT_ONCE = 2_000

FORMS: Mapping[str, Form] = {".json": "json", ".parquet": "parquet", ".csv": "csv"}
BOM = b"\xef\xbb\xbf"
Cells: TypeAlias = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found in a file, and what was mended."""

    file: Path
    layout: str
    rows: int
    findings: tuple[Finding, ...]
    mended: Mended | None = None
    fixed: Path | None = None

    @property
    def has_findings(self) -> bool:
        """Tell whether there is an error or a warning."""
        return any(map(counted, self.findings))

    def as_data(self) -> dict[str, Any]:
        """Give the audit for machines."""
        data: dict[str, Any] = {
            "file": str(self.file),
            "layout": self.layout,
            "rows": self.rows,
            "counts": dict(sorted(Counter(finding.code for finding in self.findings).items())),
            "severities": dict(sorted(Counter(finding.severity for finding in self.findings).items())),
            "findings": [finding.as_data() for finding in self.findings],
        }
        if self.mended is not None and self.fixed is not None:
            data["fixed"] = {
                "file": str(self.fixed),
                "changes": str(change_log_path(self.fixed)),
                "rows": len(self.mended.sheet.rows),
                "changed_cells": sum(line.action == "changed" for line in self.mended.log),
                "set_aside": sum(line.action == "set aside" for line in self.mended.log),
                "notes": len(self.mended.left),
            }
        return data


def audit_file(
    file: Path, *, fix: Path | None = None, graph: Path | None = None, cspace: Path | None = None,
    index: Path | None = None, roots: Sequence[str] = (),
) -> Audit:  # fmt: skip
    """Audit a file, and write a mended copy with its change log where one is asked for.

    `roots` name the root configs by which the graph tells concepts apart, besides those that are shipped.
    """
    use_countries_beside(file, *(() if cspace is None else (cspace,)))
    sheet = read_sheet(file)
    sources = [] if cspace is None else [known_from_space(cspace)]
    if graph is not None:
        concepts = [load_concept(name) for name in roots]
        shipped = [load_concept(name) for name in shipped_concepts() if name not in {each.concept for each in concepts}]
        sources.append(known_from_graph(graph, sheet, [*concepts, *shipped]))
    knowledge = Knowledge(sources, *clip_tokens(), {} if index is None else near_pairs(index))
    findings, mended = tuple(inspect(sheet, knowledge)), None
    if fix is not None:
        mended = mend(sheet, knowledge)
        write_sheet(mended.sheet, file, fix)
        columns = {each.name: pl.Int64 if each.name == "row" else pl.String for each in fields(LogLine)}
        log = pl.DataFrame([asdict(line) for line in mended.log], schema=columns)
        write_atomically(change_log_path(fix), frame_as_csv(log).encode())
    return Audit(file, sheet.layout.name, len(sheet.rows), findings, mended, fix)


def near_pairs(folder: Path) -> dict[tuple[str, str], float]:
    """Find pairs of artifacts of one country and concept whose mean vectors have a cosine of NEAR or more."""
    vectors, ids = load_vectors(folder)
    means = mean_vectors(np.asarray(vectors, np.float32), ids)
    cells: dict[tuple[str, str], list[str]] = {}
    artifacts = read_table(folder / "artifacts.parquet", ARTIFACTS)
    for artifact, concepts, isos in artifacts.select("artifact_id", "concepts", "countries").iter_rows():
        for concept in concepts if artifact in means else ():
            for country in isos:
                cells.setdefault((concept, country), []).append(artifact)
    return {pair: cosine for members in cells.values() for pair, cosine in near_within(members, means)}


def mean_vectors(vectors: NDArray[np.float32], ids: list[str]) -> dict[str, NDArray[np.float32]]:
    """Give each artifact the mean of its vectors, at unit length; vectors are float32 (n, dim)."""
    names, index = np.unique(np.array(ids, dtype=object).astype(str), return_inverse=True)
    sums = np.zeros((len(names), vectors.shape[1]), np.float32)
    np.add.at(sums, index, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    units = sums / np.where(lengths > 0, lengths, 1)
    return {str(name): unit for name, unit in zip(names, units, strict=True)}


def near_within(members: list[str], means: dict[str, NDArray[np.float32]]) -> Iterator[tuple[tuple[str, str], float]]:
    """Compare the artifacts of one country and concept."""
    members = sorted(set(members))
    matrix = np.stack([means[name] for name in members])
    for begin in range(0, len(members), ROWS_AT_ONCE):
        cosines = matrix[begin : begin + ROWS_AT_ONCE] @ matrix.T
        for row, column in zip(*np.nonzero(cosines >= NEAR), strict=True):
            if begin + int(row) < int(column):
                yield (members[begin + int(row)], members[int(column)]), float(cosines[row, column])


def read_sheet(path: Path) -> Sheet:
    """Read a file by its suffix; what it is follows from its columns."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError("which layout is this?", where=str(path), expected=" or ".join(FORMS), found=path.suffix)
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    columns, rows = {"json": read_json, "parquet": read_parquet, "csv": read_csv}[form](path)
    layout = layout_of(columns)
    if layout is None:
        nearest = min(LAYOUTS, key=lambda layout: len(set(layout.needs) - set(columns)))
        raise UsageError(
            "the columns are those of no layout", where=str(path),
            expected=f"the {nearest.name} layout, with {', '.join(nearest.needs)}",
            found=f"no {', '.join(column for column in nearest.needs if column not in columns)}",
        )  # fmt: skip
    by_name = {getattr(country, layout.countries): country for country in countries().values()}
    return Sheet(layout, form, tuple(columns), tuple(Row(*each) for each in enumerate(rows)), by_name)


def read_json(path: Path) -> tuple[list[str], Sequence[Cells]]:
    """Read an array of rows of texts; the columns are those of all rows, in the order of their first mention."""
    with decoding(path, "not in the public CUBE layout", expected="an array of rows of texts"):
        rows = msgspec.json.decode(path.read_bytes().removeprefix(BOM), type=list[Cells])
    columns = list(dict.fromkeys(key for row in rows for key in row)) or list(LAYOUTS[0].needs)
    return columns, rows


def read_parquet(path: Path) -> tuple[list[str], Sequence[dict[str, Any]]]:
    """Read a table as it is: what a stage would refuse, such as a repeated key, is a finding here."""
    with decoding(path, "not a readable Parquet file"):
        frame = pl.read_parquet(path)
    layout = layout_of(frame.columns)
    strange = [name for name in (layout.needs if layout else ()) if frame.schema[name] != pl.String]
    if strange:
        raise UsageError(
            "a column of another type than its table has", where=str(path), expected=f"text in {', '.join(strange)}",
            found=", ".join(str(frame.schema[name]) for name in strange),
        )  # fmt: skip
    return frame.columns, rows_of(frame)


def read_csv(path: Path) -> tuple[list[str], Sequence[Cells]]:
    """Read CSV as text."""
    with decoding(path, "not a readable CSV file", expected="UTF-8, a header"):
        frame = read_csv_texts(path)
    return frame.columns, rows_of(frame)


def rows_of(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Give the rows of a table, in which equal texts are one text, so that they take half of what they would."""
    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    lists = [name for name, kind in frame.schema.items() if kind == pl.List(pl.String)]
    shared, rows = dict[str | None, str | None]().setdefault, list[dict[str, Any]]()
    for row in frame.iter_rows(named=True, buffer_size=ROWS_AT_ONCE):
        for name in texts:
            row[name] = shared(row[name], row[name])
        for name in lists:
            row[name] = row[name] and [shared(text, text) for text in row[name]]
        rows.append(row)
    return rows
