"""The forms in which a list of images may come: CSV, TSV, JSON, JSON lines and Parquet, as rows with their lines."""

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import orjson
import polars as pl

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.storage.spreadsheet_cells import unguarded
from culturekit.storage.system_errors import raise_system_error

__all__ = ["Row", "bounded", "rows_of"]

MOST_PROBLEMS = 50

Row = Mapping[str, Any]


def bounded(problems: list[Problem], label: str) -> list[Problem]:
    """Keep a long list of problems readable."""
    if len(problems) <= MOST_PROBLEMS:
        return problems
    return [*problems[:MOST_PROBLEMS], Problem(f"and {len(problems) - MOST_PROBLEMS:,} more", label, 2**31)]


def rows_of(path: Path) -> Iterator[tuple[int, Row]]:
    """Give the rows of a list with their lines; of JSON arrays and Parquet, with their numbers from 1."""
    form = path.suffix.lower()
    if not path.is_file():
        raise UsageError("there is no such list of images", where=str(path), expected="a file")
    if form == ".parquet":
        yield from enumerate(read_parquet(path), start=1)
        return
    if form not in {".csv", ".tsv", ".jsonl", ".ndjson", ".json"}:
        raise UsageError(
            "a list of images is in none of the forms",
            where=str(path),
            expected=".csv, .tsv, .jsonl, .json or .parquet",
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            "a list of images is text in UTF-8", where=str(path), found=f"other bytes at {error.start:,}",
            hint="Save it again as UTF-8 (in Excel: CSV UTF-8).",
        ) from error  # fmt: skip
    if form in {".csv", ".tsv"}:
        yield from delimited(text, path, tab=form == ".tsv")
    elif form == ".json":
        yield from enumerate(json_rows(text, path), start=1)
    else:
        yield from json_lines(text, path)


def read_parquet(path: Path) -> Iterator[Row]:
    """Read the rows of a Parquet file."""
    try:
        yield from pl.read_parquet(path).iter_rows(named=True)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("a list of images is not readable Parquet", where=str(path), found=str(error)) from error


def delimited(text: str, path: Path, *, tab: bool) -> Iterator[tuple[int, Row]]:
    """Read CSV, also with semicolons, or TSV."""
    first = text.partition("\n")[0]
    between = "\t" if tab else ";" if ";" in first and "," not in first else ","
    csv.field_size_limit(16 * 2**20)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=between, strict=True)
    problems: list[Problem] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        for cells in reader:
            if len(cells) == len(header):
                yield reader.line_num, dict(zip(header, map(unguarded, cells), strict=True))
            elif cells:
                found = f"{len(cells)} cells, but the first line names {len(header)} columns"
                problems.append(Problem(found, path.name, reader.line_num))
    except csv.Error as error:
        problems.append(Problem(f"not readable from here on: {error}", path.name, reader.line_num))
    if problems:
        raise ConfigError(bounded(problems, path.name))


def json_lines(text: str, path: Path) -> Iterator[tuple[int, Row]]:
    """Read an object a line."""
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


def json_rows(text: str, path: Path) -> Iterator[Row]:
    """Read an array of objects, or an object of file names with a prompt or an object each."""
    expected = "an array of objects, or an object with file names as keys"
    try:
        held = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError("a list of images is not JSON", where=str(path), found=str(error)) from error
    if isinstance(held, dict):
        held = [{**(row if isinstance(row, dict) else {"prompt": row}), "path": name} for name, row in held.items()]
    if not isinstance(held, list) or not all(isinstance(row, dict) for row in held):
        raise UsageError("a list of images is in no known shape", where=str(path), expected=expected)
    yield from held
