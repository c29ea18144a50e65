import re
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import TABLES
from culturekit.core.table import declare

SPECIFICATION = Path(__file__).resolve().parents[3] / "shared/spec/architecture.md"
ROW = re.compile(r"^\| `(?P<name>[a-z]+)` \| (?P<columns>.*) \|$", re.MULTILINE)


def test_a_declaration_names_types_and_what_may_be_null() -> None:
    table = declare("t by a b: a str, b u16?, c list[str]")
    assert table.key == ("a", "b")
    assert table.schema == {"a": pl.String(), "b": pl.UInt16(), "c": pl.List(pl.String())}
    assert [column.nullable for column in table.columns.values()] == [False, True, False]


@pytest.mark.parametrize("columns", ["a", "a string", "A str", "a str??", "a str b str"])
def test_a_declaration_that_says_nothing_is_a_mistake(columns: str) -> None:
    with pytest.raises(ValueError, match="a column is declared as"):
        declare(f"t by a: {columns}")


def test_every_key_is_a_column() -> None:
    for table in TABLES.values():
        assert set(table.key) <= set(table.columns), table.name


def specified() -> dict[str, str]:
    if not SPECIFICATION.is_file():
        return {}
    return {match["name"]: match["columns"] for match in ROW.finditer(SPECIFICATION.read_text(encoding="utf-8"))}


# Tables whose types the specification spells out column by column, but for a few words that say more
SPELLED_OUT = ["cspace", "prompts", "images", "matches", "quality", "scores"]

# An image of known truth may show no artifact: see docs/decisions
MAY_BE_NULL = {("matches", "artifact_id"), ("matches", "artifact"), ("matches", "country"), ("matches", "continent")}


@pytest.mark.parametrize("name", SPELLED_OUT)
def test_tables_are_as_the_specification_says(name: str) -> None:
    if not specified():
        pytest.skip(f"needs the specification at {SPECIFICATION}")
    text = re.sub(r"\([^)]*\)", "", specified()[name])
    words = [part.split() for part in re.split(r",(?![^\[]*\])", text) if len(part.split()) >= 2]
    assert len(words) >= 3
    table = TABLES[name]
    for column, kind, *_ in words:
        declared = table.columns[column]
        plain = kind.rstrip("?")
        expected = declare(f"x by a: a {plain if plain[0].isalpha() else 'str'}").columns["a"].dtype
        assert declared.dtype == expected, column
        assert declared.nullable == (kind.endswith("?") or (name, column) in MAY_BE_NULL), column
