"""Countries by whatever they are called in English: the code, the item, the name, other usual names, the adjective."""

import logging
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

import polars as pl
import pycountry
from babel import Locale

from culturekit.core.digests import once_per_state
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.kg.countries import ADDRESS, WORLD, countries, country_files, read_countries, whole_world

logger = logging.getLogger(__name__)

# Names without what differs between two ways of writing the same one, and keys that equal names share.

ACCENTED_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")


def folded(name: str) -> str:
    """Leave out case, width, punctuation and spaces at the ends; what stands between words is one space.

    Marks that belong to the letters of a script stay, as do accents: they can tell two names apart.
    """
    plain = unicodedata.normalize("NFC", unicodedata.normalize("NFKC", name).casefold())
    kept = (character if unicodedata.category(character)[0] in "LNM" else " " for character in plain)
    return " ".join("".join(kept).split())


def without_accents(name: str) -> str:
    """Leave out the accents of a folded name, where they stand on Latin, Greek or Cyrillic letters."""
    bare: list[str] = []
    accented = False
    for character in unicodedata.normalize("NFD", name):
        if unicodedata.combining(character) and accented:
            continue
        accented = unicodedata.name(character, "").startswith(ACCENTED_SCRIPTS)
        bare.append(character)
    return unicodedata.normalize("NFC", "".join(bare))


# Where letters lie that folding changes though they are small; none does elsewhere.
CASED = (range(0x3000), range(0xA000, 0xB000), range(0xF900, 0x10000))


def loose_key(text: pl.Expr) -> pl.Expr:
    """Leave the letters and digits of a column of texts, without case, width, accents and what stands between words.

    Two names that `folded` makes equal have equal keys, as have two whose accents agree. Who compares names looks at
    those of equal keys only.
    """
    small = text.str.normalize("NFKC").str.to_lowercase().str.replace_many(dict(case_folds()))
    return small.str.normalize("NFKD").str.replace_all(r"[^\p{L}\p{N}]+", "")


@lru_cache(maxsize=65_536)
def loose_key_of(name: str) -> str:
    """Give the key of one name: the same as that of a column."""
    small = unicodedata.normalize("NFKC", name).lower().translate(_case_folds_by_number())
    return "".join(one for one in unicodedata.normalize("NFKD", small) if unicodedata.category(one)[0] in "LN")


def names_among(frame: pl.DataFrame, keys: pl.Series) -> pl.DataFrame:
    """Keep the rows that a label, a title or an alias of some keys stands in."""
    with_row = frame.with_row_index("row")
    named = pl.concat(
        [
            with_row.select("row", name="label"),
            with_row.select("row", name="title"),
            with_row.select("row", name=pl.col("aliases")).explode("name"),
        ]
    ).drop_nulls()
    is_ascii = pl.col("name").str.len_bytes() == pl.col("name").str.len_chars()
    # The same key for texts of ASCII alone, for a quarter of the work: most names in a graph are such texts.
    ascii_key = pl.col("name").str.to_lowercase().str.replace_all(r"[^a-z0-9]+", "")
    parts = ((is_ascii, ascii_key), (~is_ascii, loose_key(pl.col("name"))))
    hits = pl.concat(named.filter(which).filter(key.is_in(keys.implode())).select("row") for which, key in parts)
    return with_row.join(hits, on="row", how="semi", maintain_order="left").drop("row")


@cache
def case_folds() -> Mapping[str, str]:
    """List the few letters that folding changes though they are small already, such as `ß`."""
    small = {character.lower() for character in map(chr, chain(*CASED))}
    return {letter: letter.casefold() for letter in sorted(small) if letter.casefold() != letter}


@cache
def _case_folds_by_number() -> Mapping[int, str]:
    return str.maketrans(dict(case_folds()))


