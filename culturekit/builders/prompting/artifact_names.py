"""A prompt per artifact that is nothing but its name: by these, pictures of a folder find what they show."""

from pathlib import Path

import polars as pl

from culturekit.records.schemas import CSPACE, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, table_outcome

__all__ = ["artifact_prompts", "name_artifacts"]


def name_artifacts(work: Work, space_path: Path) -> Outcome:
    """Write one prompt for each artifact of a cultural space, however many countries it belongs to."""
    prompts = artifact_prompts(read_table(space_path, CSPACE))
    return table_outcome(work, PROMPTS, prompts)


def artifact_prompts(space: pl.DataFrame) -> pl.DataFrame:
    """Give the prompts; the id of each is that of its artifact."""
    first = space.sort("artifact_id", "country", "concept").unique("artifact_id", keep="first", maintain_order=True)
    made = first.select(
        "artifact_id", "concept", "country",
        prompt_id=pl.col("artifact_id"),
        text=pl.col("name"),
        benchmark=pl.lit("cube"),
        kind=pl.lit("cube"),
        language=pl.lit("en"),
        template_id=pl.lit("name"),
        negative_text=pl.lit(None, pl.String),
        group=pl.lit(None, pl.String),
    )  # fmt: skip
    return made.select(list(PROMPTS.schema))
