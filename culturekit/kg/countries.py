"""Countries: their items, codes, words and groups, from `countries.yaml` and, where given, a file of the user's own.

`world.tsv` has the rest of the world: ISO 3166-1, and Kosovo under the code that CLDR has for it. Regions are the UN's
M49, whose continents are ours; languages CLDR's (babel), but for eight whose laws say otherwise; names, articles,
adjectives and demonyms were written by hand, no two alike. Items are what two public tables of ISO codes agree on, and
what OpenStreetMap's country-coder has.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import AfterValidator, Field

from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.yaml_source import StrictModel, YamlSource, closest, read_yaml, validate

# Item identifiers, checked once at the border.

ADDRESS = re.compile(r"wd:|https?://www\.wikidata\.org/(?:wiki|entity)/")  # what may stand before an item
QID = re.compile(r"^Q[1-9][0-9]*\Z")


def check_qid(text: str) -> str:
    """Accept a QID."""
    if not QID.match(text) or int(text[1:]) >= 2**32:
        raise ValueError(f"a QID is Q and a number, found {text[:40]!r}")
    return text


Qid = Annotated[str, AfterValidator(check_qid)]


def number_of_item(qid: str) -> int:
    """Read a QID that a user typed: `Q42` is 42."""
    if not QID.match(qid) or int(qid[1:]) >= 2**32:
        raise UsageError("not an item", expected="a QID such as Q42", found=repr(qid))
    return int(qid[1:])


def wikipedia_of(language: str) -> str:
    """Name the Wikipedia of a language of labels: there is one for all that Portuguese is spoken."""
    return "pt" if language.startswith("pt-") else language


# The sub-regions of UN M49, each with its region.
UN_REGIONS: Mapping[str, str] = {
    "Antarctica": "Antarctica",
    "Australia and New Zealand": "Oceania",
    "Central Asia": "Asia",
    "Eastern Asia": "Asia",
    "Eastern Europe": "Europe",
    "Latin America and the Caribbean": "Americas",
    "Melanesia": "Oceania",
    "Micronesia": "Oceania",
    "Northern Africa": "Africa",
    "Northern America": "Americas",
    "Northern Europe": "Europe",
    "Polynesia": "Oceania",
    "South-eastern Asia": "Asia",
    "Southern Asia": "Asia",
    "Southern Europe": "Europe",
    "Sub-Saharan Africa": "Africa",
    "Western Asia": "Asia",
    "Western Europe": "Europe",
}


def _check_region(name: str) -> str:
    """Accept a sub-region of M49."""
    if name not in UN_REGIONS:
        raise ValueError(f"no sub-region of UN M49: {name!r}{closest(name, sorted(UN_REGIONS))}")
    return name


SHIPPED = "kg/countries.yaml"
WORLD = "kg/world.tsv"
CARRIED = "countries.yaml"  # beside a cultural space: those of its countries that are not shipped, or not as shipped
_THE_WORLD = Path("world")  # stands in place of a file for all countries there are
_HEADER = (
    "# From culturekit's table of the world: codes ISO 3166-1, regions UN M49, languages CLDR, items Wikidata; names,\n"
    "# adjectives and demonyms by hand: look over what you know better.\n"
    "countries:\n"
)
OWN_FILE = "Others stand in a file: --countries-file, or the key countries_file of a recipe; `world` has them all."


class Country(StrictModel):
    """A country as culturekit speaks of it."""

    iso: Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
    iso3: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    name: str
    article: str = ""
    adjective: str
    demonym: str
    continent: Annotated[str, Field(description="One, so that labels nest.")]
    qids: Annotated[
        tuple[Qid, ...],
        Field(description="Items whose statements of a country mean this one; historic states only when listed."),
    ]
    un_region: Annotated[str, AfterValidator(_check_region), Field(description="The sub-region of the UN's M49.")]
    groups: Annotated[
        Mapping[str, str], Field(description="Schemes, each with its group, such as `cultivate: GS`.")
    ] = {}
    languages: tuple[str, ...]
    search_code: Annotated[str, Field(description="Of a web search.")]

    @property
    def in_a_sentence(self) -> str:
        """The name as it stands within a sentence, such as `the United States`."""
        return f"{self.article} {self.name}" if self.article else self.name

    def unshared(self) -> Iterator[tuple[str, str]]:
        """Give what belongs to one country only, under its key: prompts of two that share a word would say the same."""
        yield from (("name", self.name), ("adjective", self.adjective))
        yield from (("qids", qid) for qid in self.qids)


class CountryFile(StrictModel):
    """A file of countries: it adds countries, or replaces those of the same ISO code."""

    countries: tuple[Country, ...]


class _Chosen:
    """The user's file, for this process: what the command line names, or the recipe that was read last.

    Where neither names one, the files that cultural spaces carry count.
    """

    typed: Path | None = None
    stated: Path | None = None
    carried: tuple[Path, ...] = ()

    @classmethod
    def files(cls) -> tuple[Path, ...]:
        """Give the files that count."""
        named = cls.stated or cls.typed
        return cls.carried if named is None else (named,)


def use_countries(path: Path | None) -> None:
    """Let a file of the user's add countries, or replace shipped ones by their ISO codes; None takes it back.

    Raises ConfigError with every mistake of the file, and then nothing has changed.
    """
    _Chosen.typed, _Chosen.stated, _Chosen.carried = _checked(path), None, ()
    _forget()


def typed_countries() -> Path | None:
    """Give the file that the command line names, as it may be named there."""
    return _THE_WORLD if _Chosen.typed == shipped(WORLD) else _Chosen.typed


def use_countries_of_recipe(path: Path | None) -> None:
    """Let the file that a recipe names count, until another recipe is read.

    Raises UsageError where another is used already, ConfigError with every mistake of the file.
    """
    if path is None and _Chosen.stated is None:
        return
    if path is not None and _Chosen.typed not in {None, file_of(path)}:
        raise UsageError(
            "two files of countries are named", found=f"--countries-file {_Chosen.typed} and countries_file: {path}",
            expected="one of them",
        )  # fmt: skip
    _Chosen.stated = _checked(path)
    _forget()


def use_countries_beside(*spaces: Path) -> None:
    """Let the countries that cultural spaces carry count where no file is named, until other spaces are read."""
    beside = dict.fromkeys(space.parent / CARRIED for space in spaces)
    carried = tuple(path for path in beside if path.is_file() and _countries_in(path))
    if carried != _Chosen.carried:
        _Chosen.carried = carried
        _forget()


def _checked(path: Path | None) -> Path | None:
    """Accept a file that fits over the shipped one."""
    if path is not None:
        path = file_of(path)
        _merge(_shipped_countries(), read_countries(path), path)
    return path


def file_of(path: Path) -> Path:
    """Give the file that is named, or the shipped one of all countries."""
    return shipped(WORLD) if path == _THE_WORLD else path


def _forget() -> None:
    """Read the files again when somebody next asks."""
    countries.cache_clear()
    by_qid.cache_clear()


def country_files() -> dict[str, Path]:
    """Name the files that the countries come from, as inputs of a stage."""
    files = {"countries": shipped(SHIPPED)}
    for number, path in enumerate(_Chosen.files(), 1):
        files["own-countries" if number == 1 else f"own-countries-{number:02}"] = path
    return files


@cache
def countries() -> Mapping[str, Country]:
    """Load all countries, by ISO code."""
    known = _shipped_countries()
    for path in _Chosen.files():
        known = _merge(known, read_countries(path), path)
    return known


@cache
def by_qid() -> Mapping[str, Country]:
    """Find a country by its item."""
    return {qid: country for country in countries().values() for qid in country.qids}


def own_countries(isos: Iterable[str]) -> list[Country]:
    """List those of some countries that are not shipped, or not as they are."""
    known = _shipped_countries()
    return [whole_world()[iso] for iso in sorted(isos) if iso not in known or known[iso] != whole_world()[iso]]


def whole_world() -> Mapping[str, Country]:
    """Give all countries by ISO code: those that culturekit speaks of, the user's, and the rest of the world."""
    return {**_shipped_world(), **countries()}


