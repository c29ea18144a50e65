"""The images that are to be mapped, with what their prompts asked for; those without a picture are drops."""

from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.records.schemas import DROPS, IMAGES, PROMPTS
from culturekit.storage.tables import read_table

__all__ = ["MAP", "dropped", "images_to_map", "with_prompts", "with_truth"]

MAP = "map"
"""What drops of this stage name it."""


def images_to_map(images_path: Path, prompts_path: Path | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List the images that have a picture, by id, and the drops of those that have none."""
    images = with_prompts(read_table(images_path, IMAGES).sort("image_id"), prompts_path)
    usable, without = images.filter(pl.col("status") == "ok"), images.filter(pl.col("status") != "ok")
    detail = pl.concat_str(pl.col("status"), pl.col("reason"), separator=": ", ignore_nulls=True)
    drops = dropped(without, reason=pl.lit("image without a picture"), detail=detail)
    if usable.is_empty():
        raise UsageError("there is no image to map", where=str(images_path), expected="rows with status ok")
    return usable, drops


def with_prompts(images: pl.DataFrame, prompts_path: Path | None) -> pl.DataFrame:
    """Fill in the concept and country of the prompt where the images table does not say them."""
    absent = [name for name in ("concept", "country") if name not in images.columns]
    images = images.with_columns([pl.lit(None, pl.String).alias(name) for name in absent])
    if prompts_path is None:
        return images
    prompts = read_table(prompts_path, PROMPTS).select("prompt_id", "concept", "country", "artifact_id")
    joined = images.join(prompts, on="prompt_id", how="left", maintain_order="left", suffix="_asked")
    return joined.with_columns(
        concept=pl.coalesce("concept", "concept_asked"), country=pl.coalesce("country", "country_asked")
    ).rename({"artifact_id": "asked_artifact_id"})


def with_truth(images_path: Path, prompts_path: Path | None) -> pl.DataFrame:
    """List the pictures of a table that say which artifact they show: by their truth, or by what was asked for."""
    images = with_prompts(read_table(images_path, IMAGES).sort("image_id"), prompts_path)
    known = [name for name in ("truth_artifact_id", "asked_artifact_id") if name in images.columns]
    if not known:
        raise UsageError(
            "the table does not say which artifact an image shows",
            where=str(images_path),
            expected="a column truth_artifact_id, or --prompts with the prompts that the images were made from",
        )
    shown = images.filter(pl.col("status") == "ok").with_columns(artifact_id=pl.coalesce(known))
    return shown.filter(pl.col("artifact_id").is_not_null())


def dropped(images: pl.DataFrame, *, reason: pl.Expr, detail: pl.Expr) -> pl.DataFrame:
    """Write images as rows of DROPS."""
    return images.select(
        key="image_id", concept="concept", stage=pl.lit(MAP), reason=reason, detail=detail.cast(pl.String)
    ).select([pl.col(name).cast(dtype) for name, dtype in DROPS.schema.items()])
