"""Tables of texts: any file with a column of texts and one that says what each belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.stages.stage_command import Typed
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error

__all__ = ["TextColumns", "TextsFound", "texts_of"]

KNOWN = (("prompt_id", "text"), ("id", "text"), ("token", "token"), ("phrase", "phrase"), ("item", "item"))
"""Pairs of id and text that are found without being named: of prompts, of any table, and of phrases, which are their
own ids; those that a model extracted are the items of judgments."""

EMPTY = "empty text"


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns that are read; where none is named, the first pair that a table has of the usual ones."""

    key: Annotated[
        str,
        Field(description="Column with the id of each text. [prompt_id, id, or the text itself]"),
        Typed("id-column"),
    ] = ""
    text: Annotated[str, Field(description="Column with the texts. [text, token or phrase]"), Typed("text-column")] = ""


@dataclass(slots=True)
class TextsFound:
    """Texts by id, and id, reason and detail of what has none."""

    texts: Mapping[str, str] = field(default_factory=dict)
    left_out: list[tuple[str, str, str | None]] = field(default_factory=list)


def texts_of(paths: Sequence[Path], columns: TextColumns) -> TextsFound:
    """Read texts from tables, in the order of their ids; an id stands for one text wherever it appears."""
    texts: dict[str, str] = {}
    empty: dict[str, str | None] = {}
    for path in paths:
        for key, text in rows_of(path, columns):
            if text is None or not text.strip():
                empty.setdefault(key, None)
            elif texts.setdefault(key, text) != text:
                raise UsageError(
                    "one id stands for two texts",
                    where=str(path),
                    found=f"{key!r} for {texts[key]!r} and for {text!r}",
                    hint="Name the columns with --id-column and --text-column.",
                )
    if not texts:
        raise UsageError("there is no text to embed", where=", ".join(map(str, paths)))
    left_out: list[tuple[str, str, str | None]] = [(key, EMPTY, None) for key in sorted(empty) if key not in texts]
    return TextsFound({key: texts[key] for key in sorted(texts)}, left_out)


def rows_of(path: Path, columns: TextColumns) -> list[tuple[str, str | None]]:
    """Read id and text of every row."""
    table = opened(path)
    key, text = chosen(path, table.columns, columns)
    if table[key].has_nulls() and key != text:
        raise UsageError("a text has no id", where=str(path), expected=f"a value in the column {key}")
    named = table.select(pl.col(key).cast(pl.String).fill_null(""), text=pl.col(text).cast(pl.String))
    return list(named.iter_rows())


def opened(path: Path) -> pl.DataFrame:
    """Read Parquet, CSV or JSON lines."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    suffix = path.suffix.lower()
    try:
        if suffix == ".csv":
            return read_csv_texts(path)
        return pl.read_ndjson(path) if suffix in {".jsonl", ".ndjson"} else pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("the texts cannot be read", where=str(path), expected="Parquet, CSV or JSON lines",
                         found=str(error).partition("\n")[0]) from error  # fmt: skip


def chosen(path: Path, names: Sequence[str], columns: TextColumns) -> tuple[str, str]:
    """Decide which columns are id and text."""
    usual = next(((key, text) for key, text in KNOWN if {key, text} <= set(names)), ("", ""))
    key, text = columns.key or usual[0], columns.text or usual[1]
    if columns.text and not columns.key and key not in names:
        key = text
    if key not in names or text not in names:
        raise UsageError(
            "the table has no such columns of ids and texts",
            where=str(path),
            expected=" or ".join(f"{one} and {other}" if one != other else one for one, other in KNOWN)
            if not (columns.key or columns.text)
            else f"{key or 'an id column'} and {text or 'a text column'}",
            found=", ".join(names),
            hint="Name the columns with --id-column and --text-column.",
        )
    return key, text
