"""Countries by whatever they are called in English: the code, the name, other usual names, and the adjective."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pycountry

from culturekit.builders.folded_names import folded, without_accents
from culturekit.kg.countries import countries, country_files
from culturekit.storage.package_data import shipped

__all__ = ["NAMES", "country_code"]

NAMES = "builders/country_names.tsv"
"""What ISO 3166-1 does not say: a country's two letters, and more names of it divided by semicolons."""

ISO_NAMES = ("alpha_2", "alpha_3", "name", "common_name", "official_name")


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
    names = {
        folded(getattr(entry, kind)): entry.alpha_2
        for entry in pycountry.countries
        for kind in ISO_NAMES
        if hasattr(entry, kind)
    }
    for line in shipped(NAMES).read_text(encoding="utf-8").splitlines():
        code, usual = line.split("\t")
        names |= {folded(name): code for name in (code, *usual.split("; "))}
    for country in countries().values():
        called = (country.iso, country.iso3, country.name, country.adjective, country.demonym)
        names |= {folded(name): country.iso for name in called}
    return {without_accents(name): code for name, code in names.items()} | names
