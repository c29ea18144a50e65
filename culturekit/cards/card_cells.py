"""Every text in the data of a card, each once per column, whatever form its table has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.cards.card_tables import FILES, CardTable

__all__ = ["Cells", "card_cells"]

TEXT_SUFFIXES = {".txt", ".md", ".yaml"}
JSON_LINE_BATCH = 20_000


@dataclass(frozen=True, slots=True)
class Cells:
    """The values of one column of one file; `texts` where they are texts, `numbers` where they are numbers."""

    file: str
    column: str
    texts: pl.Series | None = None
    numbers: pl.Series | None = None


def card_cells(folder: Path, tables: Sequence[CardTable]) -> Iterator[Cells]:
    """Give all columns of all data files."""
    for table in tables:
        for file in table.files:
            yield from frame_cells(file.path, pl.scan_parquet(folder / file.path, glob=False))
    for path in sorted(path for path in (folder / FILES).rglob("*") if path.is_file()):
        yield from file_cells(path.relative_to(folder).as_posix(), path)


def file_cells(name: str, path: Path) -> Iterator[Cells]:
    """Give the columns of a file that is none of the split tables."""
    if path.suffix == ".parquet":
        yield from frame_cells(name, pl.scan_parquet(path, glob=False))
    elif path.suffix in {".csv", ".tsv"}:
        separator = "," if path.suffix == ".csv" else "\t"
        yield from frame_cells(name, pl.scan_csv(path, separator=separator, infer_schema=False, glob=False))
    elif path.suffix in {".json", ".jsonl"}:
        yield from json_cells(name, path)
    elif path.suffix in TEXT_SUFFIXES:
        text = path.read_bytes().decode("utf-8", "replace")
        yield Cells(name, "", pl.Series(text.split("\n\n"), dtype=pl.String()))


def frame_cells(name: str, lazy: pl.LazyFrame) -> Iterator[Cells]:
    """Give the columns of a table, one at a time."""
    for column, dtype in lazy.collect_schema().items():
        if dtype == pl.String():
            yield Cells(name, column, lazy.select(pl.col(column).unique()).collect()[column].drop_nulls())
        elif dtype == pl.List(pl.String()):
            inner = pl.col(column).explode(empty_as_null=False)
            yield Cells(name, column, lazy.select(inner.unique()).collect()[column].drop_nulls())
        elif dtype.is_numeric():
            yield Cells(name, column, numbers=lazy.select(column).collect()[column].drop_nulls())
        else:
            values = lazy.select(column).collect()[column].to_list()
            yield from gathered(name, ({column: value} for value in values))


def json_cells(name: str, path: Path) -> Iterator[Cells]:
    """Give the texts and numbers of a JSON file, or of one with JSON in each line, by the key that they stand under."""
    content = path.read_bytes()
    try:
        values = [orjson.loads(line) for line in content.splitlines() if line.strip()] if path.suffix == ".jsonl" else [
            orjson.loads(content)
        ]  # fmt: skip
    except orjson.JSONDecodeError:
        yield Cells(name, "", pl.Series(content.decode("utf-8", "replace").splitlines(), dtype=pl.String()))
        return
    yield from gathered(name, values)


def gathered(name: str, values: Iterable[Any]) -> Iterator[Cells]:
    """Gather nested values by key."""
    texts: dict[str, set[str]] = {}
    numbers: dict[str, set[float]] = {}
    waiting: list[tuple[str, Any]] = [("", value) for value in values]
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, Mapping):
            texts.update({str(inner): texts.get(str(inner), set()) for inner in value})
            waiting += [(str(inner), below) for inner, below in value.items()]
        elif isinstance(value, list):
            waiting += [(key, below) for below in value]
        elif isinstance(value, str):
            texts.setdefault(key, set()).add(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.setdefault(key, set()).add(float(value))
    for key, found in sorted(texts.items()):
        yield Cells(name, key, pl.Series(sorted(found), dtype=pl.String()))
    for key, listed in sorted(numbers.items()):
        yield Cells(name, key, numbers=pl.Series(sorted(listed), dtype=pl.Float64()))
