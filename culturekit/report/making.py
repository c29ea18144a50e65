"""How the images of each model were made, side by side: what differs besides the model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.generation.comparability import Traits, traits_of
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["Making", "MakingLine", "making_in"]

ROWS = (
    ("rewriter", "prompts rewritten"),
    ("seeds", "seeds honoured"),
    ("sizes", "sizes in pixels"),
    ("negatives", "negative prompts without effect"),
    ("cut", "prompts longer than an encoder reads"),
    ("left_out", "images that were not made"),
    ("asked", "asked"),
)
"""What is told of each model, in the order in which it stands."""

MADE_ALIKE = ("rewriter", "seeds", "sizes", "negatives", "cut")
"""Of these a difference is marked: a score may rest on it."""


@dataclass(frozen=True, slots=True)
class MakingLine:
    """One thing that is told of every model; `apart` where it is not the same for all and scores may rest on it."""

    what: str
    cells: tuple[str, ...]
    apart: bool


@dataclass(frozen=True, slots=True)
class Making:
    """How images were made: a column for each model, with what answered, and a line for each thing told."""

    models: tuple[str, ...]
    backends: tuple[str, ...]
    versions: tuple[tuple[str, ...], ...]
    lines: tuple[MakingLine, ...]

    @property
    def apart(self) -> bool:
        """Tell whether anything is not the same for all."""
        return any(line.apart for line in self.lines)


def making_in(run: RunFolders, models: Sequence[str]) -> Making | None:
    """Read how the images of each model were made; None where all are simulated."""
    if set(models) <= set(run.truthful):
        return None
    told, versions = [], []
    for model in models:
        images = run.images(model)
        traits = traits_of(images)
        told.append(facts(images, traits))
        versions.append(tuple(traits.versions))
    lines = tuple(lines_of(told))
    backends = tuple(str(run.manifest(roles.IMAGES, model).options["backend"]) for model in models)
    return Making(tuple(models), backends, tuple(versions), lines)


def lines_of(told: Sequence[Mapping[str, str]]) -> Iterator[MakingLine]:
    """Turn what is told of each model into lines; one that says nothing of any model is left away."""
    for key, what in ROWS:
        cells = tuple(facts[key] for facts in told)
        if any(cells):
            yield MakingLine(what, cells, key in MADE_ALIKE and len(set(cells)) > 1)


def facts(images: pl.DataFrame, traits: Traits) -> dict[str, str]:
    """Say in words how the images of one model were made."""
    failed = images.filter(pl.col("status") != "ok")["status"].value_counts(sort=False).sort("status")
    days = images["requested_at"].drop_nulls().dt.date()
    first, last = (str(days.min()), str(days.max())) if days.len() else ("", "")
    return {
        "rewriter": shown(traits.rewriter, {"on": "yes", "off": "no", "unknown": "not known"}),
        "seeds": shown(traits.seeds, {"yes": "yes", "no": "no", "unknown": "not known"}),
        "sizes": shown(traits.sizes, {}),
        "negatives": f"{traits.unsent_negatives:,}" if traits.unsent_negatives else "",
        "cut": f"{traits.cut_prompts:,}" if traits.cut_prompts else "",
        "left_out": ", ".join(f"{count:,} {status}" for status, count in failed.iter_rows()),
        "asked": first if first == last else f"{first} to {last}",
    }


def shown(counts: Mapping[str, int], words: Mapping[str, str]) -> str:
    """Write the values of a trait, the most frequent first, with their counts where there are several."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    if len(ordered) == 1:
        return words.get(ordered[0][0], ordered[0][0])
    first = [f"{words.get(value, value)} ({count:,})" for value, count in ordered[:4]]
    return ", ".join(first) + (f" and {len(ordered) - 4} more" if len(ordered) > 4 else "")
