"""A list that says what the images of a folder are: CSV, TSV, JSON, JSON lines or Parquet, one row per file.

All that is wrong with a list is said at once, with the lines.
"""

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
import orjson
import polars as pl

from culturekit.core.atomic import decoding
from culturekit.core.digests import canonical_json
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.spreadsheet_cells import read_sheet, sheet_text

# The forms in which a list of images may come: CSV, TSV, JSON, JSON lines and Parquet, as rows with their lines.

_MOST_PROBLEMS = 50
Row = Mapping[str, Any]


def bounded(problems: list[Problem], label: str) -> list[Problem]:
    """Keep a long list of problems readable."""
    if len(problems) <= _MOST_PROBLEMS:
        return problems
    return [*problems[:_MOST_PROBLEMS], Problem(f"and {len(problems) - _MOST_PROBLEMS:,} more", label, 2**31)]


def rows_of(path: Path) -> Iterator[tuple[int, Row]]:
    """Give the rows of a list with their lines; of JSON arrays and Parquet, with their numbers from 1."""
    form = path.suffix.lower()
    if not path.is_file():
        raise UsageError("there is no such list of images", where=str(path), expected="a file")
    if form == ".parquet":
        with decoding(path, "a list of images is not readable Parquet"):
            rows = pl.read_parquet(path)
        yield from enumerate(rows.iter_rows(named=True), start=1)
        return
    if form not in {".csv", ".tsv", ".jsonl", ".ndjson", ".json"}:
        raise UsageError(
            "a list of images is in none of the forms",
            where=str(path),
            expected=".csv, .tsv, .jsonl, .json or .parquet",
        )
    if form in {".csv", ".tsv"}:
        yield from ((row.line, row.cells) for row in read_sheet(path, plain=False, whole=True))
    elif form == ".json":
        yield from enumerate(_json_rows(sheet_text(path), path), start=1)
    else:
        yield from _json_lines(sheet_text(path), path)


