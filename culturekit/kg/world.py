"""The countries of ISO 3166-1 that `countries.yaml` does not have: their words and regions, from `world.tsv`.

Codes are ISO's, regions the UN's M49, and continents follow it; languages are CLDR's (babel), but for eight whose laws
say otherwise; names, articles, adjectives and demonyms were written by hand, no two alike. Each item is what two public
tables of ISO codes agree on. Antarctica is not among them: M49 has no sub-region for it.
"""

import csv
from collections.abc import Iterable, Mapping
from functools import cache

import yaml

from culturekit.kg.countries import Country, countries
from culturekit.storage.package_data import shipped

__all__ = ["WORLD", "countries_text", "whole_world"]

WORLD = "kg/world.tsv"


@cache
def shipped_world() -> Mapping[str, Country]:
    """Read the table."""
    lines = shipped(WORLD).read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return {row["iso"]: entry_of(row) for row in rows}


def entry_of(row: Mapping[str, str]) -> Country:
    """Make a country of a row."""
    iso = row["iso"]
    return Country(
        iso=iso, iso3=row["iso3"], name=row["name"], article=row["article"],
        adjective=row["adjective"], demonym=row["demonym"], continent=row["continent"], qids=tuple(row["qids"].split()),
        un_region=row["un_region"], languages=tuple(row["languages"].split()),
        search_code=iso.lower(),
    )  # fmt: skip


def whole_world() -> Mapping[str, Country]:
    """Give all countries by ISO code: those that culturekit speaks of, the user's own, and the rest of the world."""
    return {**shipped_world(), **countries()}


def countries_text(chosen: Iterable[Country]) -> str:
    """Write a file of countries."""
    parts = ["# From culturekit's table of the world: look over what you know better.\n", "countries:\n"]
    for country in chosen:
        entry = {name: value for name, value in country.model_dump(mode="json").items() if value != "" and value != {}}
        if not country.demonym:
            entry["demonym"] = ""
        text = yaml.safe_dump([entry], allow_unicode=True, sort_keys=False, default_flow_style=None, width=10_000)
        parts.append("".join(f"  {line}\n" for line in text.splitlines()))
    return "".join(parts)
