"""Countries: the papers' lists, what is known of each, and files of a user's own."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import babel.languages
import pycountry
import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.kg.concepts import load_concept
from culturekit.kg.countries import UN_REGIONS, by_qid, countries, country, country_files, use_countries, whole_world
from culturekit.recipes.cube.keys import Recipe, load_recipe
from tests.command_line import culturekit
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
    french = OWN.split("\n", 1)[1].replace("BEL", "FRA").replace("BE", "FR").replace("Q31", "Q142")
    path.write_text(OWN + french.replace("Belgian, d", "Gallic, d").replace("Belgium", "Gaul"))
    before = set(countries())
    use_countries(path)
    assert set(countries()) == before | {"BE"}
    assert by_qid()["Q31"].name == "Belgium"
    assert country("FR").adjective == "Gallic"
    assert country_files()["own-countries"] == path
    concept = tmp_path / "concept.yaml"
    concept.write_text("{concept: any, hops: 1, roots: [{qid: Q1, label: x}], countries: [BE]}")
    assert load_concept(str(concept)).countries == ("BE",)
    use_countries(None)
    assert set(countries()) == before
    with pytest.raises(ConfigError, match="BE is Belgium: draft its entry with"):
        load_concept(str(concept))


def test_mistakes_are_said_all_at_once_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace("Western Europe", "West Europe").replace("Q31", "31").replace("BEL", "be"))
    with pytest.raises(ConfigError) as caught:
        use_countries(path)
    assert len(caught.value.problems) == 3
    for word in ("own.yaml:3: countries[0].un_region", "did you mean 'Western Europe'", "a QID is Q and a number"):
        assert word in str(caught.value)
    entry = OWN.split("\n", 1)[1]
    namesake = entry.replace("BE", "LU").replace("Q31", "Q32").replace("Belgium", "Lux")
    wrong = {
        OWN + entry: r"(?s)own.yaml:4: countries\[1\].iso: BE is there twice.*Q31 is there twice",
        OWN.replace("Q31", "Q142"): "Q142 is given to BE and belongs to FR",
        OWN.replace("Belgian,", "French,"): "French is given to BE and belongs to FR",
        OWN + namesake: r"own.yaml:4: countries\[1\].adjective: Belgian is there twice, first in line 2",
    }
    for text, message in wrong.items():
        path.write_text(text)
        with pytest.raises(ConfigError, match=message):
            use_countries(path)
    with pytest.raises(UsageError, match="no such YAML file"):
        use_countries(tmp_path / "none.yaml")
    assert "BE" not in countries()


def test_a_recipe_brings_its_countries_or_the_whole_world(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN)

    def countries_file(recipe: Recipe) -> Path:
        released = next(stage for stage in stages_of(recipe, tmp_path / "run") if stage.name == "cspace")
        return released.inputs["own-countries"]

    settings = [f"countries_file={path}", "countries=[BE, FR]"]
    recipe = load_recipe(SMALL, settings)
    assert recipe.countries == ("BE", "FR")
    load_recipe(SMALL)
    assert "BE" not in countries()
    assert countries_file(recipe) == path
    use_countries(path)
    load_recipe(SMALL, settings)
    (tmp_path / "other.yaml").write_text(OWN)
    with pytest.raises(ConfigError, match=r"countries_file: two files of countries are named.*other.yaml"):
        load_recipe(SMALL, [f"countries_file={tmp_path / 'other.yaml'}"])
    use_countries(None)
    recipe = load_recipe(SMALL, ["countries_file=world", "countries=[BE, FR]"])
    assert set(countries()) == set(whole_world())
    assert countries_file(recipe).name == "world.tsv"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["countries=[BE]"], "BE is Belgium: .*--countries-file, or the key countries_file"),
        (["countries_file=none.yaml"], "countries_file: none.yaml: there is no such YAML file"),
    ],
)
def test_countries_that_a_recipe_does_not_have_are_refused(settings: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        load_recipe(SMALL, settings)


@pytest.mark.parametrize("how", [["--countries-file", "world"], []])
def test_the_whole_world_is_named_in_place_of_a_file(how: list[str], tmp_path: Path) -> None:
    (tmp_path / "dishes.yaml").write_text(
        "{concept: dishes, hops: 1, roots: [{qid: Q1, label: x}], countries: [BE, XK, FR]}", encoding="utf-8"
    )
    answer = culturekit(*how, "roots", "validate", tmp_path / "dishes.yaml")
    assert answer.returncode == (0 if how else 2)
    assert ("`world` has them all" in " ".join(answer.stdout.split())) is not bool(how)


def test_the_table_of_the_world_is_whole() -> None:
    world, spoken_of = whole_world(), countries()
    codes = {entry.alpha_2: entry.alpha_3 for entry in pycountry.countries}
    codes["XK"] = "XKX"
    assert set(codes) == set(world)
    assert len(world) == 250, "ISO 3166-1, and Kosovo"
    assert all(world[iso] is spoken_of[iso] for iso in spoken_of), "what is shipped for CUBE and CULTIVate stays"
    assert {one.continent for one in world.values()} == {
        "Africa", "Antarctica", "Asia", "Europe", "North America", "Oceania", "South America"
    }  # fmt: skip
    regions = {"North America": "Americas", "South America": "Americas"}
    for one in world.values():
        assert one.adjective, one
        assert one.iso3 == codes[one.iso]
        assert UN_REGIONS[one.un_region] == regions.get(one.continent, one.continent), one
    for said in ("qids", "adjective", "demonym", "name"):
        each = [getattr(one, said) for one in world.values() if getattr(one, said) or said == "qids"]
        assert len(each) == len(set(each)), "two that are called alike are two prompts that say the same"
    assert all(one.qids for one in world.values())
    uninhabited = {"AQ", "BV", "GS", "HM", "TF", "UM"}
    assert {iso for iso, one in world.items() if not one.demonym} == uninhabited


def test_shipped_roots_work_for_any_country_by_one_key() -> None:
    shipped = load_concept("art")
    assert load_concept("art?countries=cultivate").codes == tuple(
        iso for iso in countries() if iso in RECIPES["cultivate"].split()
    )
    assert "BE" not in countries()
    scoped = load_concept("art?countries=BE,ke")
    assert scoped.countries == ("BE", "KE")
    assert scoped.model_copy(update={"countries": shipped.countries}) == shipped
    assert country_files()["own-countries"].name == "world.tsv"
    assert set(load_concept("cuisine?countries=all").codes) == set(whole_world())
    with pytest.raises(UsageError, match=r"no such countries.*unknown country 'XX'"):
        load_concept("art?countries=BE,XX")


M49 = {
    "015": "Northern Africa", "021": "Northern America", "030": "Eastern Asia", "034": "Southern Asia",
    "035": "South-eastern Asia", "039": "Southern Europe", "053": "Australia and New Zealand", "054": "Melanesia",
    "057": "Micronesia", "061": "Polynesia", "143": "Central Asia", "145": "Western Asia", "151": "Eastern Europe",
    "154": "Northern Europe", "155": "Western Europe", "202": "Sub-Saharan Africa",
    "419": "Latin America and the Caribbean",
}  # fmt: skip


def test_items_codes_and_regions_are_those_of_somebody_else() -> None:
    """`country_coder.tsv` is made of borders.json in @rapideditor/country-coder 5.6.1 (ISC), as OpenStreetMap has it.

    Two codes are those of kingdoms there, of which one part has the same name; land of some countries lies elsewhere,
    so that several regions stand there.
    """
    lines = (Path(__file__).parents[1] / "fixtures/country_coder.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines[1:]]
    world = whole_world()
    assert {row[0] for row in rows} == set(world)
    for iso, iso3, items, regions in rows:
        assert world[iso].iso3 == iso3
        assert set(world[iso].qids) <= set(items.split()), iso
        assert world[iso].un_region in {M49[region] for region in regions.split()} or iso == "AQ", iso


LAWS = {
    "BO": "gn", "CH": "rm", "IQ": "ckb", "MK": "sq", "RW": "sw", "SC": "crs", "MG": "-en", "UA": "-ru",
}  # fmt: skip
"""Official by law where CLDR does not have them; with a dash those that it has, and that are not."""


def test_languages_are_those_of_cldr_but_where_laws_say_otherwise() -> None:
    for iso in sorted(set(whole_world()) - set(countries())):
        official = {tag.replace("_", "-") for tag in babel.languages.get_official_languages(iso, de_facto=True)}
        added = LAWS.get(iso, "")
        expected = official - {added[1:]} if added.startswith("-") else official | set(added.split())
        assert set(whole_world()[iso].languages) == expected, iso
