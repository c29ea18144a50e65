"""Which real images the images of a model are held against: all of them, or equally many from every cell."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.metrics.realism.balanced_references import balanced_sample
from culturekit.metrics.realism.features import unduplicated
from culturekit.metrics.scoring.equal_images import Equal
from culturekit.metrics.scoring.image_levels import LEVELS, Level, cells_of
from culturekit.metrics.scoring.scored import Row
from culturekit.metrics.scoring.value_sets import own_generator

__all__ = ["Cell", "cells_with_references"]


@dataclass(frozen=True, slots=True)
class Cell:
    """Images of a model, and the real images they are held against.

    Attributes:
        place: model, and the columns of the level.
        images: the generated ones, as `placed` gives them.
        references: the real ones.
        per_cell: how many real ones were drawn of each cell; None where no level is meant.
        told: how the real ones were drawn where no level is meant; empty where all are meant.
    """

    place: Row
    images: pl.DataFrame
    references: pl.DataFrame
    per_cell: int | None
    told: Mapping[str, object] = field(default_factory=dict)


def cells_with_references(
    made: pl.DataFrame,
    shown: pl.DataFrame,
    reals: NDArray[np.floating],
    fakes: NDArray[np.floating],
    *,
    by: Sequence[Level],
    k: int,
    per_cell: int | None,
    seed: int,
    left_out: Counter[str],
    whole: Equal | None = None,
    fewest: int = 0,
    lenient: bool = False,
) -> Iterator[Cell]:
    """Give each model with all references or those of `whole`, then, at each level, each cell with balanced ones.

    References of `whole` that were drawn in equal numbers of each concept serve the level of concepts, too, and copies
    count there as they do over all. With `lenient`, levels are left out, and counted, where no real image has a place.
    """
    for place, images in cells_of(made, ()):
        yield Cell(place, images, shown if whole is None else whole.images, None, {} if whole is None else whole.told)
    if lenient and shown.select(pl.all_horizontal(pl.col("concept", "country", "group").is_null()).all()).item():
        left_out["levels, as no real image says what it shows or where it is from"] += len(by)
        return
    if not by:
        return
    evenly = whole is not None and bool(whole.told) and set(by) == {("concept",)}
    if whole is not None and evenly:
        drawn, each, told = whole.images, None, whole.told
        parted = made
    else:
        told = {}
        usable = without_copies(shown, reals, "real images with the vector of another", left_out)
        parted = pl.concat([
            without_copies(images, fakes, "generated images with the vector of another of the model", left_out)
            for images in made.partition_by("model", maintain_order=True)
        ])  # fmt: skip
        drawn, each = balanced(usable, parted, by=by, per_cell=per_cell, seed=seed, left_out=left_out)
    for place, images in cells_of(parted, by):
        columns = [name for name in place if name != "model"]
        if not columns:
            continue
        references = drawn.filter(pl.all_horizontal(pl.col(name) == place[name] for name in columns))
        if min(images.height, references.height) <= k:
            left_out[f"cells with at most {k} images, real or generated"] += 1
            continue
        if min(images.height, references.height) < fewest:
            left_out[f"cells with fewer than {fewest} images, real or generated"] += 1
            continue
        yield Cell(place, images, references, each, told)


def without_copies(
    images: pl.DataFrame, vectors: NDArray[np.floating], what: str, left_out: Counter[str]
) -> pl.DataFrame:
    """Leave out every image whose vector another one has too."""
    kept = images.filter(pl.Series(unduplicated(vectors[images["row"].to_numpy()]), dtype=pl.Boolean))
    left_out[what] += images.height - kept.height
    return kept


def balanced(
    shown: pl.DataFrame,
    made: pl.DataFrame,
    *,
    by: Sequence[Level],
    per_cell: int | None,
    seed: int,
    left_out: Counter[str],
) -> tuple[pl.DataFrame, int]:
    """Draw equally many references of every cell of the finest level that some model has images of."""
    names = {name for level in by for name in level}
    if shown["concept"].null_count() == 0 and made["concept"].null_count() == 0:
        # Objects weigh the same in a region, also where regions are not parted by object.
        names.add("concept")
    columns = [column for name, column in LEVELS.items() if name in names]
    known = shown.filter(pl.all_horizontal(pl.col(columns).is_not_null()))
    left_out["real images that no level has a place for"] += shown.height - known.height
    asked = known.join(made.select(columns).unique(), on=columns, how="semi", maintain_order="left")
    left_out["real images of cells without generated ones"] += known.height - asked.height
    if asked.is_empty():
        raise UsageError(
            "no cell has both real and generated images",
            expected=f"the same {' and '.join(columns)} on both sides",
            found=f"{known.height} real images with a place, {made.height} generated ones",
        )
    cells = asked.select(pl.concat_str(columns, separator=" / ")).to_series().to_list()
    drawn = asked[balanced_sample(cells, size=per_cell, rng=own_generator(seed, "references"))]
    return drawn, drawn.height // len(set(cells))
