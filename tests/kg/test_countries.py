"""Countries: the papers' lists, what is known of each, and files of a user's own."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import babel.languages
import pycountry
import pytest

from culturekit.config.load import load_recipe
from culturekit.errors import ConfigError, UsageError
from culturekit.kg.concepts import load_concept
from culturekit.kg.countries import by_qid, countries, country, country_files, use_countries
from culturekit.kg.un_regions import UN_REGIONS
from tests.conftest import SMALL, stages_of

RECIPES = {
    "cube": "BR FR IN IT JP NG TR US",
    "cultivate": "US ES IT DE FR IR TR CN IN ID PH NP NG ZA BR MX",
    "c3": "CN",
    "inclusion": "EG NG ZA GB IT RO ES ID PH TH",
}
"""The countries that the papers name as theirs; `inclusion` had annotators there; `linguistic` has regions only."""

OWN = """\
countries:
  - {iso: BE, iso3: BEL, name: Belgium, adjective: Belgian, demonym: Belgians, continent: Europe, qids: [Q31],
     un_region: Western Europe, languages: [nl, fr, de], search_code: be}
"""


@pytest.fixture(autouse=True)
def shipped_only() -> Iterator[None]:
    yield
    use_countries(None)


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_country_of_a_paper_is_there(recipe: str) -> None:
    assert set(RECIPES[recipe].split()) <= set(countries())


def test_the_north_and_the_south_are_the_papers() -> None:
    groups = {iso: each.groups["cultivate"] for iso, each in countries().items() if "cultivate" in each.groups}
    assert set(groups) == set(RECIPES["cultivate"].split())
    assert {iso for iso, group in groups.items() if group == "GN"} == {"US", "ES", "IT", "DE", "FR"}


def test_all_countries_are_refused_where_one_has_no_item(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text(OWN.replace("[Q31]", "[]"), encoding="utf-8")
    (tmp_path / "dishes.yaml").write_text(
        "concept: dishes\nhops: 1\nroots: [{qid: Q1, label: dish}]\n", encoding="utf-8"
    )
    assert set(load_concept(str(tmp_path / "dishes.yaml")).codes) == set(countries())
    use_countries(tmp_path / "own.yaml")
    with pytest.raises(ConfigError, match="no item is known of 1 of all countries: BE; give qids to their entries"):
        load_concept(str(tmp_path / "dishes.yaml"))


@pytest.mark.parametrize("iso", countries())
def test_codes_and_languages_are_those_of_the_libraries(iso: str) -> None:
    each = country(iso)
    assert pycountry.countries.lookup(iso).alpha_3 == each.iso3
    assert each.search_code == {"GB": "uk"}.get(iso, iso.lower())
    official = babel.languages.get_official_languages(iso, de_facto=True)
    assert official[0].split("_")[0] in {language.split("-")[0] for language in each.languages}
    assert each.un_region in UN_REGIONS


def test_an_item_that_the_data_describes_has_the_code_of_its_country(shared_data: Path) -> None:
    checked = 0
    with gzip.open(shared_data / "wikidata/real_entities.jsonl.gz", "rt", encoding="utf-8") as lines:
        for document in map(json.loads, lines):
            known = by_qid().get(document["id"])
            if known is not None:
                codes = [claim["mainsnak"]["datavalue"]["value"] for claim in document["claims"]["P297"]]
                assert codes == [known.iso]
                checked += 1
    assert checked >= 5


def test_a_file_of_ones_own_adds_and_replaces(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN + OWN.split("\n", 1)[1].replace("BEL", "FRA").replace("BE", "FR").replace("Q31", "Q142"))
    before = set(countries())
    use_countries(path)
    assert set(countries()) == before | {"BE"}
    assert by_qid()["Q31"].name == "Belgium"
    assert country("FR").adjective == "Belgian"
    assert country_files()["own-countries"] == path
    concept = tmp_path / "concept.yaml"
    concept.write_text("{concept: any, hops: 1, roots: [{qid: Q1, label: x}], countries: [BE]}")
    assert load_concept(str(concept)).countries == ("BE",)
    use_countries(None)
    assert set(countries()) == before
    with pytest.raises(ConfigError, match="unknown country 'BE'"):
        load_concept(str(concept))


def test_mistakes_are_said_all_at_once_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace("Western Europe", "West Europe").replace("Q31", "31").replace("BEL", "be"))
    with pytest.raises(ConfigError) as caught:
        use_countries(path)
    text = str(caught.value)
    assert len(caught.value.problems) == 3
    for word in ("own.yaml:3: countries[0].un_region", "did you mean 'Western Europe'", "a QID is Q and a number"):
        assert word in text
    path.write_text(OWN + OWN.split("\n", 1)[1])
    with pytest.raises(ConfigError, match=r"(?s)own.yaml:4: countries\[1\].iso: BE is there twice.*Q31 is there twice"):
        use_countries(path)
    path.write_text(OWN.replace("Q31", "Q142"))
    with pytest.raises(ConfigError, match="Q142 is given to BE and belongs to FR"):
        use_countries(path)
    with pytest.raises(UsageError, match="no such YAML file"):
        use_countries(tmp_path / "none.yaml")
    assert "BE" not in countries()


def test_a_recipe_brings_its_countries(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)
    settings = [f"countries_file={path}", "countries=[BE, FR]"]
    recipe = load_recipe(SMALL, settings)
    assert recipe.countries == ("BE", "FR")
    load_recipe(SMALL)
    assert "BE" not in countries()
    released = next(stage for stage in stages_of(recipe, tmp_path / "run") if stage.name == "cspace")
    assert released.inputs["own-countries"] == path
    use_countries(path)
    load_recipe(SMALL, settings)
    (tmp_path / "other.yaml").write_text(OWN)
    with pytest.raises(ConfigError, match=r"countries_file: two files of countries are named.*other.yaml"):
        load_recipe(SMALL, [f"countries_file={tmp_path / 'other.yaml'}"])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["countries=[BE]"], "unknown country 'BE'.*--countries-file, or the key countries_file"),
        (["countries_file=none.yaml"], "countries_file: none.yaml: there is no such YAML file"),
    ],
)
def test_countries_that_a_recipe_does_not_have_are_refused(settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_recipe(SMALL, settings)
