"""Lists of other people as cultural spaces: countries as they write them, nothing lost without a reason."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.builders.space.foreign_space import countries_of
from culturekit.kg.countries import countries, read_countries
from culturekit.kg.un_regions import UN_REGIONS
from culturekit.kg.world import whole_world
from tests.command_line import culturekit

ROWS: list[dict[str, Any]] = [
    {"name": "Pavlova", "concept": "cuisine", "country": "Australia; NZ"},
    {"name": "Waffle", "concept": "Cuisine", "country": "Q31"},
    {"name": "Callaloo", "concept": "cuisine", "country": "Trinidad and Tobago, Jamaica and Guatemala"},
    {"name": "Kora", "concept": "instruments", "country": "the Gambia"},
    {"name": "Ghost", "concept": "cuisine", "country": "Atlantis / Mali"},
    {"name": "", "concept": "cuisine", "country": "MLI"},
    {"name": "waffle", "concept": "cuisine", "country": "BEL"},
]
FOUND = [
    ("Pavlova", "AU"), ("Waffle", "BE"), ("Callaloo", "GT"), ("Callaloo", "JM"), ("Ghost", "ML"), ("Pavlova", "NZ"),
    ("Callaloo", "TT"), ("Kora", "GM"),
]  # fmt: skip
WHY = {"duplicate": 1, "no name": 1, "unknown country": 1}


def imported(path: Path, *words: str) -> tuple[pl.DataFrame, dict[str, Any]]:
    out = path.parent / f"{path.stem}-{path.suffix[1:]}"
    answer = culturekit("cspace", "import", path, "--out", out, *words)
    assert answer.returncode == 0, answer.stderr
    return pl.read_parquet(out / "cspace.parquet"), json.loads((out / "manifest.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "parquet"])
def test_countries_are_found_as_people_write_them(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"list.{suffix}"
    if suffix == "csv":
        pl.DataFrame(ROWS).write_csv(path)
    elif suffix == "json":
        listed = [{**row, "country": ["Australia", "NZ"]} if row["name"] == "Pavlova" else row for row in ROWS]
        path.write_text(json.dumps(listed), encoding="utf-8")
    elif suffix == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    else:
        pl.DataFrame(ROWS).write_parquet(path)
    space, manifest = imported(path)
    assert list(space.select("name", "country").iter_rows()) == FOUND
    assert manifest["drops"] == WHY
    own = read_countries(tmp_path / f"list-{suffix}/countries.yaml")
    assert list(own) == ["BE", "GM", "GT", "JM", "ML", "NZ", "TT"]
    assert (own["GM"].in_a_sentence, own["GM"].qids, own["BE"].qids) == ("the Gambia", (), ("Q31",))
    assert "    # qids: the item of Gambia; only an extraction from Wikidata asks for it" in (
        tmp_path / f"list-{suffix}/countries.yaml"
    ).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "name,country\nPizza,IT\n", "there is no column concept; expected name, concept, country, found "
         "country, name. --concept names that of all rows."),
        ("a.csv", "name,land\nPizza,IT\n", "lacks the column country"),
        ("a.json", '{"name": "x"}', "not a list of rows"),
        ("a.json", "[", "not a .json file"),
        ("a.txt", "x", "unknown kind of file; expected .csv, .tsv, .json, .jsonl or .parquet"),
        ("a.csv", "name,concept,country\nPizza,cuisine,Nowhere\n", "no row names an artifact, a concept and a country"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    answer = culturekit("cspace", "import", tmp_path / name, "--out", tmp_path / "out")
    assert answer.returncode == 2
    assert said in " ".join(answer.stderr.split())


def test_a_published_list_of_dishes_loses_nothing_without_a_reason(tmp_path: Path, shared_data: Path) -> None:
    path = tmp_path / "dishes.csv"
    path.write_bytes((shared_data / "foreign/worldcuisines.csv").read_bytes())
    space, manifest = imported(path, "--concept", "cuisine")
    assert manifest["counts"] == {"countries": 157, "cspace": 1039, "drops": 2, "rows": 1041}
    assert manifest["drops"] == {"duplicate": 2}
    folder = tmp_path / "dishes-csv"
    words = ("prompts", "build", "cube", "--cspace", folder / "cspace.parquet", "--out", tmp_path / "prompts")
    assert culturekit("--countries-file", folder / "countries.yaml", *words).returncode == 0
    texts = pl.read_parquet(tmp_path / "prompts/prompts.parquet")["text"]
    assert texts.len() == space.height
    assert not texts.str.contains("None|  ").any()


def test_the_table_of_the_world_is_whole() -> None:
    import pycountry

    world, spoken_of = whole_world(), countries()
    codes = {entry.alpha_2: entry.alpha_3 for entry in pycountry.countries}
    assert set(codes) - set(world) == {"AQ"}
    assert all(world[iso] is spoken_of[iso] for iso in spoken_of), "what is shipped for CUBE and CULTIVate stays"
    assert {one.continent for one in world.values()} == {
        "Africa", "Asia", "Europe", "North America", "Oceania", "South America"
    }  # fmt: skip
    regions = {"North America": "Americas", "South America": "Americas"}
    for one in world.values():
        assert one.adjective, one
        assert one.iso3 == codes[one.iso]
        assert UN_REGIONS[one.un_region] == regions.get(one.continent, one.continent), one
    items = [qid for one in world.values() for qid in one.qids]
    assert len(items) == len(set(items))
    uninhabited = {"BV", "GS", "HM", "TF", "UM"}
    assert {iso for iso, one in world.items() if not one.demonym} == uninhabited


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("Korea, North", ["North Korea"]),
        ("Congo, Democratic Republic of the", ["Democratic Republic of the Congo"]),
        ("Samoa, American", ["American Samoa"]),
        ("Atlantis, France", ["Atlantis, France"]),
        ("France; Atlantis; Atlantis", ["France", "Atlantis"]),
        ("Bolivia, Peru and Chile", ["Bolivia", "Peru", "Chile"]),
    ],
)
def test_a_name_turned_round_is_no_list_of_countries(cell: str, found: list[str]) -> None:
    assert countries_of(cell) == found
