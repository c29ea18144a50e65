from pathlib import Path

import pytest

from culturekit.builders.space.space_files import read_prompts, read_space
from culturekit.config.checks import existing_prompts, existing_space
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.layouts import space_table
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import read_table

TYPED = """name,concept,country
Jollof rice, cuisine,Nigeria
"Adire, dyed",art,ng

Eiffel Tower,landscapes,FRA
"""


UNKNOWN = "unknown country 'Nigera': expected its name, its code or its item"


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


def test_all_that_is_wrong_is_said_at_once_with_its_line(tmp_path: Path) -> None:
    lines = ["name,concept,country,id", "Jollof,cuisine,Nigera,", ",art,Ghana,", "Adire,art,Nigeria,13276"]
    lines += ["Sari,art,India,", "Sari,art,IND,"]
    with pytest.raises(ConfigError) as error:
        read_space(written(tmp_path, "\n".join(lines)))
    assert [(problem.line, problem.message) for problem in error.value.problems] == [
        (2, UNKNOWN),
        (3, "there is no name"),
        (4, "id '13276' is no item of Wikidata: expected such as Q13276, or none"),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name;kind;country\nKente;art;Ghana\n", "there is no column concept; expected name, concept, country"),
        ("", "found an empty file"),
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
