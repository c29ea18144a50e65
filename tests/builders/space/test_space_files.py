import csv
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.prompting.prompts import artifact_prompts
from culturekit.builders.space.space_files import import_prompts, import_space, read_list, read_prompts, read_space
from culturekit.config.checks import existing_prompts, existing_space
from culturekit.core.errors import UsageError
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.spreadsheet_cells import read_sheet, sheet_bytes
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, space_table

TYPED = """name,concept,country
Jollof rice, cuisine,Nigeria
"Adire, dyed",art,ng

Eiffel Tower,landscapes,FRA
"""


def written(tmp_path: Path, text: str) -> Path:
    """Write a file."""
    path = tmp_path / "space.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_three_columns_typed_by_hand_are_a_space_wherever_one_is_taken(tmp_path: Path) -> None:
    path = written(tmp_path, "\ufeff" + TYPED)
    space, left_out = read_space(path)
    assert CSPACE.problems(space) == []
    assert left_out.is_empty()
    assert space.select("concept", "country", "artifact_id", "continent").rows() == [
        ("art", "NG", "list:adire-dyed", "Africa"),
        ("cuisine", "NG", "list:jollof-rice", "Africa"),
        ("landmarks", "FR", "list:eiffel-tower", "Europe"),
    ]
    assert existing_space(str(path)) == str(path)
    assert read_table(space_table(path, tmp_path), CSPACE).equals(space)


def test_an_item_and_a_subconcept_may_be_stated(tmp_path: Path) -> None:
    space, _ = read_space(written(tmp_path, "id,name,concept,country,subconcept\nQ13276,Jollof,cuisine,NG,dish\n"))
    assert space.select("artifact_id", "qid", "source", "subconcept").row(0) == ("Q13276", "Q13276", "list", "dish")


def test_any_country_is_taken_as_cspace_import_takes_it(tmp_path: Path) -> None:
    text = "name,concept,country,continent\nKente,art,Ghana; Togo,Africa\nHaka,dance,NZL,Polynesia\nHaka,dance,NZ,"
    space, left_out = read_space(written(tmp_path, text))
    assert space.select("name", "country", "country_name", "continent").rows() == [
        ("Kente", "GH", "Ghana", "Africa"),
        ("Kente", "TG", "Togo", "Africa"),
        ("Haka", "NZ", "New Zealand", "Oceania"),
    ]
    assert dict(left_out.select("reason", "detail").iter_rows()) == {
        "continent set aside": "New Zealand: Polynesia, in the table of countries Oceania",
        "duplicate": "Haka in New Zealand",
    }


def test_a_recipe_leaves_out_what_an_import_leaves_out(
    tmp_path: Path, work: Work, caplog: pytest.LogCaptureFixture
) -> None:
    lines = ["name,concept,country,id", "Jollof,cuisine,Nigera,", ",art,Ghana,", "Adire,art,Nigeria,13276"]
    lines += ["Sari,art,India,", "Sari,art,IND,", "Kimchi,cuisine,Korea,", "Haggis,cuisine,Scotland,"]
    outcome = import_space(work, path := written(tmp_path, "\n".join(lines)))
    assert outcome.drops == {"unknown country": 1, "no name": 1, "duplicate": 1, "country read as": 2}
    space = read_table(work.out / "cspace.parquet", CSPACE)
    assert sorted(space["artifact_id"]) == ["list:13276", "list:haggis", "list:kimchi", "list:sari"]
    assert "row 000001: left out, unknown country (Jollof: Nigera; did you mean Niger or Nigeria?)" in caplog.text
    assert "Korea is read as South Korea (KR): write North Korea or KP for the other" in caplog.text
    assert "Scotland is read as United Kingdom (GB): a part of it" in caplog.text
    assert read_list(path).space.equals(space)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name;kind;country\nKente;art;Ghana\n", "there is no column concept; expected name, concept, country"),
        ("names,concept,country\nKente,art,Ghana\n", "Did you mean 'names'"),
        ("", "the list has no rows"),
        ("name,concept,country\nKente,art,Ghana,and more\n", "4 cells under 3 columns"),
        ('name,concept,country\n"Kente,art,Ghana\n', "not a CSV file"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as error:
        read_space(written(tmp_path, text))
    assert "space.csv" in str(error.value)


def test_prompts_are_not_typed_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="lacks the column prompt"):
        read_prompts(Path(existing_prompts(str(written(tmp_path, TYPED)))))


ROWS = [
    {
        "id": "Q13276",
        "name": "Jollof rice",
        "country": "Nigeria",
        "domain": "cuisine",
        "prompt": "A photo of jollof rice",
    },
    {"id": "LLM", "name": "Kente", "country": "Ghana", "domain": "art", "prompt": "nan"},
    {"id": "Q1", "name": "Sari", "country": "India", "domain": "art", "prompt": "A photo of a sari"},
]


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A file in the public CUBE layout, with a country that is not known."""
    path = tmp_path / "cube.json"
    path.write_text(json.dumps(ROWS), encoding="utf-8")
    return path


def test_a_space_is_taken_and_what_cannot_be_read_is_listed(public: Path, work: Work) -> None:
    outcome = import_space(work, public)
    assert read_table(work.out / "cspace.parquet", CSPACE)["artifact_id"].to_list() == ["Q1", "Q13276"]
    assert outcome.drops == {"unknown country": 1}
    assert "taken from cube.json as it was" in str(outcome.notes["caveat"])


def test_a_space_without_a_single_artifact_is_refused(tmp_path: Path, work: Work) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps([ROWS[1]]), encoding="utf-8")
    with pytest.raises(UsageError, match="has no artifact"):
        import_space(work, path)


def test_prompts_that_the_space_knows_nothing_of_are_named(public: Path, work: Work) -> None:
    import_space(work, public)
    space = work.out / "cspace.parquet"
    read_table(space, CSPACE).filter(pl.col("artifact_id") == "Q1").write_parquet(space)
    outcome = import_prompts(work, public, space, ["cube"])
    assert read_table(work.out / "prompts.parquet", PROMPTS).height == 2
    assert outcome.notes["findings"] == [
        "1 prompt is about concepts that the cultural space lacks: cuisine",
        "1 prompt is about artifacts that the cultural space lacks: Q13276",
    ]


def test_prompts_of_other_kinds_than_the_images_are_refused(public: Path, work: Work) -> None:
    import_space(work, public)
    with pytest.raises(UsageError, match=r"images\.kinds asks for; expected underspecified, found cube"):
        import_prompts(work, public, work.out / "cspace.parquet", ["underspecified"])


def test_every_artifact_is_named_once_however_many_countries_it_has(public: Path, work: Work) -> None:
    import_space(work, public)
    space = read_table(work.out / "cspace.parquet", CSPACE)
    twice = pl.concat([space, space.with_columns(country=pl.lit("NO"))])
    prompts = artifact_prompts(twice)
    assert prompts["prompt_id"].to_list() == ["Q1", "Q13276"]
    assert PROMPTS.problems(prompts) == []


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