def country(iso: str) -> Country:
    """Find a country by its ISO code."""
    found = countries().get(iso)
    if found is None:
        raise UsageError(
            f"unknown country: {not_in_use(iso)}" if iso in whole_world() else "unknown country",
            expected=" or ".join(sorted(countries())), found=repr(iso), hint=OWN_FILE,
        )  # fmt: skip
    return found


def not_in_use(iso: str) -> str:
    """Say which country of the world has a code that no file in use has, and how it comes in."""
    draft = f"culturekit roots init --country {iso} > countries.yaml"
    return f"{iso} is {whole_world()[iso].name}: draft its entry with `{draft}`"


def read_countries(path: Path) -> Mapping[str, Country]:
    """Read a file of countries, each code, item and word of prompts once."""
    if path == shipped(WORLD):
        return _shipped_world()
    return _shipped_countries() if path == shipped(SHIPPED) else _countries_in(path)


@cache
def _shipped_world() -> Mapping[str, Country]:
    """Read the table of the world."""
    lines = shipped(WORLD).read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
    return {
        row["iso"]: Country.model_validate(
            {
                **row, "qids": tuple(row["qids"].split()), "languages": tuple(row["languages"].split()),
                "search_code": row["iso"].lower(),
            }
        )
        for row in rows
    }  # fmt: skip


