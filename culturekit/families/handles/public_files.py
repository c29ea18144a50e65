"""Files in the public CUBE layout, and spaces typed by hand, taken wherever a table of ours is."""

import logging
from pathlib import Path

from culturekit.builders.space.public_cube import is_public_cube, read_public_cube
from culturekit.builders.space.space_files import read_space
from culturekit.records.schemas import CSPACE, PROMPTS
from culturekit.storage.tables import write_table

__all__ = ["prompts_table", "space_table"]

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
