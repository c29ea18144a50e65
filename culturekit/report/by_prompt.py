"""The scores prompt by prompt, where models differ most, and one level below them the images of each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.report.figures import Figure, figure
from culturekit.report.looks import Tile, tile
from culturekit.report.run_folders import RunFolders

__all__ = [
    "PER_MODEL",
    "PROMPTS_SHOWN",
    "PromptImages",
    "PromptLine",
    "corrected_prompts",
    "prompt_images",
    "prompt_lines",
]

PROMPTS_SHOWN = 200
"""The others stand in `values.parquet`."""

PER_MODEL = 8
"""Images of one prompt that are shown of each model: its first repeat."""

IMAGES_SHOWN = 10_000
"""Images shown in all; prompts beyond have their scores only."""


@dataclass(frozen=True, slots=True)
class PromptLine:
    """The mapped score of each model on one prompt and how many batches that is; None for a model without any.

    `corrected` is there where the prompt is the only one of its concept: of others people saw too few images.
    """

    prompt_id: str
    text: str
    concept: str | None
    scores: tuple[tuple[float, int] | None, ...]
    corrected: tuple[Figure | None, ...] = ()


def prompt_lines(run: RunFolders, models: Sequence[str], *, kernel: str) -> Iterator[PromptLine]:
    """Give the diversity of each model on each prompt, those first on which models differ most."""
    right = {model: corrected_prompts(run, model, kernel) for model in models}
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
        yield PromptLine(
            prompt, texts.get(prompt, prompt), concept, tuple(own.get(model) for model in models),
            tuple(right[model].get(prompt) for model in models),
        )  # fmt: skip


def corrected_prompts(run: RunFolders, model: str, kernel: str) -> dict[str, Figure]:
    """Give the corrected diversity of each prompt of a model that is the only one of its concept."""
    scores = run.scores().filter(metric="vs", labels="corrected", kernel=kernel, model=model)
    pairs = run.matches(model).select("concept", "prompt_id").unique() if scores.height else pl.DataFrame()
    found = {}
    for (concept,), own in pairs.group_by("concept") if pairs.height else ():
        known = figure(scores, concept=None if concept is None else str(concept), country=None)
        if own.height == 1 and known is not None:
            found[str(own["prompt_id"][0])] = known
    return found


@dataclass(frozen=True, slots=True)
class PromptImages:
    """The images of a prompt that are shown, by model, and how many there are of each."""

    prompt_id: str
    text: str
    concept: str | None
    models: tuple[tuple[str, tuple[Tile, ...], int], ...]


def prompt_images(
    prompts: Sequence[PromptLine], looks: Mapping[str, pl.DataFrame], thumbnails: dict[str, str]
) -> Iterator[PromptImages]:
    """Give the images of the prompts on the page; `thumbnails` learns which pictures to copy under which names."""
    shown = prompts[: IMAGES_SHOWN // (PER_MODEL * max(len(looks), 1))]
    chosen: dict[tuple[str, str], tuple[tuple[Tile, ...], int]] = {}
    names = [prompt.prompt_id for prompt in shown]
    for model, table in looks.items():
        made = table.filter(pl.col("status") == "ok", pl.col("prompt_id").is_in(names))
        ordered = made.sort("prompt_id", "repeat", "slot", "image_id")
        for (prompt_id,), own in ordered.group_by("prompt_id", maintain_order=True):
            first = own.head(PER_MODEL).to_dicts()
            chosen[str(prompt_id), model] = (tuple(tile(model, row, thumbnails) for row in first), own.height)
    for prompt in shown:
        models = tuple((model, *chosen[key]) for model in looks if (key := (prompt.prompt_id, model)) in chosen)
        if models:
            yield PromptImages(prompt.prompt_id, prompt.text, prompt.concept, models)
