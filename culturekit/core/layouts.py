"""Cultural spaces and prompts in layouts of others, rewritten as tables of ours."""

import importlib
import logging
from pathlib import Path

from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.table import Table
from culturekit.core.tables import write_table

logger = logging.getLogger(__name__)

# Imported when a file in another layout is met; the readers know countries and templates, as nothing here does.
READERS = {
    CSPACE.name: "culturekit.builders.space.space_files:read_space",
    PROMPTS.name: "culturekit.builders.space.space_files:read_prompts",
}


def space_table(path: Path, scratch: Path) -> Path:
    """Give a cultural space as a table of ours; another file is rewritten into a stage's scratch folder."""
    return _as_table(path, CSPACE, scratch)


def prompts_table(path: Path, scratch: Path) -> Path:
    """Give prompts as a table of ours, in the same way."""
    return _as_table(path, PROMPTS, scratch)


def _as_table(path: Path, table: Table, scratch: Path) -> Path:
    if path.suffix == ".parquet":
        return path
    module, _, name = READERS[table.name].partition(":")
    rows, drops = getattr(importlib.import_module(module), name)(path)
    if drops.height:
        logger.warning(
            "%s: %d rows are left out; `culturekit prompts build` lists them with reasons", path, drops.height
        )
    return write_table(scratch, table, rows)
