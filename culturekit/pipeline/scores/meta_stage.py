"""The stage that holds metrics against people: values and annotations in, correlations out."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.metrics.scoring.score_meta import MetaOptions, score_meta
from culturekit.metrics.scoring.scored import Scored
from culturekit.pipeline.family_stage import family_stage
from culturekit.pipeline.scores.value_files import read_values, roles
from culturekit.pipeline.stage import Stage
from culturekit.records.schemas import ANNOTATIONS
from culturekit.storage.tables import read_table

__all__ = ["meta_stage"]


def meta_stage(
    values: Sequence[Path],
    options: MetaOptions,
    *,
    annotations: Path | None = None,
    human: Sequence[Path] = (),
    name: str = "scores",
) -> Stage:
    """Correlate metrics with ratings by people, and with each other."""
    settings = asdict(options)
    seed = settings.pop("seed")

    def score() -> Scored:
        return score_meta(
            read_values(values),
            annotations=None if annotations is None else read_table(annotations, ANNOTATIONS),
            human=read_values(human) if human else None,
            options=options,
        )

    inputs = roles("values", values) | roles("human", human)
    if annotations is not None:
        inputs["annotations"] = annotations
    return family_stage("meta", inputs, settings, lambda _: score(), seeds={"bootstrap": seed}, name=name)
