"""One level below the scores by prompt: the images of each prompt, model by model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.report.by_prompt import PromptLine
from culturekit.report.looks import Tile, tile

__all__ = ["PromptImages", "prompt_images"]

PER_MODEL = 8
"""Images of one prompt that are shown of each model: its first repeat."""

MOST = 10_000
"""Images shown in all; prompts beyond have their scores only."""


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
    shown = prompts[: MOST // (PER_MODEL * max(len(looks), 1))]
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
