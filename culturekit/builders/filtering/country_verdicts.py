"""One verdict a country: what was decided of each country of a candidate, and the columns that say so.

`country_qids` are the countries that the verdict of the row is about; of a row that is kept for some, `waiting_qids`
wait for a person, and `refused_qids` were refused. A row without these columns has one verdict for all its countries.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from culturekit.core.choices import VerdictWord
from culturekit.kg.countries import by_qid, countries

BEST_FIRST: tuple[VerdictWord, ...] = ("keep", "review", "remove")

WAITING, REFUSED = "waiting_qids", "refused_qids"
BESIDE: tuple[tuple[str, VerdictWord], ...] = ((WAITING, "review"), (REFUSED, "remove"))


def best_word(words: Iterable[VerdictWord]) -> VerdictWord:
    """Give the verdict on a candidate: kept where it is kept for one country, removed where for none is it open."""
    given = set(words)
    return next(word for word in BEST_FIRST if word in given)


def country_key(qid: str) -> str:
    """Name the country of an item by its code; an item that no file of countries knows stands for itself."""
    known = by_qid().get(qid)
    return qid if known is None else known.iso


def country_name(key: str) -> str:
    """Say what a country is called."""
    return countries()[key].name if key in countries() else key


def code_of(text: str) -> str:
    """Read a country from its name, its code or its item."""
    named = {known.name.casefold(): iso for iso, known in countries().items()}
    return named.get(text.casefold(), country_key(text))


def words_of(row: Mapping[str, Any]) -> dict[str, VerdictWord]:
    """Read the verdict on each country of a row, in the order in which the row states them."""
    words: dict[str, VerdictWord] = {country_key(qid): row["verdict"] for qid in row["country_qids"]}
    for name, word in BESIDE:
        for qid in row.get(name) or ():
            words.setdefault(country_key(qid), word)
    return words


def parted(
    stated: Sequence[str], words: Mapping[str, VerdictWord]
) -> tuple[VerdictWord, list[str], list[str], list[str]]:
    """Give the verdict of a row, and its items of countries by column; what was not asked about is left out."""
    verdict = best_word(words.values())
    found: dict[VerdictWord, list[str]] = {word: [] for word in BEST_FIRST}
    for qid in dict.fromkeys(stated):
        if (key := country_key(qid)) in words:
            found[words[key]].append(qid)
    own = found.pop(verdict)
    return verdict, own, found.get("review", []) if verdict == "keep" else [], found.get("remove", [])
