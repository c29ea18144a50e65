"""Lists of other people as spaces and prompts: countries as they write them, nothing lost without a reason."""

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pycountry
import pytest
from babel import Locale
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.country_names import countries_in
from culturekit.builders.prompting.prompts import artifact_prompts
from culturekit.builders.space.space_files import (
    concept_of,
    import_prompts,
    import_space,
    read_list,
    read_prompts,
    read_space,
    sentences_in,
)
from culturekit.config.checks import existing_prompts, existing_space
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.spreadsheet_cells import read_sheet, sheet_bytes
from culturekit.core.stage import Work
from culturekit.core.tables import read_table, space_table, write_table
from culturekit.kg.countries import read_countries, whole_world
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
        listed = [{**row, "country": ["Australia", None, "NZ"]} if row["name"] == "Pavlova" else row for row in ROWS]
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
    assert (own["GM"].in_a_sentence, own["GM"].qids, own["BE"].qids) == ("the Gambia", ("Q1005",), ("Q31",))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "name,country\nPizza,IT\n", "there is no column concept; expected name, concept, country, found "
         "country, name. --concept names that of all rows."),
        ("a.csv", "name,land,concept\nPizza,IT,x\n", "'land'? Say so: culturekit cspace import --columns country=land"),
        ("a.json", '{"name": "x"}', "not a list of rows"),
        ("a.json", '[{"name": ["x"], "concept": "art", "country": "IT"}]', "no row names an artifact"),
        ("a.csv", "name,concept,country\n", "the list has no rows; expected name, concept, country"),
        ("a.json", "[", "not a .json file"),
        ("a.txt", "x", "unknown kind of file; expected .csv, .tsv, .json, .jsonl or .parquet"),
        ("a.csv", "name,concept,country\nPizza,cuisine,Nowhere\n", "no row names an artifact, a concept and a country"),
        ("a.csv", "names,concept,country\nKente,art,Ghana\n", "Did you mean 'names'"),
        ("a.csv", "name,concept,country\nKente,art,Ghana,and more\n", "a.csv:2: 4 cells under 3 columns"),
        ("a.csv", 'name,concept,country\n"Kente,art,Ghana\n', "a.csv:2: not a CSV file"),
    ],
)  # fmt: skip
def test_what_is_no_list_is_refused(name: str, text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    answer = culturekit("cspace", "import", tmp_path / name, "--out", tmp_path / "out")
    assert answer.returncode == 2
    assert said in " ".join(answer.stderr.split())


# What the published list calls countries that neither ISO 3166-1 nor CLDR calls so
HISTORIC = {
    "Czech Republic": "CZ", "England": "GB", "Korea": "KR", "Macau": "MO", "Palestine": "PS", "Scotland": "GB",
    "Turkey": "TR", "Wales": "GB",
}  # fmt: skip


def test_a_published_list_of_dishes_loses_nothing_without_a_reason(tmp_path: Path, shared_data: Path) -> None:
    path = tmp_path / "dishes.csv"
    path.write_bytes((shared_data / "foreign/worldcuisines.csv").read_bytes())
    space, manifest = imported(path)
    assert manifest["counts"] == {"countries": 157, "cspace": 1039, "drops": 8, "rows": 1041}
    assert manifest["drops"] == {"duplicate": 2, "country read as": 6}
    folder = tmp_path / "dishes-csv"
    code = {
        name: each.alpha_2 for each in pycountry.countries for name in (each.name, getattr(each, "common_name", ""))
    }
    code |= {name: iso for iso, name in Locale("en").territories.items()} | HISTORIC
    dropped = set(pl.read_parquet(folder / "drops.parquet")["key"])
    found, spelled = set(), set()
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 1):
            key = row["name"].strip(), code[row["country"]]
            spelled.add(row["country"])
            assert (key in found) == (f"row {number:06}: {key[1]}" in dropped), row
            found.add(key)
    assert (number, len(spelled)) == (1041, 160)
    assert found == set(space.select("name", "country").iter_rows())
    for how in (folder / "countries.yaml", "world"):
        out = tmp_path / f"prompts-{Path(how).name}"
        words = ("prompts", "build", "cube", "--cspace", folder / "cspace.parquet", "--out", out)
        assert culturekit("--countries-file", how, *words).returncode == 0
        texts = pl.read_parquet(out / "prompts.parquet")["text"]
        assert texts.len() == space.height
        assert not texts.str.contains("None|  ").any()


