import csv
import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.spreadsheet_cells import frame_as_csv, guarded, read_csv_texts, unguarded

FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\tplain", "\rplain", "\nplain", "\n=1", "＝1", "＋1", "－1", "＠SUM(A1)",
    "  =1", "\u00a0=1", "\u3000＝1", "\u200b=1", "\ufeff+1", " \t@x",
]  # fmt: skip
PLAIN = ["", " ", "a=1", "'quoted", "1-1", 'ü\nnew, "line"', "Rock 'n' Roll"]


@pytest.mark.parametrize("text", FORMULAS)
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


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(sorted({*FORMULAS, *PLAIN}))])
def test_text_columns_and_names_are_guarded_and_reread(tmp_path: Path, kind: type[pl.DataType] | pl.DataType) -> None:
    texts = [text for text in (*FORMULAS, *PLAIN) if text]
    frame = pl.DataFrame({"@name": pl.Series(texts, dtype=kind), "number": range(-1, len(texts) - 1)})
    path = tmp_path / "t.csv"
    path.write_text(frame_as_csv(frame), encoding="utf-8", newline="")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["'@name", "number"]
    assert [row[0] for row in rows[1:]] == [guarded(text) for text in texts]
    assert rows[1][1] == "-1"
    assert read_csv_texts(path)["@name"].to_list() == texts


def test_lists_and_structs_are_json() -> None:
    frame = pl.DataFrame({"many": [["=x"]], "pair": [{"a": "=x", "b": 1}]})
    [row] = csv.DictReader(io.StringIO(frame_as_csv(frame)))
    assert row == {"many": '["=x"]', "pair": '{"a":"=x","b":1}'}
