"""Countries by whatever they are called in English: the code, the name, other usual names, and the adjective."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from culturekit.builders.folded_names import folded, without_accents
from culturekit.kg.countries import countries, country_files
from culturekit.storage.package_data import shipped

__all__ = ["NAMES", "country_code"]

NAMES = "builders/country_names.tsv"
"""ISO 3166-1: two letters, three letters, and names divided by semicolons."""


def country_code(said: str | None) -> str | None:
    """Find the two-letter ISO code of a country; None where no country is called that."""
    if said is None:
        return None
    names, key = known_names(country_files().get("own-countries")), folded(said)
    return names.get(key) or names.get(without_accents(key))


@cache
def known_names(own: Path | None) -> Mapping[str, str]:
    """List all names, folded, with accents and without; the user's own file of countries decides some of them.

    Those of the countries that culturekit knows more of go first.
    """
    names: dict[str, str] = {}
    for line in shipped(NAMES).read_text(encoding="utf-8").splitlines():
        two, three, usual = line.split("\t")
        names |= {folded(name): two for name in (two, three, *usual.split("; "))}
    for country in countries().values():
        called = (country.iso, country.iso3, country.name, country.adjective, country.demonym)
        names |= {folded(name): country.iso for name in called}
    return {without_accents(name): code for name, code in names.items()} | names