@pytest.mark.endtoend
def test_a_list_is_one_recipe_away_from_its_index(tmp_path: Path) -> None:
    (tmp_path / "dishes.csv").write_text(
        "name;domain;country\nflija;cuisine;Kosovo\nmomo;cuisine;Nepal, Bhutan\nMomo;cuisine;NPL\n", encoding="utf-8"
    )
    (tmp_path / "dishes.yaml").write_text(
        "{recipe: cube, cspace: dishes.csv, countries_file: world, references: {backend: simulated, per_artifact: 1},\n"
        "prompts: {kinds: [cube]}, images: {repeats: 1, slots: 8}, models: [{name: plain, backend: simulated}]}\n",
        encoding="utf-8",
    )
    answer = culturekit("run", "dishes.yaml", "--until", "index", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    run = tmp_path / "runs/dishes"
    assert set(pl.read_parquet(run / "prompts/prompts.parquet")["text"]) == {
        f"A high resolution image of {said} cuisine, realistic"
        for said in ("flija from Kosovan", "momo from Bhutanese", "momo from Nepali")
    }  # fmt: skip
    assert pl.read_parquet(run / "index/ids.parquet").height == 3


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("Korea, North", ["KP"]),
        ("Congo, Democratic Republic of the", ["CD"]),
        ("Samoa, American", ["AS"]),
        ("Atlantis, France", ["unknown country"]),
        ("France; Atlantis; Atlantis", ["FR", "unknown country"]),
        ("Bolivia, Peru and Chile", ["BO", "PE", "CL"]),
        ("China, Hong Kong, Taiwan", ["CN", "HK", "TW"]),
        ("Myanmar/Burma; Czechia / Czech Republic", ["MM", "CZ"]),
        ("England, UK", ["GB"]),
        ("Bosnia and Herzegovina, Trinidad & Tobago and Mali", ["BA", "TT", "ML"]),
        ("Hong Kong, China", ["HK"]),
        ("Puerto Rico (USA)", ["PR"]),
        ("Réunion, France", ["RE"]),
        ("Turkey (Türkiye)", ["TR"]),
        ("Mali; Myanmar (Burma)", ["ML", "MM"]),
        ("China, Hong Kong", ["country in doubt"]),
        ("Georgia, USA", ["country in doubt"]),
        ("United States, Georgia", ["country in doubt"]),
        ("Georgia (U.S.)", ["country in doubt"]),
        ("Georgia; USA", ["GE", "US"]),
        ("Georgia (U.S. state)", ["unknown country"]),
        ("Niger, Nigeria", ["country in doubt"]),
        ("Serbia and Montenegro", ["country in doubt"]),
        ("Virgin Islands", ["country in doubt"]),
        ("Dominican; Congolese", ["country in doubt", "country in doubt"]),
        ("Serbia, Montenegro", ["RS", "ME"]),
        ("N/A", ["unknown country"]),
        ("Southern Africa", ["unknown country"]),
        ("Central Africa", ["country in doubt"]),
        (
            "q142; wd:Q31 | http://www.wikidata.org/entity/Q142\nhttps://www.wikidata.org/wiki/Q5",
            ["FR", "BE", "unknown country"],
        ),
    ],
)
def test_a_cell_names_its_countries_or_is_in_doubt(cell: str, found: list[str]) -> None:
    assert [one.iso or one.problem for one in countries_in(cell)] == found


