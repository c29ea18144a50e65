"""A cultural space from a file: a table of ours, the public CUBE layout, or artifacts typed into a CSV file."""

import unicodedata
from pathlib import Path

import polars as pl

from culturekit.builders.space.foreign_space import KEPT, read_list
from culturekit.builders.space.public_cube import QID, is_public_cube, read_public_cube, slug
from culturekit.errors import ConfigError, Problem
from culturekit.kg.qids import ADDRESS
from culturekit.records.schemas import CSPACE, DROPS
from culturekit.storage.digests import digest
from culturekit.storage.tables import read_table

__all__ = ["OF_A_LIST", "id_of", "item_of", "read_space"]

OF_A_LIST = "list"
"""The source of artifacts that a person's file names."""

ONLY_BETWEEN = set(".,:;/\\'\"·")
"""Signs that tell no two names apart, though others of their kind do, such as those of `C#` and `Wham!`."""


def id_of(stated: str, name: str) -> str:
    """Give the identifier of an artifact without an item, from the one that its list states, or from its name."""
    return stated if stated.startswith("LLM:") and stated[4:] else f"LLM:{slug_of(stated or name)}"


def slug_of(name: str) -> str:
    """Make an identifier of a name; what it has no room for, and tells names apart, is told by a hash."""
    plain = " ".join(unicodedata.normalize("NFC", name).casefold().split())
    is_whole = slug(name) and not any(map(is_telling, plain))
    return slug(name) if is_whole else f"{slug(name)}~{digest(plain)[:8]}"


def is_telling(character: str) -> bool:
    """Tell the signs that can tell two names apart, as in `C++` and `C#`, and the vowels that some scripts write so."""
    kind = unicodedata.category(character)
    return kind[0] == "M" or kind in {"Sm", "Sc", "So"} or (kind == "Po" and character not in ONLY_BETWEEN)


def item_of(text: str) -> str | None:
    """Read the item that a text names, if it is nothing else."""
    item = ADDRESS.sub("", text.strip(), count=1).upper()
    return item if QID.fullmatch(item) else None


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
        if stated and item_of(stated) is None and not stated.startswith("LLM:"):
            message = f"id {stated!r} is no item of Wikidata: expected such as Q13276, or none"
            problems.append(Problem(message, str(path), row.line))
    if problems:
        raise ConfigError(sorted(problems, key=lambda problem: problem.line))
    return found.space, found.drops
