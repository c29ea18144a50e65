import csv
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.storage.spreadsheet_cells import export_table
from culturekit.storage.tables import save_parquet

HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "plain", "a=1", "", 'ü\nnew, "line"']


def table(tmp_path: Path, frame: pl.DataFrame) -> Path:
    save_parquet(frame, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


def test_a_spreadsheet_computes_nothing_and_loses_nothing(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": HOSTILE, "number": range(len(HOSTILE)), "many": [["=x", "y"]] * len(HOSTILE)})
    with export_table(table(tmp_path, frame), "csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, text in zip(rows, HOSTILE, strict=True):
        assert not row["text"].startswith(tuple("=+-@\t"))
        assert row["text"].removeprefix("'") == text
        assert json.loads(row["many"]) == ["=x", "y"]


def test_json_lines_hold_the_values_as_they_are(tmp_path: Path) -> None:
    frame = pl.DataFrame({"text": HOSTILE, "none": [None] * len(HOSTILE), "many": [["=x"]] * len(HOSTILE)})
    lines = export_table(table(tmp_path, frame), "jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["text"] for line in lines] == HOSTILE
    assert json.loads(lines[0]) == {"text": "=1+1", "none": None, "many": ["=x"]}


@given(many=st.lists(st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=3), min_size=1, max_size=4))
def test_any_list_reads_back_from_csv(many: list[list[str]], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = table(tmp_path_factory.mktemp("t"), pl.DataFrame({"many": many}, schema={"many": pl.List(pl.String)}))
    with export_table(path, "csv").open(encoding="utf-8", newline="") as file:
        assert [json.loads(row["many"]) for row in csv.DictReader(file)] == many
