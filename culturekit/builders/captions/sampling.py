"""A sample of captions in which each category of error has its share, and prompts that ask for their pictures."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.country_names import country_code
from culturekit.builders.filtering.pilot import shares
from culturekit.errors import UsageError
from culturekit.records.schemas import CAPTIONS, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Seed
from culturekit.storage.tables import read_table, write_table

__all__ = ["SampleOptions", "sample_captions"]

BENCHMARK = "c3"


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """How many captions are drawn."""

    size: Annotated[
        int,
        Field(
            ge=1,
            description="Captions of the sample. Each category of error gives one; each further place goes to the one "
            "that lacks most of its share, the first of the alphabet where two lack as much.",
        ),
    ] = 500
    seed: Seed = 0


def sample_captions(work: Work, path: Path, options: SampleOptions) -> Outcome:
    """Draw captions of each category, and write a prompt for each."""
    captions = read_table(path, CAPTIONS).sort(CAPTIONS.key)
    if captions.height < options.size:
        raise UsageError(
            "there are fewer captions than the sample asks for", where=str(path),
            expected=f"at least {options.size:,}", found=f"{captions.height:,}", hint="Choose a smaller --size.",
        )  # fmt: skip
    sizes = dict(captions["category"].value_counts().sort("category").iter_rows())
    wanted = shares(sizes, options.size)
    order = np.random.default_rng(options.seed).permutation(captions.height)
    place = pl.int_range(pl.len()).over("category")
    drawn = captions[order.tolist()].filter(place < pl.col("category").replace_strict(wanted)).sort(CAPTIONS.key)
    write_table(work.out, CAPTIONS, drawn)
    write_table(work.out, PROMPTS, prompts_of(drawn))
    categories = {name: {"captions": count, "drawn": wanted[name]} for name, count in sizes.items()}
    return Outcome({"captions": drawn.height, "prompts": drawn.height}, {}, {"categories": categories})


def prompts_of(captions: pl.DataFrame) -> pl.DataFrame:
    """Ask for a picture of each caption, in its own words."""
    countries = {culture: country_code(culture) for culture in captions["culture"].unique()}
    return captions.select(
        pl.col("id").alias("prompt_id"),
        "text",
        pl.lit(None, pl.String).alias("negative_text"),
        pl.lit(BENCHMARK).alias("benchmark"),
        pl.lit("caption").alias("kind"),
        pl.col("category").alias("concept"),
        pl.col("culture").replace_strict(countries, return_dtype=pl.String).alias("country"),
        *(pl.lit(None, pl.String).alias(name) for name in ("group", "artifact_id")),
        "language",
        pl.lit("caption").alias("template_id"),
    )