def _json_lines(text: str, path: Path) -> Iterator[tuple[int, Row]]:
    problems: list[Problem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            problems.append(Problem(f"not JSON: {error}", path.name, number))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(Problem("expected an object", path.name, number))
    if problems:
        raise ConfigError(bounded(problems, path.name))


def _json_rows(text: str, path: Path) -> Iterator[Row]:
    """Read an array of objects, or an object that gives each file name a prompt or an object."""
    expected = "an array of objects, or an object with file names as keys"
    with decoding(path, "a list of images is not JSON"):
        held = msgspec.json.decode(text)
    if isinstance(held, dict):
        held = [{**(row if isinstance(row, dict) else {"prompt": row}), "path": name} for name, row in held.items()]
    if not isinstance(held, list) or not all(isinstance(row, dict) for row in held):
        raise UsageError("a list of images is in no known shape", where=str(path), expected=expected)
    yield from held


FILE_COLUMNS = ("path", "file_name", "file", "filename", "image")
_PROMPT_COLUMNS = ("prompt", "text", "prompt_text", "caption")
_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]|^\\\\")
_ADDRESS = re.compile(r"^[a-z][a-z0-9+.-]+://", re.IGNORECASE)
_Reader = Callable[[Any], object]


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A row of a list: a file, which prompt it answers, and cells of the images table."""

    line: int
    name: str
    fields: Mapping[str, str]
    cells: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class LoadedList:
    """A list as read: its files by name, and the columns that say nothing to us."""

    label: str
    files: Mapping[str, ListedFile]
    unused: tuple[str, ...]


_MATCHING = ("prompt_id", "concept", "country", "group", "artifact_id", "artifact")
_ALIASES = {"object": "concept", "region": "group"}  # what lists of photographs call these columns
# columns of an images table that are found again from the files
_OF_OUR_OWN = frozenset(
    {"image_id", "sha256", "width", "height", "source", "source_sha256", "duplicate_of"}
    | {"truth_artifact_id", "truth_country"}
)


def read_list(path: Path, *, label: str) -> LoadedList:
    """Read a list; `label` is what messages call it."""
    rows = list(rows_of(path))
    columns = tuple(dict.fromkeys(name for _, row in rows for name in row))
    file_column = next((name for name in FILE_COLUMNS if name in columns), None)
    if file_column is None:
        near = difflib.get_close_matches("path", columns, n=1, cutoff=0.6)
        raise UsageError(
            "the list has no column that names the files", where=label, expected=" or ".join(FILE_COLUMNS),
            found=", ".join(columns) or "no rows", hint=f"Did you mean {near[0]!r}?" if near else "",
        )  # fmt: skip
    prompt_column = next((name for name in _PROMPT_COLUMNS if name in columns), None)
    if prompt_column is None and "prompt_id" not in columns and "prompt_sent" in columns:
        prompt_column = "prompt_sent"
    problems: list[Problem] = []
    files: dict[str, ListedFile] = {}
    for line, row in rows:
        listed = _listed_file(line, row, file_column, prompt_column, label, problems)
        if listed is not None and listed.name in files:
            first = files[listed.name].line
            problems.append(Problem(f"{listed.name!r} is listed already in row {first}", label, line, file_column))
        elif listed is not None:
            files[listed.name] = listed
    if problems:
        raise ConfigError(bounded(problems, label))
    used = {file_column, prompt_column, *_READERS, *_MATCHING, *_ALIASES, *_OF_OUR_OWN}
    return LoadedList(label, MappingProxyType(files), tuple(name for name in columns if name not in used))


def _listed_file(
    line: int, row: Row, file_column: str, prompt_column: str | None, label: str, problems: list[Problem]
) -> ListedFile | None:
    """Read a row, and note what is wrong with it."""
    before = len(problems)
    name = row.get(file_column)
    status = str(row.get("status") or "ok")
    if name in (None, "") and status in {"refused", "filtered", "failed", "missing"}:
        name = f"(row {line})"
    problem = "names no file" if name in (None, "") else name_problem(str(name))
    if problem:
        problems.append(Problem(problem, label, line, file_column))
    cells: dict[str, object] = {}
    for column, read in _READERS.items():
        if row.get(column) in (None, ""):
            continue
        try:
            cells[column] = read(row[column])
        except (ValueError, TypeError, OverflowError) as error:
            expected = str(error) if "literal" not in str(error) else "a whole number"
            problems.append(Problem(f"expected {expected}, found {str(row[column])[:60]!r}", label, line, column))
    named = {_ALIASES.get(column, column): value for column, value in row.items()}
    fields = {column: str(named[column]) for column in _MATCHING if named.get(column) not in (None, "")}
    if prompt_column is not None and row.get(prompt_column) not in (None, ""):
        fields["prompt"] = str(row[prompt_column])
    if len(problems) > before:
        return None
    return ListedFile(line, plain_name(str(name)), fields, cells)


def name_problem(name: str) -> str:
    """Say why a name in a list may not be opened, in words; an empty text where it may."""
    if "\0" in name:
        return "a file name with a zero byte"
    if _ADDRESS.match(name):
        return f"{name[:80]!r} is an address, not a file of the folder"
    if name.startswith(("/", "~")) or _WINDOWS.match(name):
        return f"{name[:80]!r} is a full path; expected one relative to the folder"
    if ".." in re.split(r"[\\/]", name):
        return f"{name[:80]!r} leads out of the folder with '..'"
    return ""


def plain_name(name: str) -> str:
    """Write a name in one way: without `./`, and with slashes where only a Windows list has none."""
    slashed = name.replace("\\", "/") if "\\" in name and "/" not in name else name
    return PurePosixPath(slashed).as_posix()


def _whole_number(low: int, high: int) -> _Reader:
    def read(value: Any) -> int:  # noqa: ANN401 - a cell
        number = int(value) if isinstance(value, str) else value
        if isinstance(number, bool) or number != int(number) or not low <= number <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(number)

    return read


def _one_of(*words: str) -> _Reader:
    def read(value: Any) -> str:  # noqa: ANN401 - a cell
        if str(value) not in words:
            raise ValueError(" or ".join(words))
        return str(value)

    return read


def truth(value: Any) -> bool:  # noqa: ANN401 - a cell
    """Read yes or no."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if str(value).casefold() not in known:
        raise ValueError("true or false")
    return known[str(value).casefold()]


def _moment(value: Any) -> datetime:  # noqa: ANN401 - a cell
    """Read a time; without a zone it is UTC."""
    try:
        read = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise ValueError("a time such as 2026-11-21T12:00:00Z") from error
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


def _settings(value: Any) -> str:  # noqa: ANN401 - a cell
    """Read a JSON object, written out or as it is."""
    try:
        held = orjson.loads(value) if isinstance(value, str) else value
        if not isinstance(held, dict):
            raise ValueError
        return canonical_json(held).decode()
    except (ValueError, TypeError) as error:
        raise ValueError('a JSON object such as {"steps": 30}') from error


# the cells that a list may fill in the images table
_READERS: Mapping[str, _Reader] = {
    "model": str, "model_version": str, "seed": _whole_number(-(2**63), 2**63 - 1), "seed_honoured": truth,
    "repeat": _whole_number(0, 65_535), "slot": _whole_number(0, 255), "prompt_sent": str, "prompt_revised": str,
    "rewriter": _one_of("on", "off", "unknown"), "safety": str, "requested_at": _moment, "provider_params": _settings,
    "status": _one_of("ok", "refused", "filtered", "failed", "missing"), "reason": str,
}  # fmt: skip
