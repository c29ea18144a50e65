"""Files taken wherever a table of ours is, such as the public CUBE layout; values by the role of each file."""

import logging
from collections.abc import Sequence
from pathlib import Path

from culturekit.builders.space.imported_space import read_prompts
from culturekit.builders.space.space_files import read_space
from culturekit.records.schemas import CSPACE, PROMPTS
from culturekit.storage.tables import write_table

__all__ = ["numbered", "prompts_table", "roles", "space_table"]


def roles(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind, in the order given: `values-0`, `values-1`."""
    return {f"{role}-{number}": path for number, path in enumerate(paths)}


def numbered(role: str, paths: Sequence[Path]) -> dict[str, Path]:
    """Name the files of one kind; a single one has no number."""
    return {role: paths[0]} if len(paths) == 1 else roles(role, paths)


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
    if path.suffix == ".parquet":
        return path
    prompts, drops = read_prompts(path)
    tell(path, drops.height)
    return write_table(scratch, PROMPTS, prompts)


def tell(path: Path, dropped: int) -> None:
    """Say that rows were left out; `prompts build` lists them."""
    if dropped:
        logger.warning("%s: %d rows are left out; `culturekit prompts build` lists them with reasons", path, dropped)
