"""How much more stereotypical images are than real ones, image by image and candidate by candidate."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from culturekit.errors import UsageError
from culturekit.metrics.ahead.composite import Reduce, exaggeration
from culturekit.metrics.scoring.ahead_tables import ANSWERED, STEREOTYPE, judged, normalised
from culturekit.records.schemas import EXAGGERATIONS

__all__ = ["Excess", "excess_of_images"]

PER_IMAGE = {"image_id": pl.String(), "exag": pl.Float64()}


@dataclass(frozen=True, slots=True)
class Excess:
    """How much images exaggerate.

    Attributes:
        per_image: image_id, exag.
        per_candidate: conforms to EXAGGERATIONS.
        scorer: who scored.
    """

    per_image: pl.DataFrame
    per_candidate: pl.DataFrame
    scorer: str


def excess_of_images(
    images: pl.DataFrame, judgments: pl.DataFrame, *, real: str, reduce: Reduce, left_out: Counter[str]
) -> Excess:
    """Compare the scores of stereotype candidates with those of real images of the same country.

    Args:
        images: image_id, model, country, as `pictured` gives them, the real ones among them.
        judgments: conforms to JUDGMENTS; of the task `stereotype` one row per image and candidate: `item` is the
            candidate, `value` its image-text score.
        real: the model under whose name the real images stand.
        reduce: the mean over candidates, or the worst.
        left_out: counts to add to.
    """
    rows, scorer = judged(judgments, STEREOTYPE)
    usable = rows.filter(pl.col("outcome").is_in(ANSWERED), pl.col("value").is_finite()).select(
        "image_id", "item", "value"
    )
    placed = normalised(usable, "item").join(
        images.filter(pl.col("country").is_not_null()).select("image_id", "model", "country"), on="image_id"
    )
    scores = placed.group_by("model", "country", "image_id", "phrase").agg(pl.col("value").sort().mean())
    usual = (
        scores.filter(model=real)
        .group_by("country", "phrase")
        .agg(real_mean=pl.col("value").sort().mean())
        .sort("country", "phrase")
    )
    if usual.is_empty():
        raise UsageError(
            f"no stereotype score of a real image: exaggeration is measured against images of the model {real!r}",
            found=f"models {', '.join(scores['model'].unique().sort())}" if scores.height else "no scores",
        )
    made = scores.filter(pl.col("model") != real)
    compared = made.join(usual, on=["country", "phrase"], how="inner")
    left_out["stereotype scores without real images to compare"] += made.height - compared.height
    per_image = list(complete_images(compared, usual, reduce))
    answer = pl.concat(per_image) if per_image else pl.DataFrame(schema=PER_IMAGE)
    left_out["images without a score of every stereotype"] += made["image_id"].n_unique() - answer.height
    return Excess(answer, per_candidate(compared.join(answer, on="image_id", how="semi")), scorer)


def complete_images(compared: pl.DataFrame, usual: pl.DataFrame, reduce: Reduce) -> Iterator[pl.DataFrame]:
    """Give `exag` of the images that have a score of every candidate of their country, country by country."""
    for candidates in usual.partition_by("country", maintain_order=True):
        scores = compared.filter(country=candidates["country"][0])
        full = scores.filter(pl.len().over("image_id") == candidates.height).sort("image_id", "phrase")
        matrix = full["value"].to_numpy().reshape(-1, candidates.height)
        names = full["image_id"].unique(maintain_order=True)
        excess = exaggeration(matrix, candidates["real_mean"].to_numpy(), reduce=reduce)
        yield pl.DataFrame({"image_id": names, "exag": excess}, schema=PER_IMAGE)


def per_candidate(scores: pl.DataFrame) -> pl.DataFrame:
    """Average the excess over the images of a model and country, candidate by candidate."""
    excess = (pl.col("value") - pl.col("real_mean")).clip(lower_bound=0.0).sort().mean()
    table = scores.group_by("model", "country", token=pl.col("phrase")).agg(
        images=pl.len().cast(pl.UInt64), real_mean=pl.col("real_mean").first(), excess=excess
    )
    return table.select(list(EXAGGERATIONS.schema)).sort(EXAGGERATIONS.key)