# As the World Bank, the UN, FIFA, the CIA, ISO, Natural Earth, GeoDE and Dollar Street write them
SPELLINGS = {
    "Bahamas, The|Bahamas (the)|The Bahamas": "BS",
    "Bolivia (Plurinational State of)|Bolivia, Plurinational State of": "BO",
    "Bosnia & Herzegovina|Bosnia-Herzegovina|Bosnia and Herz.|BiH": "BA",
    "Brunei Darussalam": "BN",
    "Cabo Verde|Cape Verde Islands": "CV",
    "Central African Rep.|Central African Republic (the)|C.A.R.": "CF",
    "China PR|P.R. China|China, People's Republic of": "CN",
    "Congo, Dem. Rep.|DR Congo|DRC|D.R. Congo|Dem. Rep. Congo|Congo DR|Congo - Kinshasa|Congo (Kinshasa)|"
    "Congo (the Democratic Republic of the)": "CD",
    "Congo|Congo, Rep.|Congo Republic|Congo (the)|Congo - Brazzaville|Republic of the Congo|Congo, Republic of": "CG",
    "Côte d'Ivoire|Cote d'Ivoire|Côte d’Ivoire|Cote dIvoire|COTE D IVOIRE|Ivory Coast|Cote D`Ivoire": "CI",
    "Curacao": "CW",
    "Czech Rep.|Czechia": "CZ",
    "Dominican Rep.": "DO",
    "Egypt, Arab Rep.": "EG",
    "Eq. Guinea|Guinea, Equatorial": "GQ",
    "Falkland Islands (Malvinas)|Falkland Islands (the) [Malvinas]|Falkland Is.": "FK",
    "Faeroe Is.|Faroe Islands (the)": "FO",
    "Fr. Polynesia": "PF",
    "Gambia, The|Gambia (the)": "GM",
    "Hong Kong SAR, China|China, Hong Kong Special Administrative Region|Hong Kong SAR": "HK",
    "Macao SAR, China|Macau": "MO",
    "Holy See|Holy See (Vatican City)|Vatican": "VA",
    "IR Iran|Iran, Islamic Rep.|Iran (Islamic Republic of)|Islamic Republic of Iran": "IR",
    "Korea DPR|DPRK|Korea, Dem. People's Rep.|Korea, Dem. People’s Rep.|Democratic People's Republic of Korea|N. Korea|"
    "Korea (the Democratic People's Republic of)": "KP",
    "Korea Republic|Korea, Rep.|Republic of Korea|Korea, South|S. Korea|South_Korea|Korea (the Republic of)": "KR",
    "Kyrgyz Republic": "KG",
    "Lao PDR|Lao People's Democratic Republic": "LA",
    "FYR Macedonia|The former Yugoslav Republic of Macedonia|Republic of North Macedonia": "MK",
    "Marshall Is.": "MH",
    "Micronesia, Fed. Sts.|Micronesia (Federated States of)": "FM",
    "Moldova, Republic of|Republic of Moldova": "MD",
    "Myanmar (Burma)|Burma": "MM",
    "Netherlands (Kingdom of the)|Netherlands (the)|The Netherlands": "NL",
    "Republic of Ireland|Ireland, Republic of": "IE",
    "Russian Federation|Russian Federation (the)": "RU",
    "S. Sudan": "SS",
    "Sao Tome & Principe|São Tomé e Príncipe|Sao Tome and Principe": "ST",
    "Saint Helena, Ascension, and Tristan da Cunha|St. Helena": "SH",
    "Saint Martin (French part)|St. Martin (French part)": "MF",
    "Sint Maarten (Dutch part)|St. Maarten": "SX",
    "St. Kitts and Nevis|St Kitts & Nevis|St. Kitts & Nevis": "KN",
    "St. Lucia|St Lucia": "LC",
    "St. Vincent and the Grenadines|St. Vincent & Grenadines|St Vincent/Grenadines|St. Vin. and Gren.": "VC",
    "Slovak Republic": "SK",
    "Solomon Is.": "SB",
    "Somalia, Fed. Rep.": "SO",
    "Swaziland|Eswatini": "SZ",
    "Syrian Arab Republic": "SY",
    "Taiwan, Province of China|Taiwan, China|Chinese Taipei|China, Taiwan Province of": "TW",
    "Tanzania, United Republic of|United Republic of Tanzania|Tanzania, the United Republic of": "TZ",
    "Trinidad & Tobago|Trinidad/Tobago": "TT",
    "Turkiye|Türkiye|Turkey": "TR",
    "Turks & Caicos Islands|Turks and Caicos": "TC",
    "U.A.E.|UAE|United Arab Emirates (the)": "AE",
    "U.K.|UK|England|United Kingdom of Great Britain and Northern Ireland (the)": "GB",
    "USA|U.S.|US|United States of America (the)|America|the United States": "US",
    "US Virgin Islands|Virgin Islands (U.S.)|Virgin Islands, U.S.|U.S. Virgin Is.": "VI",
    "Br. Virgin Is.|Virgin Islands (British)|British Virgin Islands": "VG",
    "Venezuela, RB|Venezuela (Bolivarian Republic of)": "VE",
    "Viet Nam|Vietnam": "VN",
    "W. Sahara": "EH",
    "West Bank and Gaza|State of Palestine|Palestine, State of|Palestinian Territories|Gaza Strip": "PS",
    "Yemen, Rep.": "YE",
}