@cache
def _shipped_countries() -> Mapping[str, Country]:
    """Read the shipped file, once for all who add theirs to it."""
    return _countries_in(shipped(SHIPPED))


def _countries_in(path: Path) -> dict[str, Country]:
    """Read a file of YAML."""
    source = read_yaml(path)
    rows = validate(source, CountryFile).countries
    if problems := _repeated(source, rows):
        raise ConfigError(problems)
    return {row.iso: row for row in rows}


def _repeated(source: YamlSource, rows: Iterable[Country]) -> list[Problem]:
    """Say which words stand in the file a second time, and where they stood first."""
    first: dict[tuple[str, str], int] = {}
    problems = []
    for index, row in enumerate(rows):
        for key, word in (("iso", row.iso), *row.unshared()):
            line = source.position(("countries", index, key)).line
            if (key, word) in first:
                message = f"{word} is there twice, first in line {first[key, word]}"
                problems.append(Problem(message, source.name, line, f"countries[{index}].{key}"))
            first.setdefault((key, word), line)
    return problems


def _merge(known: Mapping[str, Country], added: Mapping[str, Country], path: Path) -> dict[str, Country]:
    """Put the user's countries over the shipped ones; what belongs to one country still belongs to one only."""
    owners = {word: row.iso for row in known.values() if row.iso not in added for word in row.unshared()}
    taken = [(word[1], row.iso, owners[word]) for row in added.values() for word in row.unshared() if word in owners]
    if taken:
        message = "{0} is given to {1} and belongs to {2}; to change {2}, give its whole entry"
        raise ConfigError([Problem(message.format(*each), str(path)) for each in taken])
    return {**known, **added}


def countries_text(chosen: Iterable[Country]) -> str:
    """Write a file of countries."""
    parts = [_HEADER]
    for country in chosen:
        entry = {name: value for name, value in country.model_dump(mode="json").items() if value != "" and value != {}}
        if not country.demonym:
            entry["demonym"] = ""
        text = yaml.safe_dump([entry], allow_unicode=True, sort_keys=False, default_flow_style=None, width=10_000)
        parts.append("".join(f"  {line}\n" for line in text.splitlines()))
    return "".join(parts)
