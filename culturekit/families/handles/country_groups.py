"""Schemes that put countries into groups: shipped ones, and a user's own from YAML or CSV."""

import csv
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.countries import UN_REGIONS, countries
from culturekit.storage.spreadsheet_cells import unguarded
from culturekit.storage.yaml_source import read_yaml

__all__ = ["OF_PROMPTS", "SHIPPED", "GroupsGiven", "country_groups", "read_groups"]

Groups = Mapping[str, str]
"""Country, as ISO 3166-1 alpha-2, -> group."""

GroupsGiven: TypeAlias = Annotated[
    Path | Groups | None, Field(description="YAML (scheme: group: [countries]) or CSV (scheme,group,country).")
]


def shipped_schemes() -> dict[str, Groups]:
    """Give the schemes that come with culturekit, for the countries it knows."""
    every = countries().values()
    named = sorted({scheme for country in every for scheme in country.groups})
    return {
        **{scheme: {each.iso: each.groups[scheme] for each in every if scheme in each.groups} for scheme in named},
        "un-m49-region": {each.iso: UN_REGIONS[each.un_region] for each in every},
        "un-m49-subregion": {each.iso: each.un_region for each in every},
    }


SHIPPED = ("cultivate", "un-m49-region", "un-m49-subregion")
"""CULTIVate's Global North and South (16 countries), and the UN's regions and sub-regions."""


OF_PROMPTS = "of-prompts"
"""The scheme by which an image is of the region that its prompt names, whatever its country."""


def country_groups(scheme: str, given: Path | Groups | None = None) -> Groups:
    """Find a scheme among a user's own, where a file is given, or among the shipped ones; groups stay what they are."""
    if isinstance(given, Mapping):
        return given
    if scheme == OF_PROMPTS and given is None:
        return {}
    schemes = shipped_schemes() if given is None else read_groups(given)
    if scheme not in schemes:
        raise UsageError(
            f"there is no scheme {scheme!r} of country groups",
            where="" if given is None else str(given),
            expected=" or ".join(sorted(schemes)),
            hint="A scheme of your own comes from a file: --groups of `culturekit score`." if given is None else "",
        )
    return schemes[scheme]


def read_groups(path: Path) -> dict[str, Groups]:
    """Read schemes from YAML (scheme, group, list of countries) or CSV (columns scheme, group, country)."""
    if path.suffix.lower() in {".yaml", ".yml"}:
        rows = yaml_rows(path)
    elif path.suffix.lower() == ".csv":
        rows = csv_rows(path)
    else:
        raise UsageError("groups are read from YAML or CSV", where=str(path), expected="a .yaml, .yml or .csv file")
    schemes: dict[str, dict[str, str]] = {}
    problems = []
    for line, scheme, group, country in rows:
        known = schemes.setdefault(scheme, {})
        if len(country) != 2 or not country.isalpha() or not country.isupper():
            message = f"a country is an ISO 3166-1 alpha-2 code such as NO, found {country!r}"
            problems.append(Problem(message, str(path), line))
        elif not (scheme or "").strip() or not (group or "").strip():
            problems.append(Problem(f"the scheme or the group of {country} has no name", str(path), line))
        elif known.setdefault(country, group) != group:
            message = f"{country} is in two groups of {scheme}: {known[country]} and {group}"
            problems.append(Problem(message, str(path), line))
    if problems:
        raise ConfigError(problems)
    return dict(schemes)


def yaml_rows(path: Path) -> list[tuple[int, str, str, str]]:
    """Read line, scheme, group and country of each entry of a YAML file."""
    source = read_yaml(path)
    problems = list(source.problems)
    rows: list[tuple[int, str, str, str]] = []
    shape = "write scheme, then group, then a list of countries"
    if not isinstance(source.value, dict):
        raise ConfigError([*problems, Problem(shape, str(path), 1)])
    for scheme, groups in source.value.items():
        for group, members in (groups if isinstance(groups, dict) else {"": None}).items():
            if not isinstance(members, list) or not all(isinstance(member, str) for member in members):
                line = source.place((scheme, group) if group else (scheme,)).line
                problems.append(Problem(shape, str(path), line, f"{scheme}.{group}".rstrip(".")))
                continue
            rows += [
                (source.place((scheme, group, place)).line, scheme, group, str(country))
                for place, country in enumerate(members)
            ]
    if problems:
        raise ConfigError(problems)
    return rows


def csv_rows(path: Path) -> list[tuple[int, str, str, str]]:
    """Read line, scheme, group and country of each row of a CSV file."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = {"scheme", "group", "country"} - set(reader.fieldnames or ())
            if missing:
                raise UsageError(
                    "a CSV of groups has the columns scheme, group, country",
                    where=str(path),
                    found=f"no {', '.join(sorted(missing))}",
                )
            return [
                (reader.line_num, *(unguarded((row[name] or "").strip()) for name in ("scheme", "group", "country")))  # type: ignore[misc]
                for row in reader
            ]
    except FileNotFoundError as error:
        raise UsageError("there is no such file", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), found=f"byte {error.start}") from error
