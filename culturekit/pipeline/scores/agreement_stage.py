"""The stage that scores agreement: annotations, and verdicts of judge models, in; agreement and divergence out."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import polars as pl

from culturekit.families.family_stage import family_stage
from culturekit.families.value_files import roles
from culturekit.metrics.scoring.score_agreement import AgreementOptions, score_agreement
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import ANNOTATIONS, JUDGMENTS
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["agreement_stage"]


def agreement_stage(
    annotations: Path, options: AgreementOptions, *, judgments: Sequence[Path] = (), name: str = "scores"
) -> Stage:
    """Score agreement within each pool of annotators, and how far pools and judges lie apart."""
    settings = asdict(options)
    seed = settings.pop("seed")

    def score() -> Scored:
        verdicts = [read_table(path, JUDGMENTS).select(list(JUDGMENTS.schema)) for path in judgments]
        people = read_table(annotations, ANNOTATIONS)
        return score_agreement(people, pl.concat(verdicts) if verdicts else None, options=options)

    inputs = {"annotations": annotations, **roles("judgments", judgments)}
    return family_stage("agreement", inputs, settings, lambda _: score(), seeds={"resampling": seed}, name=name)
