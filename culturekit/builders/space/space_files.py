"""A cultural space from a file: a table of ours, the public CUBE layout, or artifacts typed into a CSV file."""

from pathlib import Path

import polars as pl

from culturekit.builders.space.foreign_space import KEPT, item_of, read_list
from culturekit.builders.space.public_cube import is_public_cube, read_public_cube
from culturekit.errors import ConfigError, Problem
from culturekit.records.artifact_ids import has_no_item
from culturekit.records.schemas import CSPACE, DROPS
from culturekit.storage.tables import read_table

__all__ = ["read_space"]


def read_space(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a cultural space, with what could not be read; of a file typed by hand everything must be readable."""
    if is_public_cube(path):
        public = read_public_cube(path)
        return public.space, public.drops
    if path.suffix == ".csv":
        return read_typed(path)
    return read_table(path, CSPACE), pl.DataFrame(schema=DROPS.schema)


def read_typed(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read a list that loses nothing but repetitions, and whose ids are items.

    Raises:
        ConfigError: all problems, each with its line.
    """
    found = read_list(path)
    problems = []
    for one in found.left:
        if one.reason not in KEPT and one.row is not None:
            what = f"{one.reason} {one.country!r}: expected its name, its code or its item"
            problems.append(Problem(what if one.country else f"there is {one.reason}", str(path), one.row.line))
    for row in found.rows:
        stated = row.text("id")
        if stated and item_of(stated) is None and not has_no_item(stated):
            message = f"id {stated!r} is no item of Wikidata: expected such as Q13276, or none"
            problems.append(Problem(message, str(path), row.line))
    if problems:
        raise ConfigError(sorted(problems, key=lambda problem: problem.line))
    return found.space, found.drops
