"""The ceiling of a score: what a model would reach that showed every artifact of a concept equally often."""

import numpy as np
import polars as pl

from culturekit.records.schemas import MATCHES
from culturekit.storage.digests import digest

__all__ = ["CEILING", "ceiling_matches"]

CEILING = "ceiling"
"""The model that the ceiling stands under."""


def ceiling_matches(
    held_out: pl.DataFrame, artifacts: pl.DataFrame, *, size: int, repeats: int, seed: int
) -> pl.DataFrame:
    """Deal held-out references out in batches of different artifacts, and give what each was mapped to, as MATCHES.

    The references went through the same mapping as images do, so that its errors are in the ceiling too. A concept with
    fewer artifacts than a batch has places shows some of them twice, as any model would have to.

    Args:
        held_out: a row per held-out picture: `shown`, the artifact it shows; `artifact_id`, `artifact`, `country`,
            `countries`, `continent`, `score` and `margin` of what it was mapped to.
        artifacts: conforms to ARTIFACTS.
        size: images per batch.
        repeats: batches per concept.
        seed: of the draws.
    """
    concepts = artifacts.select(shown="artifact_id", concept="concepts").explode("concept")
    placed = held_out.join(concepts, on="shown").sort("concept", "shown", "score", "artifact_id")
    rows: list[pl.DataFrame] = []
    for (concept,), own in placed.group_by("concept", maintain_order=True):
        rng = np.random.default_rng([seed, int(digest(["ceiling", str(concept)])[:16], 16)])
        of_artifact = own.with_row_index("row").group_by("shown", maintain_order=True).agg("row")["row"].to_list()
        for repeat in range(repeats):
            chosen = dealt(len(of_artifact), size, rng)
            picked = [int(rng.choice(of_artifact[artifact])) for artifact in chosen]
            batch = own[picked].with_columns(
                repeat=pl.lit(repeat, pl.UInt16), slot=pl.int_range(len(picked)).cast(pl.UInt8)
            )
            rows.append(batch)
    if not rows:
        return pl.DataFrame(schema=MATCHES.schema)
    return (
        pl.concat(rows)
        .with_columns(
            image_id=pl.format("ceiling-{}-{}-{}", "concept", "repeat", "slot"),
            model=pl.lit(CEILING),
            prompt_id=pl.format("ceiling-{}", "concept"),
            rank=pl.lit(1, pl.UInt16),
            abstained=pl.lit(value=False),
            method=pl.lit("nearest"),
            country_margin=pl.lit(float("nan")),  # nobody asks for it here
        )
        .select(pl.col(name).cast(dtype) for name, dtype in MATCHES.schema.items())
    )


def dealt(artifacts: int, size: int, rng: np.random.Generator) -> list[int]:
    """Draw `size` artifacts, all of them before any comes again."""
    drawn: list[int] = []
    while len(drawn) < size:
        drawn += rng.permutation(artifacts).tolist()
    return drawn[:size]
