"""Schemes of country groups: the shipped ones, a user's own, and what is said of broken files."""

from pathlib import Path

import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.kg.countries import countries
from culturekit.scores.image_levels import SHIPPED, country_groups, read_groups


def test_cultivate_has_the_sixteen_countries_of_the_paper() -> None:
    groups = country_groups("cultivate")
    north = sorted(country for country, group in groups.items() if group == "GN")
    south = sorted(country for country, group in groups.items() if group == "GS")
    assert north == ["DE", "ES", "FR", "IT", "US"]
    assert south == ["BR", "CN", "ID", "IN", "IR", "MX", "NG", "NP", "PH", "TR", "ZA"]


def test_every_country_has_a_region_and_a_subregion() -> None:
    regions, subregions = country_groups("un-m49-region"), country_groups("un-m49-subregion")
    assert set(regions) == set(subregions) == set(countries())
    assert set(regions.values()) == {"Africa", "Americas", "Asia", "Europe", "Oceania"}
    assert (regions["TR"], subregions["TR"]) == ("Asia", "Western Asia")
    assert (regions["MX"], subregions["MX"]) == ("Americas", "Latin America and the Caribbean")


def test_the_shipped_schemes_are_those_that_are_named() -> None:
    for scheme in SHIPPED:
        assert country_groups(scheme)
    with pytest.raises(UsageError, match="no scheme 'undp' of country groups; expected cultivate or un-m49-region"):
        country_groups("undp")


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_of_ones_own_keeps_norway(tmp_path: Path) -> None:
    yaml = written(tmp_path / "own.yaml", "nordic:\n  north: [NO, IS]\n  other:\n    - DE\nsize:\n  large: [US]\n")
    table = written(
        tmp_path / "own.csv", "scheme,group,country,note\nnordic,north,NO,x\nnordic,north,IS,\nnordic,other,DE,\n"
    )
    assert read_groups(yaml)["nordic"] == read_groups(table)["nordic"] == {"NO": "north", "IS": "north", "DE": "other"}
    assert country_groups("size", yaml) == {"US": "large"}
    with pytest.raises(UsageError, match=r"own.yaml: there is no scheme 'cultivate'.*expected nordic or size"):
        country_groups("cultivate", yaml)


@pytest.mark.parametrize(
    ("name", "text", "messages"),
    [
        ("a.yaml", "s:\n  g: [Norway]\n  h: [DE, NO]\n  i: [NO]\n", ["a.yaml:2: a country is an ISO 3166-1 alpha-2",
         "a.yaml:4: NO is in two groups of s: h and i"]),
        ("a.yaml", "s:\n  g: DE\n", ["a.yaml:2: s.g: write scheme, then group, then a list of countries"]),
        ("a.yaml", "- DE\n", ["write scheme, then group, then a list of countries"]),
        ("a.yaml", "s: [DE]\n", ["s: write scheme, then group, then a list of countries"]),
        ("a.csv", "scheme,group,country\ns,g,de\n", ["a.csv:2: a country is an ISO 3166-1 alpha-2 code"]),
    ],
)  # fmt: skip
def test_every_mistake_is_listed_with_its_line(tmp_path: Path, name: str, text: str, messages: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        read_groups(written(tmp_path / name, text))
    for message in messages:
        assert message in str(caught.value)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_groups(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="there is no such YAML file"):
        read_groups(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="lacks the column group; expected scheme, group, country"):
        read_groups(written(tmp_path / "a.csv", "scheme,country\ns,DE\n"))
    with pytest.raises(UsageError, match="groups are read from YAML or CSV"):
        read_groups(written(tmp_path / "a.txt", ""))
    (tmp_path / "b.csv").write_bytes(b"scheme,group,country\n\xff\n")
    with pytest.raises(UsageError, match="not in UTF-8"):
        read_groups(tmp_path / "b.csv")


@pytest.mark.parametrize("line", ["mine, ,BR", ",A,BR"])
def test_a_group_without_a_name_is_refused(tmp_path: Path, line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_groups(written(tmp_path / "groups.csv", f"scheme,group,country\nmine,A,FR\n{line}\n"))
    assert "groups.csv:3: the scheme or the group of BR has no name" in str(refused.value.problems[0])
