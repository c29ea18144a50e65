"""A published cultural space, and prompts from a file, taken into a run as they are."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import polars as pl

from culturekit.builders.space.public_cube import is_public_cube, read_public_cube
from culturekit.builders.space.space_files import read_space
from culturekit.builders.space.typed_prompts import is_typed, read_typed_prompts
from culturekit.errors import UsageError
from culturekit.records.schemas import CSPACE, DROPS, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_drops, write_table

__all__ = ["count_of_kinds", "import_prompts", "import_space", "read_prompts"]

TAKEN = "The cultural space was taken from {name} as it was: how its artifacts were chosen is no part of this run."

SHOWN = 3
"""So many prompts are named as examples in a message."""


def import_space(work: Work, path: Path) -> Outcome:
    """Write a cultural space that somebody released as a table of ours; what cannot be read is listed."""
    space, drops = read_space(path)
    if space.is_empty():
        raise UsageError(
            "the cultural space has no artifact",
            where=str(path),
            expected="at least one row that can be read",
            found=f"{drops.height:,} rows that cannot" if drops.height else "no rows",
        )
    write_table(work.out, CSPACE, space)
    reasons = write_drops(work.out, drops)
    return Outcome(counted(CSPACE.name, space, drops), reasons, {"caveat": TAKEN.format(name=path.name)})


def import_prompts(work: Work, path: Path, space_path: Path, kinds: Iterable[str]) -> Outcome:
    """Write prompts that somebody published as a table of ours, and say which of them the space knows nothing of.

    Raises:
        UsageError: no prompt is of the kinds that images were made for.
    """
    prompts, drops = read_prompts(path)
    wanted = sorted(kinds)
    if prompts.filter(pl.col("kind").is_in(wanted)).is_empty():
        raise UsageError(
            "no prompt is of the kinds that images.kinds asks for",
            where=str(path),
            expected=" or ".join(wanted),
            found=", ".join(prompts["kind"].unique().sort()) or "no prompts",
            hint="Name the kinds of the file in images.kinds.",
        )
    findings = list(strangers(prompts, read_table(space_path, CSPACE)))
    write_table(work.out, PROMPTS, prompts)
    reasons = write_drops(work.out, drops)
    notes = {"findings": findings} if findings else {}
    return Outcome(counted(PROMPTS.name, prompts, drops), reasons, notes)


def count_of_kinds(path: Path, kinds: Sequence[str]) -> int:
    """Count the prompts of some kinds in a file; of all, where none is named."""
    prompts, _ = read_prompts(path)
    return prompts.filter(pl.col("kind").is_in(list(kinds))).height if kinds else prompts.height


def read_prompts(path: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read prompts from our table, from the public layout or as typed by hand, with what could not be read."""
    if is_typed(path):
        return read_typed_prompts(path)
    if is_public_cube(path):
        public = read_public_cube(path)
        return public.prompts, public.drops
    return read_table(path, PROMPTS), pl.DataFrame(schema=DROPS.schema)


def strangers(prompts: pl.DataFrame, space: pl.DataFrame) -> Iterable[str]:
    """Say of which concepts and artifacts prompts speak that the space does not have."""
    for column, what in (("concept", "concepts"), ("artifact_id", "artifacts")):
        known = space[column].unique()
        unknown = prompts.filter(pl.col(column).is_not_null(), ~pl.col(column).is_in(known.implode()))
        if unknown.height:
            named = ", ".join(unknown[column].unique().sort().head(SHOWN))
            more = ", ..." if unknown[column].n_unique() > SHOWN else ""
            count = f"{unknown.height:,} prompts are" if unknown.height > 1 else "1 prompt is"
            yield f"{count} about {what} that the cultural space lacks: {named}{more}"


def counted(name: str, table: pl.DataFrame, drops: pl.DataFrame) -> dict[str, int]:
    """Count the rows of a table and of what is left out."""
    return {name: table.height, DROPS.name: drops.height}
