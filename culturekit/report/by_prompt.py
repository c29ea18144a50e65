"""The scores prompt by prompt: where models differ most."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.report.run_folders import RunFolders

__all__ = ["PROMPTS_SHOWN", "PromptLine", "prompt_lines"]

PROMPTS_SHOWN = 200
"""The others stand in `values.parquet`."""


@dataclass(frozen=True, slots=True)
class PromptLine:
    """The mean score of each model on one prompt and how many batches that is; None for a model without any."""

    prompt_id: str
    text: str
    concept: str | None
    scores: tuple[tuple[float, int] | None, ...]


def prompt_lines(run: RunFolders, models: Sequence[str], *, kernel: str) -> Iterator[PromptLine]:
    """Give the mean mapped diversity of each model on each prompt, those first on which models differ most."""
    values = run.values().filter(
        pl.col("metric") == "vs",
        pl.col("model").is_in(list(models)),
        pl.col("kernel") == kernel,
        pl.col("labels") == "mapped",
        pl.col("prompt_id").is_not_null(),
        pl.col("value").is_not_null(),
    )
    means = values.group_by("prompt_id", "model").agg(
        pl.col("value").mean(), pl.col("item").n_unique().alias("n"), pl.col("concept").drop_nulls().first()
    )
    spread = (pl.col("value").max() - pl.col("value").min()).alias("spread")
    order = means.group_by("prompt_id").agg(spread, pl.col("concept").drop_nulls().first())
    texts = run.prompts()
    for prompt, _, concept in order.sort(["spread", "prompt_id"], descending=[True, False]).head(PROMPTS_SHOWN).rows():
        own = {
            model: (mean, n) for model, mean, n in means.filter(prompt_id=prompt).select("model", "value", "n").rows()
        }
        yield PromptLine(prompt, texts.get(prompt, prompt), concept, tuple(own.get(model) for model in models))
