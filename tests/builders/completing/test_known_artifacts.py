from pathlib import Path

import polars as pl
import pytest

from culturekit.builders.country_names import country_code, folded, without_accents
from culturekit.builders.judging.geo_tag import KnownArtifacts
from culturekit.core.schemas import CSPACE
from culturekit.core.tables import write_table
from culturekit.kg.countries import countries
from tests.builders.spaces import artifact, cspace


@pytest.fixture
def space(tmp_path: Path) -> KnownArtifacts:
    rows = [
        artifact(1, name="Feijoada"),
        artifact(1, name="Feijoada", country="PT", country_name="Portugal", continent="Europe", country_order=1),
        artifact(2, name="Açaí", aliases=["acai bowl", "Açaí na tigela"]),
        artifact(3, name="Dolma", country="TR", country_name="Turkey", continent="Asia"),
        artifact(4, name="dolma", country="GR", country_name="Greece", continent="Europe"),
        artifact(5, name="Kente", concept="art", country="GH", continent="Africa"),
        artifact(6, name="Kente", concept="clothing", country="GH", continent="Africa"),
        artifact(7, name="キムチ", country="KR", continent="Asia"),
    ]
    frame = cspace(*rows)
    orders = [row.get("country_order", 0) for row in rows]
    aliases = [row.get("aliases") for row in rows]
    frame = frame.with_columns(
        country_order=pl.Series(orders, dtype=pl.UInt16), aliases=pl.Series(aliases, dtype=pl.List(pl.String))
    )
    return KnownArtifacts(write_table(tmp_path, CSPACE, frame))


@pytest.mark.parametrize(
    ("name", "country", "concept", "found"),
    [
        ("feijoada", None, None, "Q1"), ("  FEIJOADA! ", "BR", None, "Q1"), ("feijoada", "PT", None, "Q1"),
        ("feijoada", "FR", None, "country of another"), ("Acai", None, None, "Q2"), ("acai  bowl", None, None, "Q2"),
        ("ACAI NA TIGELA", "BR", None, "Q2"), ("dolma", "GR", None, "Q4"), ("Dolma", "TR", None, "Q3"),
        ("dolma", None, None, "name of several"), ("dolma", "FR", None, "country of another"),
        ("kente", "GH", None, "name of several"), ("kente", "GH", "clothing", "Q6"), ("kente", None, "art", "Q5"),
        ("kente", "GH", "cuisine", "name of several"), ("ｷﾑﾁ", None, None, "Q7"),
        ("pizza", None, None, "unknown name"), ("!?", None, None, "unknown name"),
    ],
)  # fmt: skip
def test_a_name_finds_its_artifact_or_the_reason_why_not(
    space: KnownArtifacts, name: str, country: str | None, concept: str | None, found: str
) -> None:
    artifact, how = space.find(name, country=country, concept=concept)
    assert (artifact.artifact_id if artifact else how) == found
    assert (how == "reconciled") == (artifact is not None)


def test_of_several_countries_the_first_wanted_one_is_chosen_else_the_one_stated_first(space: KnownArtifacts) -> None:
    found, _ = space.find("feijoada", country=None)
    assert found is not None
    assert found.country("PT", "BR") == ("PT", "Europe")
    assert found.country("FR", "PT") == ("PT", "Europe")
    assert found.country(None, "FR") == ("BR", "South America")


def test_every_country_that_culturekit_knows_is_found_by_all_its_names() -> None:
    for iso, country in countries().items():
        for name in (iso, country.iso3, country.name, country.adjective, country.name.lower()):
            assert country_code(name) == iso
    assert [country_code(said) for said in (None, "", "ZZ", "Mars")] == [None] * 4


def test_only_accents_are_left_out_and_no_marks_of_a_script() -> None:
    assert without_accents("crème brûlée") == "creme brulee"
    assert without_accents("बिरयानी") == "बिरयानी"
    assert without_accents(folded("がっこう")) == folded("がっこう")
