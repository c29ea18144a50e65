"""From matches to the shares of what images show."""

from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.errors import NothingScored
from culturekit.core.inputs import Files
from culturekit.core.schemas import DISTRIBUTIONS, MATCHES
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import table_outcome
from culturekit.metrics.diversity import label_diversity as label_shares
from culturekit.metrics.diversity.label_diversity import share_limits
from culturekit.metrics.diversity.labels import LEVELS, spell
from culturekit.scores.diversity import nearest_of
from culturekit.scores.family import parts_by_concept, scores


@scores(
    "distribution",
    kind="distribution",
    folder="distributions",
    example="--matches matches/matches.parquet --out shares",
    packages=("numpy", "polars"),
)
def distribution(
    work: Work, matches: Annotated[Files, Field(description="Table that `index map` wrote; repeat it for more models.")]
) -> Outcome:
    """Count what images show, by model and concept.

    The share of each continent, country and artifact.
    """
    table = label_distributions(matches.together(MATCHES))
    if table.is_empty() and not work.in_run:
        raise NothingScored("no image has a nearest match", expected="matches of rank 1", found="none")
    return table_outcome(work, DISTRIBUTIONS, table)


def label_distributions(matches: pl.DataFrame) -> pl.DataFrame:
    """Count the labels of the nearest matches of each model and concept, and of each model over its concepts.

    Returns:
        Rows that conform to DISTRIBUTIONS, in the order of its key.
    """
    parts = parts_by_concept(nearest_of(matches))
    tables = [shares(images, scope["concept"], level) for scope, images in parts for level in LEVELS]
    whole = pl.concat(tables) if tables else pl.DataFrame(schema=DISTRIBUTIONS.schema)
    return whole.sort(DISTRIBUTIONS.key, maintain_order=True)


def shares(images: pl.DataFrame, concept: str | None, level: str) -> pl.DataFrame:
    """Count the labels of one level, spelled as they first are; an image without a prompt is a batch of its own."""
    texts = {"model": images["model"][0], "concept": concept, "level": level}
    repeat = pl.concat_str("prompt_id", pl.col("repeat").cast(pl.String).fill_null(""), separator="\n")
    batch = pl.when(pl.col("prompt_id").is_null()).then(pl.col("image_id")).otherwise(repeat)
    labels = images[level].drop_nulls().unique().sort().to_list()
    spellings: dict[object, str] = {}
    for label in labels:
        spellings.setdefault(spell(label), label)
    plain = {label: spellings[spell(label)] for label in labels}
    label = images[level].replace_strict(plain, default=None, return_dtype=pl.String)
    limits = share_limits(images.select(batch.alias("batch"), label.alias("label")))
    table = label_shares.distribution(images.select(LEVELS), level=level).rename({"n": "images", "p": "share"})
    table = table.join(limits, on="label", how="left", nulls_equal=True, maintain_order="left")
    return (
        table.rename({"low": "ci_low", "high": "ci_high"})
        .with_columns(pl.lit(text, pl.String).alias(name) for name, text in texts.items())
        .select(pl.col(name).cast(dtype) for name, dtype in DISTRIBUTIONS.schema.items())
    )