def test_countries_are_found_as_data_sets_write_them() -> None:
    wrong = {
        spelling: found
        for spellings, iso in SPELLINGS.items()
        for spelling in spellings.split("|")
        for found in [[one.iso for one in countries_in(spelling)]]
        if found != [iso]
    }
    assert not wrong
    assert sum(len(spellings.split("|")) for spellings in SPELLINGS) > 150


def test_no_name_of_a_country_is_that_of_another() -> None:
    for entry in pycountry.countries:
        called = (entry.name, getattr(entry, "official_name", entry.name), Locale("en").territories[entry.alpha_2])
        for name in (*called, whole_world()[entry.alpha_2].name):
            assert [one.iso for one in countries_in(name)] == [entry.alpha_2], name


def test_names_are_told_apart_by_their_ids_whatever_their_order(tmp_path: Path) -> None:
    names = ["C++", "C#", "C", "Wham!", "Wham", "की", "का", "???", "Pad Thai", "!"]
    for turn, listed in enumerate((names, names[::-1])):
        rows = [{"name": name, "concept": "art", "country": "France"} for name in listed]
        (tmp_path / f"{turn}.json").write_text(json.dumps(rows), encoding="utf-8")
    (first, _), (second, _) = imported(tmp_path / "0.json"), imported(tmp_path / "1.json")
    assert first["artifact_id"].n_unique() == len(names)
    assert first.equals(second)
    ids = dict(first.select("name", "artifact_id").iter_rows())
    assert (ids["C"], ids["Pad Thai"], ids["C#"]) == ("list:c", "list:pad-thai", "list:c~2b3efc0e")


def test_a_list_says_what_is_none_and_where_it_comes_from(tmp_path: Path) -> None:
    rows = {
        "id": ["q5", None, "nan", "0"], "name": ["Pizza", "Nan", "Naan", "Soup"], "concept": ["cuisine"] * 4,
        "country": ["Italy", "Iran", "India", "France"],
    }  # fmt: skip
    pl.DataFrame(rows).write_parquet(tmp_path / "list.parquet")
    space, _ = imported(tmp_path / "list.parquet")
    assert dict(space.select("name", "artifact_id").iter_rows()) == {
        "Pizza": "Q5", "Nan": "list:nan", "Naan": "list:naan", "Soup": "list:0"
    }  # fmt: skip
    assert space["source"].unique().to_list() == ["list"]
    missing = pl.DataFrame({**rows, "id": [float("nan"), 1.0, 2.0, 3.0], "name": rows["name"]})
    missing.write_parquet(tmp_path / "numbers.parquet")
    assert imported(tmp_path / "numbers.parquet")[0]["artifact_id"].to_list().count("list:pizza") == 1


