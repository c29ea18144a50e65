"""Equally many images of every model, and references that weigh the same, drawn by a seed."""

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from culturekit.metrics.scoring.value_sets import own_generator

__all__ = ["Equal", "balanced_references", "equal_images"]

OF_EACH_PROMPT = "of each prompt as many as the model with the fewest has"
OF_ALL = "as many as the model with the fewest has"


@dataclass(frozen=True, slots=True)
class Equal:
    """Images of which every model has as many, and how they were chosen.

    Attributes:
        images: those drawn, in the order they came.
        left_out: how many were not.
        params: what params say of it; empty where there was nothing to draw.
        least: the concept that has the fewest references, where that decided how many each concept gives.
    """

    images: pl.DataFrame
    left_out: int = 0
    params: dict[str, object] = field(default_factory=dict)
    least: str = ""


def equal_images(images: pl.DataFrame, *, seed: int, most: int | None = None) -> Equal:
    """Draw equally many images of every model: of each prompt as many as the model with the fewest has.

    So all models are scored on the same prompts, which weigh the same for each. Where images have no prompts, or
    no prompt is common to all models, as many are drawn as the smallest model has, whatever they are of.

    Args:
        images: with model, prompt_id and image_id, each image once.
        seed: of the draw; that of a model depends on no other model's images but through their number.
        most: images of a model at most; prompts then give as equally as they can.
    """
    models = images["model"].n_unique()
    if models < 2 and (most is None or images.height <= most):
        return Equal(images)
    known = images.with_columns(cell=pl.col("prompt_id"), order=shuffled(images, "model", seed))
    rule = OF_EACH_PROMPT
    quota = quotas(known, models)
    if quota is None:
        known, rule = known.with_columns(cell=pl.lit("")), OF_ALL
        quota = quotas(known, models)
        assert quota is not None
    params: dict[str, object] = {"equal": rule, "equal_seed": seed, "models": models}
    if most is not None and int(quota["quota"].sum()) > most:
        quota, params = evenly_capped(quota, most), {**params, "most": most}
    ranked = known.with_columns(place=pl.col("order").rank("ordinal").over("model", "cell"))
    kept = ranked.join(quota, on="cell", how="left", maintain_order="left").filter(
        pl.col("place") <= pl.col("quota").fill_null(0)
    )
    drawn = kept.select(images.columns)
    return Equal(drawn, images.height - drawn.height, params)


def evenly_capped(quota: pl.DataFrame, most: int) -> pl.DataFrame:
    """Lower what cells give to `most` in all: the largest first, and by one more in the last of the alphabet."""
    ordered = quota.sort("cell")
    wanted = ordered["quota"].to_numpy().astype(np.int64)
    low, high = 0, int(wanted.max())
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if np.minimum(wanted, middle).sum() <= most else (low, middle - 1)
    given = np.minimum(wanted, low)
    given[np.flatnonzero(wanted > low)[: most - int(given.sum())]] += 1
    return ordered.with_columns(quota=pl.Series(given, dtype=pl.UInt32))


def quotas(images: pl.DataFrame, models: int) -> pl.DataFrame | None:
    """Count how many images of each cell every model has at least; None where that is none at all."""
    if images["cell"].null_count():
        return None
    counts = images.group_by("cell", "model").len()
    least = counts.group_by("cell").agg(quota=pl.col("len").min(), seen=pl.len()).filter(seen=models)
    return least.select("cell", "quota") if least.height else None


def shuffled(images: pl.DataFrame, by: str, seed: int) -> pl.Series:
    """Give each image a random number, group by group in the order of the ids."""
    order = images.select(by, "image_id").with_row_index("number").sort(by, "image_id")
    numbers = np.empty(images.height)
    for (group,), rows in order.group_by(by, maintain_order=True):
        numbers[rows["number"].to_numpy()] = own_generator(seed, "images", by, group).random(rows.height)
    return pl.Series("order", numbers)


def balanced_references(shown: pl.DataFrame, made: pl.DataFrame, *, seed: int) -> Equal:
    """Draw equally many references of each concept that images were made for, spread evenly over countries.

    Within a concept countries take turns, each giving one of its references at random, until the number is reached.
    References without a concept cannot be balanced: then all are meant.
    """
    if shown["concept"].null_count() or made["concept"].null_count():
        return Equal(shown)
    asked = shown.join(made.select("concept").unique(), on="concept", how="semi", maintain_order="left")
    if asked.is_empty():
        return Equal(shown)
    least, each = asked.group_by("concept").len().sort("len", "concept").row(0)
    place = pl.concat_str("concept", pl.col("country").fill_null(""), separator="\n")
    ordered = asked.with_columns(place=place)
    ordered = ordered.with_columns(order=shuffled(ordered, "place", seed))
    ordered = ordered.with_columns(turn=pl.col("order").rank("ordinal").over("place"))
    ranked = ordered.sort("concept", "turn", "order", "image_id").with_columns(
        place_in_concept=pl.int_range(pl.len()).over("concept")
    )
    drawn = ranked.filter(pl.col("place_in_concept") < each).sort("image_id").select(shown.columns)
    params: dict[str, object] = {"references": "balanced", "per_concept": each, "seed": seed, "copies": "kept"}
    return Equal(drawn, shown.height - drawn.height, params, least)
