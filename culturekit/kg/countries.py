"""Countries: their items, codes, words and groups, from `countries.yaml` and, where given, a file of the user's own."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.qids import Qid
from culturekit.kg.un_regions import UnRegion
from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, validate
from culturekit.storage.yaml_source import YamlSource, read_yaml

__all__ = [
    "Country",
    "CountryFile",
    "by_qid",
    "countries",
    "country",
    "country_files",
    "use_countries",
    "use_countries_of_recipe",
]

SHIPPED = "kg/countries.yaml"
OWN_FILE = "Your own stand in a file: --countries-file, or the key countries_file of a recipe."


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
    un_region: Annotated[UnRegion, Field(description="The sub-region of the UN's M49.")]
    groups: Annotated[
        Mapping[str, str], Field(description="Schemes, each with its group, such as `cultivate: GS`.")
    ] = {}
    languages: tuple[str, ...]
    search_code: Annotated[str, Field(description="Of a web search.")]

    @property
    def in_a_sentence(self) -> str:
        """The name as it stands within a sentence, such as `the United States`."""
        return f"{self.article} {self.name}" if self.article else self.name


class CountryFile(StrictModel):
    """A file of countries: it adds countries, or replaces those of the same ISO code."""

    countries: tuple[Country, ...]


class Chosen:
    """The user's own file, for this process: what the command line names, or the recipe that was read last."""

    typed: Path | None = None
    stated: Path | None = None

    @classmethod
    def own(cls) -> Path | None:
        """Give the file that counts."""
        return cls.stated or cls.typed


def use_countries(path: Path | None) -> None:
    """Let a file of the user's own add countries, or replace shipped ones by their ISO codes; None takes it back.

    Raises ConfigError with every mistake of the file, and then nothing has changed.
    """
    Chosen.typed, Chosen.stated = checked(path), None
    forget()


def use_countries_of_recipe(path: Path | None) -> None:
    """Let the file that a recipe names count, until another recipe is read.

    Raises UsageError where another is used already, ConfigError with every mistake of the file.
    """
    if path is None and Chosen.stated is None:
        return
    if path is not None and Chosen.typed not in {None, path}:
        raise UsageError(
            "two files of countries are named", found=f"--countries-file {Chosen.typed} and countries_file: {path}",
            expected="one of them",
        )  # fmt: skip
    Chosen.stated = checked(path)
    forget()


def checked(path: Path | None) -> Path | None:
    """Accept a file that fits over the shipped one."""
    if path is not None:
        merge(read_countries(shipped(SHIPPED)), read_countries(path), path)
    return path


def forget() -> None:
    """Read the files again when somebody next asks."""
    countries.cache_clear()
    by_qid.cache_clear()


def country_files() -> dict[str, Path]:
    """Name the files that the countries come from, as inputs of a stage."""
    own = Chosen.own()
    return {"countries": shipped(SHIPPED), **({} if own is None else {"own-countries": own})}


@cache
def countries() -> Mapping[str, Country]:
    """Load all countries, by ISO code."""
    known, own = read_countries(shipped(SHIPPED)), Chosen.own()
    return known if own is None else merge(known, read_countries(own), own)


@cache
def by_qid() -> Mapping[str, Country]:
    """Find a country by its item."""
    return {qid: country for country in countries().values() for qid in country.qids}


def country(iso: str) -> Country:
    """Find a country by its ISO code."""
    found = countries().get(iso)
    if found is None:
        raise UsageError("unknown country", expected=" or ".join(sorted(countries())), found=repr(iso), hint=OWN_FILE)
    return found


def read_countries(path: Path) -> dict[str, Country]:
    """Read a file of countries, each ISO code and each item once."""
    source = read_yaml(path)
    rows = validate(source, CountryFile).countries
    problems = repeated(source, [(index, "iso", row.iso) for index, row in enumerate(rows)])
    problems += repeated(source, [(index, "qids", qid) for index, row in enumerate(rows) for qid in row.qids])
    if problems:
        raise ConfigError(problems)
    return {row.iso: row for row in rows}


def repeated(source: YamlSource, words: list[tuple[int, str, str]]) -> list[Problem]:
    """Say which words stand in the file a second time, and where they stood first."""
    first: dict[str, int] = {}
    problems = []
    for index, key, word in words:
        path = ("countries", index, key)
        line = source.place(path).line
        if word in first:
            message = f"{word} is there twice, first in line {first[word]}"
            problems.append(Problem(message, source.name, line, f"countries[{index}].{key}"))
        first.setdefault(word, line)
    return problems


def merge(known: Mapping[str, Country], own: Mapping[str, Country], path: Path) -> dict[str, Country]:
    """Put the user's countries over the shipped ones; an item still belongs to one country only."""
    merged = {**known, **own}
    owners = {qid: row.iso for row in known.values() if row.iso not in own for qid in row.qids}
    taken = [(qid, row.iso, owners[qid]) for row in own.values() for qid in row.qids if qid in owners]
    if taken:
        message = "{0} is given to {1} and belongs to {2}; to change {2}, give its whole entry"
        raise ConfigError([Problem(message.format(*each), str(path)) for each in taken])
    return merged
