"""Every text in the data of a card, each once per column, whatever form its table has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.cards.card_tables import FILES, CardTable, scan_texts

__all__ = ["Cells", "card_cells"]

TEXT_SUFFIXES = {".txt", ".md", ".yaml"}


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
    """Give the columns of a file that is none of the split tables; one that is broken is looked through as text."""
    try:
        if path.suffix == ".parquet":
            yield from frame_cells(name, pl.scan_parquet(path, glob=False))
        elif path.suffix in {".csv", ".tsv"}:
            yield from frame_cells(name, scan_texts(path))
        elif path.suffix in {".json", ".jsonl"}:
            yield from json_cells(name, path)
        elif path.suffix in TEXT_SUFFIXES:
            yield text_cells(name, path, "\n\n")
    except (pl.exceptions.PolarsError, orjson.JSONDecodeError):
        yield text_cells(name, path, "\n")


def text_cells(name: str, path: Path, between: str) -> Cells:
    """Give the pieces of a text."""
    return Cells(name, "", pl.Series(path.read_bytes().decode("utf-8", "replace").split(between), dtype=pl.String()))


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
        elif dtype in (pl.Boolean(), pl.Null(), pl.List(pl.Null())) or dtype.is_temporal():
            yield Cells(name, column)
        else:
            values = lazy.select(column).collect()[column].to_list()
            yield from gathered(name, ({column: value} for value in values))


def json_cells(name: str, path: Path) -> Iterator[Cells]:
    """Give the texts and numbers of a JSON file, or of one with JSON in each line, by the key that they stand under."""
    frame = flat_frame(path)
    if frame is not None:
        yield from frame_cells(name, frame.lazy())
        return
    yield from gathered(name, json_values(path))


def flat_frame(path: Path) -> pl.DataFrame | None:
    """Read rows of plain values as a table, which is thirty times faster; None where a file has anything else."""
    try:
        read = pl.read_json if path.suffix == ".json" else pl.read_ndjson
        frame = read(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, OSError):
        return None
    plain = (pl.String(), pl.Boolean(), pl.Null(), pl.List(pl.String()), pl.List(pl.Null()))
    return frame if all(kind in plain or kind.is_numeric() for kind in frame.schema.values()) else None


def json_values(path: Path) -> Iterator[Any]:
    """Read the values of a JSON file, line by line where each line is one."""
    if path.suffix == ".json":
        yield orjson.loads(path.read_bytes())
        return
    with path.open("rb") as file:
        yield from (orjson.loads(line) for line in file if line.strip())


def gathered(name: str, values: Iterable[Any]) -> Iterator[Cells]:
    """Gather nested values by key."""
    texts: dict[str, set[str]] = {}
    numbers: dict[str, set[float]] = {}
    for value in values:
        gather(value, texts, numbers)
    for key, found in sorted(texts.items()):
        yield Cells(name, key, pl.Series(sorted(found), dtype=pl.String()))
    for key, listed in sorted(numbers.items()):
        yield Cells(name, key, numbers=pl.Series(sorted(listed), dtype=pl.Float64()))


def gather(value: Any, texts: dict[str, set[str]], numbers: dict[str, set[float]]) -> None:  # noqa: ANN401 - JSON
    """Sort everything in a nested value by the key that it stands under; a key without texts is noted too."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, inner = waiting.pop()
        if isinstance(inner, Mapping):
            for name, below in inner.items():
                texts.setdefault(str(name), set())
                waiting.append((str(name), below))
        elif isinstance(inner, list):
            waiting += [(key, below) for below in inner]
        elif isinstance(inner, str):
            texts.setdefault(key, set()).add(inner)
        elif isinstance(inner, int | float) and not isinstance(inner, bool):
            numbers.setdefault(key, set()).add(float(inner))
