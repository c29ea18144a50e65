"""Hostile texts in every field of what the recipe of activities writes are cells of text in CSV, and come back."""

import csv
import io
from pathlib import Path

import polars as pl
import pytest

from culturekit.records.schemas import (
    ACTIVITIES,
    DESCRIPTOR_TRAIL,
    DESCRIPTORS,
    EXAGGERATIONS,
    JUDGMENTS,
    MENTIONS,
    PAGES,
    PROMPTS,
    PROPOSED_DESCRIPTORS,
    SCORES,
    STEREOTYPES,
)
from culturekit.records.tables import Table
from culturekit.storage.spreadsheet_cells import GUARDED, frame_as_csv, read_csv_texts
from tests.builders.spaces import rows_of
from tests.report.hostile import FORMULAS

TEXTS = (*FORMULAS, "<script>alert(1)</script>", 'two\nlines, a comma and a "', "\u202eesrever", "'=1+1", "Z" * 10_000)
TABLES = (
    PAGES, MENTIONS, ACTIVITIES, PROMPTS, PROPOSED_DESCRIPTORS, DESCRIPTOR_TRAIL, DESCRIPTORS, STEREOTYPES, JUDGMENTS,
    EXAGGERATIONS, SCORES,
)  # fmt: skip


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_what_strangers_wrote_is_text_in_a_spreadsheet_and_comes_back(table: Table, tmp_path: Path) -> None:
    words = [name for name, kind in table.schema.items() if kind == pl.String]
    several = [name for name, kind in table.schema.items() if kind == pl.List(pl.String)]
    rows = [dict.fromkeys(words, text) | {name: [text, text] for name in several} for text in TEXTS]
    numbers = {name: 1 for name, kind in table.schema.items() if kind.is_numeric()}
    written = frame_as_csv(rows_of(table, *(numbers | row for row in rows)))
    cells = [cell for row in csv.reader(io.StringIO(written, newline="")) for cell in row]
    assert [cell for cell in cells if GUARDED.match(cell) and not cell.startswith("'")] == []
    path = tmp_path / "table.csv"
    path.write_text(written, encoding="utf-8", newline="")
    read = read_csv_texts(path)
    for name in words:
        assert read[name].to_list() == list(TEXTS)