# What neither ISO 3166-1 nor CLDR says: a country's two letters, and more names of it divided by semicolons.
NAMES = "builders/country_names.tsv"
ISO_NAMES = ("alpha_2", "alpha_3", "name", "common_name", "official_name")
DOUBTFUL = "?"  # stands where the letters of a country do, for names that mean several or none that is there today
UNKNOWN, DOUBT, READ_AS = "unknown country", "country in doubt", "country read as"

_OF_UK = ("GB", "a part of it; a file of countries may have it as one of its own")
# Names that may mean something else than what they are read as, with the code of that, and what to know.
SEVERAL = {
    "korea": ("KR", "write North Korea or KP for the other"),
    "congo": ("CG", "write DR Congo or CD for the other"),
    "georgia": ("GE", "the country, not the state of the US"),
    "gaza": ("PS", "a part of it"),
    "west bank": ("PS", "a part of it"),
    **dict.fromkeys(("scotland", "england", "wales", "northern ireland"), _OF_UK),
}

# What divides several countries of a cell, the surest first; what is a country as a whole is not divided.
BETWEEN = (re.compile(r"[;|/\n]"), re.compile(","), re.compile(" and | & "))
IN_BRACKETS = re.compile(r"([^()]+)\(([^()]+)\)")
# Codes of ISO 3166-1 for places behind which lists write a country, as in `Hong Kong, China`: they mean the place.
PART_OF = {
    "AU": "CC CX HM NF", "CN": "HK MO TW", "DK": "FO GL", "FI": "AX", "FR": "BL GF GP MF MQ NC PF PM RE TF WF YT",
    "GB": "AI BM FK GG GI GS IM IO JE KY MS PN SH TC VG", "NL": "AW BQ CW SX", "NO": "BV SJ", "NZ": "CK NU TK",
    "US": "AS GU MP PR UM VI",
}  # fmt: skip
# Countries that share their names with a region of another, as in `Georgia, USA`.
NAMESAKES = {"BE": "LU", "GR": "MK", "IR": "AZ", "NG": "NE", "RO": "MD", "US": "GE WS"}
APOSTROPHES = str.maketrans("", "", "'’‘`´ʼ")
SMALL_WORDS = {"the", "and", "of"}
ABBREVIATED = {
    "st": "saint", "rep": "republic", "dem": "democratic", "fed": "federal", "federated": "federal", "sts": "states",
    "is": "islands", "isl": "islands", "isls": "islands", "island": "islands", "terr": "territory",
    "territories": "territory", "eq": "equatorial", "fr": "french", "br": "british", "brit": "british",
}  # fmt: skip # words of names, as tables of statistics and maps write them
FIRST_LETTERS = {"n": "north", "s": "south", "e": "east", "w": "western"}


@dataclass(frozen=True, slots=True)
class Names:
    """All names with their codes: as they are folded, and by their words in any order."""

    folded: Mapping[str, str]
    by_words: Mapping[str, str]

    def code_of(self, text: str) -> str | None:
        """Find what is called so; None where nothing is."""
        key = folded(text)
        return self.folded.get(key) or self.folded.get(without_accents(key)) or self.by_words.get(words_of(text))


@dataclass(frozen=True, slots=True)
class CountryReading:
    """What a cell says of one country: its words, the code of it, or why there is none."""

    text: str
    iso: str = ""
    problem: str = ""


def country_code(text: str | None) -> str | None:
    """Find the two-letter ISO code of a country; None where no country is called that, or more than one."""
    return None if text is None else one_country(text).iso or None


def named_country(text: str) -> str:
    """Find the code of the one country that is called so; else say what is called nearly so."""
    found = one_country(text)
    if found.problem:
        near = " or ".join(called_nearly(text))
        raise UsageError(
            found.problem, found=repr(text), hint="Give its item, its code or its name in English.",
            expected=f"such as {near}" if near else "",
        )  # fmt: skip
    if words := read_as(found):
        logger.warning(words)
    return found.iso


