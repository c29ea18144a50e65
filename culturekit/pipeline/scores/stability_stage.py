"""The stage that asks whether another encoder or channel would rank the models alike."""

from collections.abc import Mapping
from pathlib import Path

from culturekit.families.family_stage import family_stage
from culturekit.metrics.scoring.score_stability import score_stability
from culturekit.records.schemas import SCORES
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["stability_stage"]


def stability_stage(scores: Mapping[str, Path], *, name: str = "scores") -> Stage:
    """Correlate the rankings of models by every two instruments."""
    return family_stage(
        "stability",
        dict(scores),
        {"instruments": sorted(scores)},
        lambda _: score_stability({key: read_table(path, SCORES) for key, path in sorted(scores.items())}),
        version=2,
        name=name,
    )
