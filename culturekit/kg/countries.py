"""Countries: their items, codes, words and groups, from `countries.yaml`."""

from collections.abc import Mapping
from functools import cache
from typing import Annotated

from pydantic import Field

from culturekit.errors import UsageError
from culturekit.kg.qids import Qid
from culturekit.storage.package_data import shipped
from culturekit.storage.yaml_model import StrictModel, load_model

__all__ = ["Country", "by_qid", "countries", "country"]


class Country(StrictModel):
    """A country as culturekit speaks of it."""

    iso: Annotated[str, Field(pattern=r"^[A-Z]{2}$")]
    iso3: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    name: str
    adjective: str
    demonym: str
    continent: str
    qids: Annotated[tuple[Qid, ...], Field(min_length=1)]
    un_region: str
    groups: Mapping[str, str] = {}
    languages: tuple[str, ...]
    search_code: str


class CountryFile(StrictModel):
    """The file as a whole."""

    countries: tuple[Country, ...]


@cache
def countries() -> Mapping[str, Country]:
    """Load all countries, by ISO code."""
    return {country.iso: country for country in load_model(shipped("kg/countries.yaml"), CountryFile).countries}


@cache
def by_qid() -> Mapping[str, Country]:
    """Find a country by its item."""
    return {qid: country for country in countries().values() for qid in country.qids}


def country(iso: str) -> Country:
    """Find a country by its ISO code."""
    found = countries().get(iso)
    if found is None:
        raise UsageError("unknown country", expected=" or ".join(sorted(countries())), found=repr(iso))
    return found
