"""Files taken wherever a table of ours is, such as the public CUBE layout; values by the role of each file."""

import logging
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from culturekit.builders.space.public_cube import is_public_cube, read_public_cube
from culturekit.builders.space.space_files import read_space
from culturekit.errors import UsageError
from culturekit.records.schemas import CSPACE, PROMPTS, VALUES
from culturekit.storage.tables import read_table, write_table

__all__ = ["numbered", "prompts_table", "read_values", "roles", "space_table"]


def roles(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind, in the order given: `values-0`, `values-1`."""
    return {f"{role}-{number}": path for number, path in enumerate(paths)}


def numbered(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind; a single one has no number."""
    return {role: paths[0]} if len(paths) == 1 else roles(role, paths)


def read_values(paths: Sequence[Path]) -> pl.DataFrame:
    """Read tables of values as one; the same value in two files is a mistake."""
    table = pl.concat([read_table(path, VALUES).select(list(VALUES.schema)) for path in paths])
    repeated = table.filter(table.select(VALUES.key).is_duplicated())
    if repeated.height:
        row = repeated.sort(VALUES.key).row(0, named=True)
        raise UsageError(
            "two tables hold the same value",
            where=", ".join(map(str, paths)),
            found=f"{row['metric']} of {row['model']}, item {row['item']!r}",
            hint="Give each table once, and one table per model where models were scored apart.",
        )
    return table


logger = logging.getLogger(__name__)


def space_table(path: Path, scratch: Path) -> Path:
    """Give a cultural space as a table of ours; another file is rewritten into a stage's scratch folder."""
    if path.suffix == ".parquet":
        return path
    space, drops = read_space(path)
    tell(path, drops.height)
    return write_table(scratch, CSPACE, space)


def prompts_table(path: Path, scratch: Path) -> Path:
    """Give prompts as a table of ours, in the same way."""
    if not is_public_cube(path):
        return path
    public = read_public_cube(path)
    tell(path, public.drops.height)
    return write_table(scratch, PROMPTS, public.prompts)


def tell(path: Path, dropped: int) -> None:
    """Say that rows were left out; `prompts build` lists them."""
    if dropped:
        logger.warning("%s: %d rows are left out; `culturekit prompts build` lists them with reasons", path, dropped)
