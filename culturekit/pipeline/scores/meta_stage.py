"""The stage that holds metrics against people: values and annotations in, correlations out."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.family_stage import family_stage
from culturekit.families.value_files import read_values, roles
from culturekit.metrics.scoring.automatic_values import automatic_values
from culturekit.metrics.scoring.score_meta import MetaOptions, score_meta
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import ANNOTATIONS, MATCHES, PROMPTS, QUALITY, VALUES
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["AutomaticFiles", "meta_stage"]

LATER = ("choices", "people_only", "level")
"""Options that came later: a stage that does without them is the stage it was."""


@dataclass(frozen=True, slots=True)
class AutomaticFiles:
    """Tables that say something of single images, and become values: quality, matches, and what was asked for."""

    quality: tuple[Path, ...] = ()
    matches: tuple[Path, ...] = ()
    prompts: Path | None = None

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        given = {} if self.prompts is None else {"prompts": self.prompts}
        return {**roles("quality", self.quality), **roles("matches", self.matches), **given}

    def values(self, items: Sequence[str]) -> pl.DataFrame:
        """Read what they say of some images."""
        return automatic_values(
            [read_table(path, QUALITY) for path in self.quality],
            [read_table(path, MATCHES) for path in self.matches],
            None if self.prompts is None else read_table(self.prompts, PROMPTS),
            items=items,
        )


def meta_stage(
    values: Sequence[Path],
    options: MetaOptions,
    *,
    annotations: Path | None = None,
    human: Sequence[Path] = (),
    automatic: AutomaticFiles | None = None,
    name: str = "scores",
) -> Stage:
    """Correlate metrics with ratings by people, and with each other.

    What becomes a value here, of `automatic`, is written beside the scores.
    """
    if automatic is not None and annotations is None:
        raise UsageError("quality and matches are held against annotations", expected="--annotations")
    if automatic is not None and not automatic.matches:
        raise UsageError("the model of an image stands in its match", expected="--matches, one table per model")

    def score() -> Scored:
        people = None if annotations is None else read_table(annotations, ANNOTATIONS)
        own = None if automatic is None or people is None else automatic.values(people["item_id"].unique().to_list())
        parts = [*([read_values(values)] if values else []), *([] if own is None else [own])]
        answer = score_meta(
            pl.concat(parts).unique(VALUES.key, keep="first", maintain_order=True).sort(VALUES.key),
            annotations=people,
            human=read_values(human) if human else None,
            options=options,
        )
        return answer if own is None else Scored(answer.scores, own, answer.left_out)

    inputs = roles("values", values) | roles("human", human)
    if annotations is not None:
        inputs["annotations"] = annotations
    if automatic is not None:
        inputs |= automatic.inputs
    seed = {"bootstrap": options.seed}
    return family_stage("meta", inputs, settings_of(options), lambda _: score(), seeds=seed, name=name)


def settings_of(options: MetaOptions) -> dict[str, object]:
    """List the options that decide the bytes, but the seed."""
    usual = {field.name: field.default for field in fields(MetaOptions)}
    return {
        name: value
        for name, value in asdict(options).items()
        if name != "seed" and not (name in LATER and value == usual[name])
    }