def test_columns_may_be_called_otherwise(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text("Dish,Origin\nPizza,Italy\n", "utf-8")
    space, _ = imported(tmp_path / "list.csv", "--concept", "cuisine", "--columns", "name=dish, country=origin")
    assert space.select("artifact_id", "name", "country").rows() == [("list:pizza", "Pizza", "IT")]
    for columns, said in (
        ("name=plate", "names no column"),
        ("nom=dish", "no column means 'nom'"),
        ("dish", "in pairs"),
    ):
        answer = culturekit("cspace", "import", tmp_path / "list.csv", "--columns", columns, "--out", tmp_path / "no")
        assert (answer.returncode, said in answer.stderr) == (2, True), answer.stderr


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
    space, _ = read_space(written(tmp_path, "id,name,concept,country,subconcept\nQ13276,Jollof,cuisine,NG,dish\n"))
    assert space.select("artifact_id", "qid", "source", "subconcept").row(0) == ("Q13276", "Q13276", "list", "dish")


def test_what_a_list_says_and_nobody_reads_or_says_twice_is_left_out_by_country(tmp_path: Path) -> None:
    lines = ["name,domain,country,continent,url", "Kente,art,Ghana; Togo,Africa,x", "Haka,dance,NZL,Polynesia,y"]
    lines += ["Haka,dance,NZ,,", *["Kora,art,Mali; Guinea; Mali,,"] * 2]
    space, left_out = read_space(written(tmp_path, "\n".join(lines)))
    assert space.select("name", "concept", "country", "country_name", "continent").rows() == [
        ("Kente", "art", "GH", "Ghana", "Africa"), ("Kora", "art", "GN", "Guinea", "Africa"),
        ("Kora", "art", "ML", "Mali", "Africa"), ("Kente", "art", "TG", "Togo", "Africa"),
        ("Haka", "dance", "NZ", "New Zealand", "Oceania"),
    ]  # fmt: skip
    assert sorted(left_out.select("reason", "detail").iter_rows()) == [
        ("column not read", "url"),
        ("continent set aside", "New Zealand: Polynesia, in the table of countries Oceania"),
        *(("duplicate", f"{name}") for name in ("Haka in New Zealand", "Kora in Guinea", "Kora in Mali")),
    ]


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


PUBLIC_ROWS = [
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
    path.write_text(json.dumps(PUBLIC_ROWS), encoding="utf-8")
    return path


def test_a_space_is_taken_and_what_cannot_be_read_is_listed(public: Path, work: Work) -> None:
    outcome = import_space(work, public)
    assert read_table(work.out / "cspace.parquet", CSPACE)["artifact_id"].to_list() == ["Q1", "Q13276"]
    assert outcome.drops == {"unknown country": 1}
    assert "taken from cube.json as it was" in str(outcome.notes["caveat"])


def test_a_space_without_a_single_artifact_is_refused(tmp_path: Path, work: Work) -> None:
    path = tmp_path / "empty.json"
    path.write_text(json.dumps([PUBLIC_ROWS[1]]), encoding="utf-8")
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


SENTENCES = """prompt,concept,country,note
A plate of food,Cuisine,,mine
A wedding dress,art,Japan,
A wedding dress,art,JP,
"""


def test_sentences_with_their_concepts_are_prompts(tmp_path: Path) -> None:
    prompts, drops = read_prompts(written(tmp_path, SENTENCES))
    assert prompts.select("text", "concept", "country", "kind").rows() == [
        ("A plate of food", "cuisine", None, "underspecified"),
        ("A wedding dress", "art", "JP", "within-country"),
    ]
    assert dict(drops.select("reason", "key").rows()) == {"column not read": "note", "duplicate": "line 4"}
    write_table(tmp_path, PROMPTS, prompts)
    _, drops = read_prompts(written(tmp_path, "prompt,concept,country\nA plate,cuisine,Korea\nA bowl,cuisine,Korea\n"))
    assert drops["key"].to_list() == ["Korea is read as South Korea (KR): write North Korea or KP for the other"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prompt,concept\nA plate of food,\n", "there is no concept"),
        ("prompt,concept\n,cuisine\n", "there is no prompt"),
        ("prompt,concept,country\nA plate,cuisine,Atlantis\n", "unknown country 'Atlantis'"),
        ("prompt,concept,country\nA plate,cuisine,Japan; Italy\n", "several countries"),
        ("id,prompt,concept\na,A plate,cuisine\na,A dish,cuisine\n", "stands for another prompt"),
        ("prompt,concept\n", "there is no prompt"),
        (TYPED, "lacks the column prompt"),
    ],
)
def test_what_is_no_prompt_is_said(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises((ConfigError, UsageError)) as error:
        read_prompts(Path(existing_prompts(str(written(tmp_path, text)))))
    assert words in str(error.value)


def test_names_of_pictures_are_sentences() -> None:
    names = [
        "Image_of_traditional_food__0.png", "Image of traditional food (3).jpg", "A wedding in 1920 - 4.png",
        "A famous landmark/0001.png", "IMG_0001.png", "cover.png",
    ]  # fmt: skip
    assert sentences_in(names) == ["A famous landmark", "A wedding in 1920", "Image of traditional food"]


@pytest.mark.parametrize(
    ("text", "concepts", "concept"),
    [
        ("Image of traditional food", ("art", "cuisine"), "cuisine"),
        ("a photo of FOOD at a feast", ("art", "cuisine", "landmarks"), "cuisine"),
        ("a work of art", ("art", "cuisine"), "art"),
        ("a departure", ("art", "cuisine"), None),
        ("a wedding", ("art", "cuisine"), None),
        ("a wedding", ("music",), "music"),
    ],
)
def test_a_sentence_tells_its_concept_or_nothing(text: str, concepts: tuple[str, ...], concept: str | None) -> None:
    assert concept_of(text, concepts) == concept
