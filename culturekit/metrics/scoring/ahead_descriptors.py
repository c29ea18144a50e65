"""What the images of one model and prompt cover together: their variety, and descriptor by descriptor."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.metrics.ahead.variety import evenness, gain, mean_of
from culturekit.metrics.scoring.ahead_cells import Cells
from culturekit.records.schemas import DESCRIPTOR_MATCHES

__all__ = ["descriptor_matches", "variety_of_prompts"]


@dataclass(frozen=True, slots=True)
class ImageSet:
    """The images of one model and prompt in one dimension; `best` is float64, (n_images, n_ref)."""

    model: str
    prompt_id: str
    dimension: str
    best: NDArray[np.float64]


def image_sets(cells: Cells) -> Iterator[ImageSet]:
    """Part the cells by model, prompt and dimension; they stand in that order, so each part is one block."""
    sets = cells.frame.group_by("model", "prompt_id", "dimension", maintain_order=True).agg(
        pl.len(), pl.col("n_ref").first()
    )
    start = 0
    for model, prompt_id, dimension, images, n_ref in sets.iter_rows():
        block = cells.best.of_reference[start : start + images * n_ref].reshape(images, n_ref)
        start += images * n_ref
        yield ImageSet(model, prompt_id, dimension, block)


def variety_of_prompts(cells: Cells, tau: float) -> pl.DataFrame:
    """Give model, prompt_id, images, ddiv and sdiv of every prompt; NaN where there are fewer than two images."""
    rows: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for images in image_sets(cells):
        n, counts = len(images.best), (images.best >= tau).sum(axis=0)
        rows.setdefault((images.model, images.prompt_id), []).append((n, evenness(counts), gain(counts, images=n)))
    answer = [
        (*key, found[0][0], *(mean_of([row[score] for row in found], images=found[0][0]) for score in (1, 2)))
        for key, found in rows.items()
    ]
    schema = {"model": pl.String, "prompt_id": pl.String, "images": pl.Int64, "ddiv": pl.Float64, "sdiv": pl.Float64}
    return pl.DataFrame(answer, schema=schema, orient="row")


def descriptor_matches(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every descriptor how well it was met; conforms to DESCRIPTOR_MATCHES."""
    parts = [references_met(cells, tau), predictions_met(cells, tau)]
    return pl.concat(parts).sort(DESCRIPTOR_MATCHES.key)


def references_met(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every reference which share of images shows it, and how similar what they show is on average."""
    phrases = {
        (prompt_id, dimension): names
        for prompt_id, dimension, names in cells.references.group_by("prompt_id", "dimension", maintain_order=True)
        .agg("phrase")
        .iter_rows()
    }
    columns: dict[str, list[Any]] = {name: [] for name in DESCRIPTOR_MATCHES.schema}
    for images in image_sets(cells):
        n, k = images.best.shape
        said = images.best[np.isfinite(images.best).all(axis=1)]
        columns["model"] += [images.model] * k
        columns["prompt_id"] += [images.prompt_id] * k
        columns["dimension"] += [images.dimension] * k
        columns["side"] += ["reference"] * k
        columns["token"] += phrases[images.prompt_id, images.dimension]
        columns["images"] += [n] * k
        columns["covered"] += ((images.best >= tau).sum(axis=0) / n).tolist()
        columns["similarity"] += said.mean(axis=0).tolist() if len(said) else [None] * k
    return pl.DataFrame(columns, schema=DESCRIPTOR_MATCHES.schema)


def predictions_met(cells: Cells, tau: float) -> pl.DataFrame:
    """Say of every predicted phrase how many images have it, and whether a reference asks for it."""
    places = cells.frame.select("model", "prompt_id", "dimension").with_row_index("cell")
    found = cells.predictions.with_columns(similarity=pl.Series(cells.best.of_prediction))
    table = (
        found.join(places, on="cell")
        .group_by("model", "prompt_id", "dimension", token=pl.col("phrase"))
        .agg(images=pl.len().cast(pl.UInt64), similarity=pl.col("similarity").first())
        .with_columns(side=pl.lit("predicted"), covered=(pl.col("similarity") >= tau).cast(pl.Float64))
    )
    return table.select(list(DESCRIPTOR_MATCHES.schema))
