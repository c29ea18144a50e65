"""What strangers wrote is text in a spreadsheet, and comes back from it."""

import csv
import io
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.spreadsheet_cells import export_table, frame_as_csv, guarded, read_csv_texts, unguarded
from culturekit.core.tables import save_parquet
from tests.report.hostile import FORMULAS

COMPUTED = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\tplain", "\rplain", "\nplain", "\n=1", "＝1", "＋1", "－1", "＠SUM(A1)",
    "  =1", "\u00a0=1", "\u3000＝1", "\u200b=1", "\ufeff+1", " \t@x", *FORMULAS,
]  # fmt: skip
PLAIN = [
    "",
    " ",
    "a=1",
    "'quoted",
    "1-1",
    'ü\nnew, "line"',
    "Rock 'n' Roll",
    "\u202eesrever",
    "<script>alert(1)</script>",
    "Z" * 10_000,
]


@pytest.mark.parametrize("text", COMPUTED)
def test_what_a_spreadsheet_computes_is_guarded(text: str) -> None:
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize("text", PLAIN)
def test_what_it_shows_stays(text: str) -> None:
    assert guarded(text) == text == unguarded(text)


@given(st.text(alphabet="'=+-@＝\t\r\n ax\u200b", max_size=6))
def test_any_text_comes_back(text: str) -> None:
    assert unguarded(guarded(text)) == text
    frame = pl.DataFrame({"t": [text, "x"]})
    [_, cells, _] = list(csv.reader(io.StringIO(frame_as_csv(frame), newline="")))
    assert (cells or [""]) == [guarded(text)]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(sorted({*COMPUTED, *PLAIN}))])
def test_text_columns_and_names_are_guarded_and_reread(tmp_path: Path, kind: type[pl.DataType] | pl.DataType) -> None:
    texts = [text for text in (*COMPUTED, *PLAIN) if text]
    frame = pl.DataFrame({"@name": pl.Series(texts, dtype=kind), "number": range(-1, len(texts) - 1)})
    path = tmp_path / "t.csv"
    path.write_text(frame_as_csv(frame), encoding="utf-8", newline="")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["'@name", "number"]
    assert [row[0] for row in rows[1:]] == [guarded(text) for text in texts]
    assert rows[1][1] == "-1"
    assert read_csv_texts(path)["@name"].to_list() == texts


HOSTILE = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "plain", "a=1", "", 'ü\nnew, "line"']


def table(tmp_path: Path, frame: pl.DataFrame) -> Path:
    save_parquet(frame, tmp_path / "t.parquet")
    return tmp_path / "t.parquet"


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