def called_nearly(text: str, *, cutoff: float = 0.6) -> list[str]:
    """List up to three countries that are called nearly so."""
    names = known_names(country_files().get("own-countries")).folded
    near = {names[key] for key in get_close_matches(folded(text), names, n=3, cutoff=cutoff)} - {DOUBTFUL}
    return sorted(whole_world()[code].name for code in near)


def near_to(text: str) -> str:
    """Offer what an unknown name of a country may mean; empty where nothing is called nearly so."""
    near = called_nearly(text, cutoff=0.75)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def read_as(reading: CountryReading) -> str:
    """Say of a name that may mean something else what it was read as; empty of all others."""
    iso, note = SEVERAL.get(folded(reading.text), ("", ""))
    return f"{reading.text} is read as {whole_world()[iso].name} ({iso}): {note}" if iso and reading.iso == iso else ""


def one_country(text: str) -> CountryReading:
    """Read what is called by one name, code or item."""
    code = known_names(country_files().get("own-countries")).code_of(ADDRESS.sub("", text.strip()))
    if code is None or code == DOUBTFUL:
        return CountryReading(text, problem=UNKNOWN if code is None else DOUBT)
    return CountryReading(text, code)


def countries_in(cell: str) -> list[CountryReading]:
    """Divide a cell into what it calls countries, each once; what is one as a whole is not divided."""
    cell = ADDRESS.sub("", cell)
    found = one_country(cell)
    if found.problem != UNKNOWN:
        return [found]
    for between in BETWEEN:
        parts = [part.strip() for part in between.split(cell) if part.strip()]
        if between.pattern == "," and len(parts) == 2 and (reading := place_in(cell, *parts)).text:
            return [reading]
        if len(parts) > 1:
            each = list({one.iso or one.text: one for part in parts for one in countries_in(part)}.values())
            known = [one.problem != UNKNOWN for one in each]
            is_sure = any(known) if between is BETWEEN[0] else all(one.iso for one in each)
            return each if is_sure else [found]
    pair = IN_BRACKETS.fullmatch(cell)
    return [place_in(cell, *pair.groups(), alone=True) if pair else found]


def place_in(cell: str, name: str, outside: str, *, alone: bool = False) -> CountryReading:
    """Read a place with its country behind it; empty where they are two countries; `alone` they are none."""
    inner, outer = one_country(name).iso, one_country(outside).iso
    if inner and (inner == outer or inner in PART_OF.get(outer, "").split()):
        return CountryReading(cell, inner)
    both = {inner: outer, outer: inner}
    near = any(one in f"{PART_OF.get(other, '')} {NAMESAKES.get(other, '')}".split() for one, other in both.items())
    if inner and outer and (near or alone):
        return CountryReading(cell, problem=DOUBT)
    return CountryReading(cell, problem=UNKNOWN) if alone else CountryReading("")


@once_per_state
def known_names(path: Path | None) -> Names:
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
        called_so = (country.iso, country.iso3, country.name, country.adjective, country.demonym, *country.qids)
        yield from ((country.iso, name) for name in called_so if name)
    for entry in pycountry.countries:
        yield from ((entry.alpha_2, getattr(entry, kind)) for kind in ISO_NAMES if hasattr(entry, kind))
    for line in shipped(NAMES).read_text(encoding="utf-8").splitlines():
        code, usual = line.split("\t")
        yield from ((code, name) for name in (code, *usual.split("; ")) if name != DOUBTFUL)
    for iso, country in countries().items():
        if country is not read_countries(shipped(WORLD)).get(iso):
            yield from ((iso, name) for name in (iso, country.iso3, country.name, country.adjective, country.demonym))


def words_of(name: str) -> str:
    """Bring the words of a name into one order, written out and without small ones: `Korea, Rep. of` is one of ours."""
    words = without_accents(folded(name.translate(APOSTROPHES))).split()
    if len(words) > 1:
        words[0] = FIRST_LETTERS.get(words[0], words[0])
    return " ".join(sorted(ABBREVIATED.get(word, word) for word in words if word not in SMALL_WORDS))
