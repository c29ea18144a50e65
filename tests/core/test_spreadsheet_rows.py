import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core.errors import UsageError
from culturekit.core.spreadsheet_cells import read_sheet, sheet_bytes

cells = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20).filter(lambda text: text == text.strip())


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(cells.filter(bool), cells), max_size=6))
def test_a_sheet_is_read_as_it_was_written_and_computes_nothing(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    path = tmp_path_factory.mktemp("sheet") / "s.csv"
    path.write_bytes(sheet_bytes(("a", "b"), [{"a": a, "b": b} for a, b in rows]))
    with path.open(encoding="utf-8-sig", newline="") as file:
        assert not any(cell.startswith(("=", "+", "-", "@", "＝")) for row in csv.reader(file) for cell in row)
    found = read_sheet(path, ("a", "b"))
    assert [(row.cells["a"], row.cells["b"]) for row in found] == rows


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n",
        "\ufeffA;B\r\n1;2\r\n",
        "a\tb\n1\t2",
        "sep=;\r\na;b\r\n1;2\r\n",
        '\n"a","b"\n\n 1 ,"2"\n,\n',
        "b,a,note\n2,1\n",
    ],
)
def test_what_spreadsheets_save_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text, encoding="utf-8", newline="")
    [row] = read_sheet(path, ("a", "b"))
    assert (row.cells["a"], row.cells["b"]) == ("1", "2")


def test_rows_know_their_line_also_after_cells_of_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    path.write_text('a,b\n"one\ntwo",2\n\n3,4\n', encoding="utf-8")
    assert [row.line for row in read_sheet(path, ("a",))] == [2, 5]


def test_a_folder_is_no_sheet(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a folder"):
        read_sheet(tmp_path, ("a",))
