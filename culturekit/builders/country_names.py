"""Countries by whatever they are called in English: the code, the name, other usual names, and the adjective."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pycountry
from babel import Locale

from culturekit.builders.folded_names import folded, without_accents
from culturekit.kg.countries import countries, country_files
from culturekit.kg.world import whole_world
from culturekit.storage.package_data import shipped

__all__ = ["NAMES", "country_code", "is_doubtful"]

NAMES = "builders/country_names.tsv"
"""What neither ISO 3166-1 nor CLDR says: a country's two letters, and more names of it divided by semicolons."""

ISO_NAMES = ("alpha_2", "alpha_3", "name", "common_name", "official_name")
DOUBTFUL = "?"
"""Stands where the letters of a country do, for names that mean several or none that is there today."""

APOSTROPHES = str.maketrans("", "", "'’‘`´ʼ")
SMALL_WORDS = {"the", "and", "of"}
ABBREVIATED = {
    "st": "saint", "rep": "republic", "dem": "democratic", "fed": "federal", "federated": "federal", "sts": "states",
    "is": "islands", "isl": "islands", "isls": "islands", "island": "islands", "terr": "territory",
    "territories": "territory", "eq": "equatorial", "fr": "french", "br": "british", "brit": "british",
}  # fmt: skip
"""Words of names, as tables of statistics and maps write them."""
FIRST_LETTERS = {"n": "north", "s": "south", "e": "east", "w": "western"}


@dataclass(frozen=True, slots=True)
class Names:
    """All names with their codes: as they are folded, and by their words in any order."""

    folded: Mapping[str, str]
    by_words: Mapping[str, str]

    def code_of(self, said: str) -> str | None:
        """Find what is called so; None where nothing is."""
        key = folded(said)
        return self.folded.get(key) or self.folded.get(without_accents(key)) or self.by_words.get(words_of(said))


def country_code(said: str | None) -> str | None:
    """Find the two-letter ISO code of a country; None where no country is called that, or more than one."""
    code = None if said is None else known_names(country_files().get("own-countries")).code_of(said)
    return None if code == DOUBTFUL else code


def is_doubtful(said: str) -> bool:
    """Tell whether a name means several countries, or none that is there today."""
    return known_names(country_files().get("own-countries")).code_of(said) == DOUBTFUL


@cache
def known_names(own: Path | None) -> Names:
    """List all names, folded, with accents and without; the user's own file of countries decides some of them.

    Those of the countries that culturekit knows more of go first.
    """
    names: dict[str, str] = {}
    for code, name in called():
        names[folded(name)] = code
    names = {without_accents(name): code for name, code in names.items()} | names
    by_words: dict[str, set[str]] = {}
    for _, name in called():
        if len(name) > len("XXX") and names[folded(name)] != DOUBTFUL:
            by_words.setdefault(words_of(name), set()).add(names[folded(name)])
    return Names(names, {words: codes.pop() for words, codes in by_words.items() if len(codes) == 1})


def called() -> Iterator[tuple[str, str]]:
    """Give codes with names, the surest last."""
    codes = {entry.alpha_2 for entry in pycountry.countries}
    for code, name in Locale("en").territories.items():
        if code in codes:
            yield code, name
    for country in whole_world().values():
        yield from ((country.iso, name) for name in (country.name, country.adjective, country.demonym) if name)
    for entry in pycountry.countries:
        yield from ((entry.alpha_2, getattr(entry, kind)) for kind in ISO_NAMES if hasattr(entry, kind))
    for line in shipped(NAMES).read_text(encoding="utf-8").splitlines():
        code, usual = line.split("\t")
        yield from ((code, name) for name in (code, *usual.split("; ")) if name != DOUBTFUL)
    for country in countries().values():
        for name in (country.iso, country.iso3, country.name, country.adjective, country.demonym):
            yield country.iso, name


def words_of(name: str) -> str:
    """Bring the words of a name into one order, written out and without small ones: `Korea, Rep. of` is one of ours."""
    words = without_accents(folded(name.translate(APOSTROPHES))).split()
    if len(words) > 1:
        words[0] = FIRST_LETTERS.get(words[0], words[0])
    return " ".join(sorted(ABBREVIATED.get(word, word) for word in words if word not in SMALL_WORDS))
