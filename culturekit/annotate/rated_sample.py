"""Which images people rate: of every model the first image of the same prompts, spread over countries and concepts."""

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.records.schemas import AUDIT_SAMPLE

__all__ = ["rated_sample"]

STRATUM = ("country", "concept")


def rated_sample(images: pl.DataFrame, prompts: pl.DataFrame, *, count: int, rng: np.random.Generator) -> pl.DataFrame:
    """Draw prompts that name a country, as evenly as they allow, and take the first image of each model.

    Args:
        images: conforms to IMAGES: those of all models.
        prompts: conforms to PROMPTS.
        count: how many prompts; all, where there are fewer.
        rng: draws them.

    Returns:
        AUDIT_SAMPLE; `chance` is that of the prompt among those of its country and concept.

    Raises:
        UsageError: no image was made for a prompt that names a country.
    """
    made = images.filter(pl.col("status") == "ok").sort("model", "prompt_id", "repeat", "slot", "image_id")
    firsts = made.unique(["model", "prompt_id"], keep="first", maintain_order=True)
    placed = prompts.filter(pl.col("country").is_not_null()).join(firsts.select("prompt_id").unique(), on="prompt_id")
    if placed.is_empty():
        raise UsageError(
            "nobody can say whether these images show their country",
            expected="images of prompts that name a country",
            found=f"{made.height:,} images of prompts that name none",
        )
    drawn = spread(placed.select("prompt_id", *STRATUM), rng).head(count)
    chances = (
        placed.group_by(STRATUM).len().join(drawn.group_by(STRATUM).len(name="taken"), on=STRATUM, nulls_equal=True)
    )
    chosen = drawn.join(chances, on=STRATUM, nulls_equal=True)
    about = chosen.with_columns(
        chance=pl.col("taken") / pl.col("len"),
        stratum=pl.concat_str("country", pl.col("concept").fill_null("-"), separator=" "),
    ).drop("country")
    shown = firsts.select("image_id", "model", "prompt_id").join(about, on="prompt_id")
    return shown.select(list(AUDIT_SAMPLE.schema)).sort(AUDIT_SAMPLE.key)


def spread(prompts: pl.DataFrame, rng: np.random.Generator) -> pl.DataFrame:
    """Order prompts so that one of every country and concept comes before the second of any."""
    ordered = prompts.sort("prompt_id").with_columns(draw=rng.permutation(prompts.height))
    turns = ordered.with_columns(turn=pl.col("draw").rank("ordinal").over(STRATUM))
    return turns.sort("turn", "draw").drop("turn", "draw")
