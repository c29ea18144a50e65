"""The artifacts that a model's images are most often mapped to, with the images, as one can look at them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from culturekit.report.countries import country_names
from culturekit.report.looks import Tile, reference_of, tile
from culturekit.report.run_folders import RunFolders

__all__ = ["Mosaic", "MosaicModel", "artifacts_of", "mosaic_of", "tiles"]

ARTIFACTS = 6
"""Of each model; the table of matches has all."""

TILES = 6


@dataclass(frozen=True, slots=True)
class Mosaic:
    """An artifact, a reference picture of it, and images mapped to it, from the most to the least similar.

    Attributes:
        images: how many images of the model are mapped to it.
        share: of the images of the model that are mapped to anything.
        score: the median similarity of its images.
        margin: by how much, in the middle, it leads over the next artifact.
    """

    artifact_id: str
    artifact: str
    country: str | None
    images: int
    share: float
    score: float
    margin: float | None
    reference: str | None
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class MosaicModel:
    """What became of a model's images, and the artifacts they are most often mapped to.

    Attributes:
        asked: images that were asked for.
        missing: of them were not made, or could not be read.
        abstained: of them the mapping said nothing.
        mapped: of them were mapped.
        artifacts: to so many different artifacts.
    """

    model: str
    asked: int
    missing: int
    abstained: int
    mapped: int
    artifacts: int
    mosaics: tuple[Mosaic, ...]

    @property
    def unmapped(self) -> float | None:
        """The share of the images asked for that are mapped to nothing; None where none was asked for."""
        return None if not self.asked else 1 - self.mapped / self.asked


def mosaic_of(
    run: RunFolders, looks: Mapping[str, pl.DataFrame], references: Mapping[str, tuple[str, str]],
    thumbnails: dict[str, str],
) -> Iterator[MosaicModel]:  # fmt: skip
    """Give the mosaics of each model, in the order of the models given."""
    names = country_names(run)
    for model, table in looks.items():
        made = table.filter(pl.col("status") == "ok")
        mapped = made.filter(pl.col("mapped"))
        counted = artifacts_of(mapped)
        yield MosaicModel(
            model=model,
            asked=table.height,
            missing=table.height - made.height,
            abstained=made.height - mapped.height,
            mapped=mapped.height,
            artifacts=counted.height,
            mosaics=tuple(
                Mosaic(
                    artifact_id=row["artifact_id"],
                    artifact=row["artifact"],
                    country=names.get(row["country"], row["country"]),
                    images=row["images"],
                    share=row["images"] / mapped.height,
                    score=row["score"],
                    margin=row["margin"],
                    reference=reference_of(row["artifact_id"], references, thumbnails),
                    tiles=tuple(tiles(model, mapped.filter(pl.col("artifact_id") == row["artifact_id"]), thumbnails)),
                )
                for row in counted.head(ARTIFACTS).to_dicts()
            ),
        )


def artifacts_of(mapped: pl.DataFrame) -> pl.DataFrame:
    """List the artifacts that images of a model are mapped to, most images first."""
    counted = mapped.group_by("artifact_id").agg(
        pl.len().alias("images"), pl.col("artifact", "country").first(), pl.col("score", "margin").median()
    )
    return counted.sort(["images", "artifact_id"], descending=[True, False])


def tiles(model: str, mapped: pl.DataFrame, thumbnails: dict[str, str]) -> Iterator[Tile]:
    """Choose images from the most to the least similar, evenly, so that the doubtful ones are seen too."""
    ordered = mapped.sort(["score", "image_id"], descending=[True, False])
    chosen = sorted({int(place) for place in np.linspace(0, ordered.height - 1, min(TILES, ordered.height))})
    for row in ordered[chosen].to_dicts():
        yield tile(model, row, thumbnails)
