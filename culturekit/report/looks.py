"""What each image of a model was mapped to, in one table; images that were not made or not mapped are in it too."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.report.run_folders import RunFolders
from culturekit.report.thumbnails import thumbnail_name
from culturekit.stages import roles

__all__ = ["Tile", "looks_of", "reference_of", "reference_pictures", "shown_by", "thumbnail_of", "tile"]

OF_IMAGE = ("image_id", "path", "width", "height", "prompt_id", "concept", "repeat", "slot", "status")
OF_MATCH = ("image_id", "artifact_id", "artifact", "country", "score", "margin", "abstained")


@dataclass(frozen=True, slots=True)
class Tile:
    """An image of a mosaic: its thumbnail, and what it was mapped to, or None where the mapping abstained."""

    image_id: str
    thumbnail: str
    artifact: str | None
    score: float | None
    margin: float | None


def looks_of(run: RunFolders, model: str) -> pl.DataFrame:
    """Join the images of a model with the artifact each is nearest to."""
    nearest = run.matches(model).filter(pl.col("rank") == 1).select(OF_MATCH)
    images = run.images(model).select(OF_IMAGE)
    return images.join(nearest, on="image_id", how="left").with_columns(
        mapped=pl.col("artifact_id").is_not_null() & ~pl.col("abstained").fill_null(value=True)
    )


def tile(model: str, row: dict[str, Any], thumbnails: dict[str, str]) -> Tile:
    """Describe an image; `thumbnails` learns which picture to copy under which name."""
    mapped = bool(row["mapped"])
    return Tile(
        image_id=row["image_id"],
        thumbnail=thumbnail_of(model, row, thumbnails),
        artifact=row["artifact"] if mapped else None,
        score=row["score"],
        margin=row["margin"],
    )


def thumbnail_of(model: str, image: Mapping[str, Any], thumbnails: dict[str, str]) -> str:
    """Name the thumbnail of a model's image, and note which picture it is a copy of."""
    name = thumbnail_name(image["image_id"], image["width"], image["height"])
    thumbnails[name] = f"{roles.IMAGES.folder(model)}/{image['path']}"
    return name


def reference_of(artifact_id: str, references: Mapping[str, tuple[str, str]], thumbnails: dict[str, str]) -> str | None:
    """Name the thumbnail of a reference picture, where there is one, and note which picture it is a copy of."""
    if artifact_id not in references:
        return None
    name, source = references[artifact_id]
    thumbnails[name] = source
    return name


def shown_by(run: RunFolders) -> pl.DataFrame | None:
    """Say of each reference picture which artifact it shows: the truth, or what its name says."""
    references, prompts = run.read(roles.REFERENCES, IMAGES), run.read(roles.REFERENCE_PROMPTS, PROMPTS)
    if references is None or "truth_artifact_id" in references.columns:
        return references
    if prompts is None:
        return None
    named = prompts.select("prompt_id", truth_artifact_id="artifact_id")
    return references.join(named, on="prompt_id", how="left", maintain_order="left")


def reference_pictures(run: RunFolders) -> dict[str, tuple[str, str]]:
    """Find a reference picture of each artifact: the name of its thumbnail, and its path."""
    references = shown_by(run)
    if references is None:
        return {}
    first = references.filter(pl.col("status") == "ok").sort("image_id")
    first = first.unique("truth_artifact_id", keep="first", maintain_order=True)
    return {
        row["truth_artifact_id"]: (
            thumbnail_name(row["image_id"], row["width"], row["height"]),
            f"{roles.REFERENCES.folder()}/{row['path']}",
        )
        for row in first.iter_rows(named=True)
        if row["truth_artifact_id"] is not None
    }
