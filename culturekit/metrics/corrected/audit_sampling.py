"""Which images people should look at: an even draw over what the images were mapped to."""

import numpy as np
import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.arguments import argument_error
from culturekit.records.schemas import AUDIT_SAMPLE

__all__ = ["audit_sample"]


def audit_sample(matches: pl.DataFrame, *, n: int, rng: np.random.Generator, stratum: str = "country") -> pl.DataFrame:
    """Draw n images of each model and concept for an audit.

    Images are put in order by prompt and mapped label, at random within, and every k-th is taken from a random
    start: each has the same chance, and each prompt and label is met as often as it occurs, to within one image. With
    more prompts than images to draw the order is by mapped label first, and each label is met as often as it occurs.

    Args:
        matches: MATCHES; the nearest match of an image counts.
        n: images per model and concept; all of them where there are fewer.
        rng: draws.
        stratum: the mapped label to spread over: `country` or `continent`.

    Returns:
        AUDIT_SAMPLE: the images, their stratum and the chance with which each was drawn.

    Raises:
        UsageError: an argument breaks its rule.
    """
    if n < 1:
        raise argument_error("n", "at least 1", n)
    if stratum not in {"country", "continent"}:
        raise argument_error("stratum", "'country' or 'continent'", stratum)
    nearest = matches.filter(pl.col("rank") == 1)
    if nearest.is_empty():
        raise UsageError("there are no matches to draw from", expected="at least one image")
    groups = nearest.sort("model", "concept", "image_id").partition_by("model", "concept", maintain_order=True)
    drawn = pl.concat([draw(images, n=min(n, images.height), rng=rng, stratum=stratum) for images in groups])
    return drawn.select(list(AUDIT_SAMPLE.columns)).sort(AUDIT_SAMPLE.key)


def draw(images: pl.DataFrame, *, n: int, rng: np.random.Generator, stratum: str) -> pl.DataFrame:
    """Draw n images of one model and concept, spread over prompts and mapped labels.

    Steps that pass over whole prompts would land on the same place in each, and never on some labels: then labels come
    first, and prompts within them.
    """
    each_prompt = n >= images["prompt_id"].n_unique()
    shuffled = images.with_columns(
        order=pl.Series(rng.random(images.height)), stratum=pl.col(stratum).fill_null("(none)")
    ).sort(*(["prompt_id", "stratum"] if each_prompt else ["stratum", "prompt_id"]), "order")
    places = np.floor((np.arange(n) + rng.random()) * images.height / n).astype(np.int64)
    return shuffled[places].with_columns(chance=pl.lit(n / images.height))
