"""What stands behind a SPEC, as part of what a stage depends on: the files that it points to, and plugins."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.core.work import NOT_COMPARABLE, Outcome

if TYPE_CHECKING:
    from culturekit.generation.comparability import Traits

# Whether the images that are scored together were made alike, noted beside the scores.


def traits_in(images: Sequence[Path]) -> "dict[str, Traits]":
    """Read the traits of every model in tables of images."""
    return traits_by_model([read_table(path, IMAGES) for path in images])


def traits_by_model(images: Sequence[pl.DataFrame]) -> "dict[str, Traits]":
    """Read the traits of every model; what one model's tables say is taken together."""
    from culturekit.generation.comparability import traits_of

    every = [table.select(list(IMAGES.schema)) for table in images if table.height]
    models = pl.concat(every).partition_by("model", as_dict=True) if every else {}
    return {str(key[0]): traits_of(table) for key, table in sorted(models.items())}


def noted(outcome: Outcome, traits: "Mapping[str, Traits]") -> Outcome:
    """Add to an account what is not comparable; nothing where all images were made alike."""
    from culturekit.generation.comparability import not_comparable

    apart = not_comparable(traits)
    return replace(outcome, notes={**outcome.notes, NOT_COMPARABLE: apart}) if apart else outcome
