"""Matches as scores take them: countries by their codes, or by their names, throughout."""

import re
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.builders.country_names import country_code
from culturekit.errors import UsageError
from culturekit.records.schemas import MATCHES
from culturekit.storage.tables import read_table

__all__ = ["check_countries", "tables_of_matches"]

CODE = re.compile("[A-Z]{2}")
"""How the code of a country looks; most tables have nothing else, and then no name is looked up."""


def tables_of_matches(paths: Sequence[Path]) -> list[pl.DataFrame]:
    """Read each table of matches; in all of them countries have codes, or all have names."""
    tables = [read_table(path, MATCHES) for path in paths]
    check_countries(*tables, where=paths)
    return tables


def check_countries(*matches: pl.DataFrame, where: Sequence[Path]) -> None:
    """Refuse matches that put a country on two continents, or that have codes for countries and the name of one.

    That name would be a label of its own.
    """
    lies: dict[str, str] = {}
    pairs = (table.select("country", "continent").drop_nulls().unique() for table in matches)
    for country, continent in sorted({pair for own in pairs for pair in own.iter_rows()}):
        if lies.setdefault(country, continent) != continent:
            raise UsageError(
                "matches put a country on two continents", where=", ".join(map(str, where)),
                expected=f"one continent for {country!r}", found=f"{lies[country]!r} and {continent!r}",
            )  # fmt: skip
    places = sorted({place for table in matches for place in table["country"].drop_nulls().unique()})
    if all(map(CODE.fullmatch, places)):
        return
    codes = {place: country_code(place) for place in places}
    named = [place for place in places if codes[place] not in (None, place)]
    if named and any(code == place for place, code in codes.items()):
        raise UsageError(
            "matches name a country, and have codes for others", where=", ".join(map(str, where)),
            expected=str(codes[named[0]]), found=repr(named[0]), hint="Write codes in all rows, or names in all.",
        )  # fmt: skip
