"""The headline of each model: what its images score over all prompts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.report.figures import Figure, figure
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["HEADLINE_KERNEL", "ModelLine", "model_lines"]

HEADLINE_KERNEL = "country"


@dataclass(frozen=True, slots=True)
class ModelLine:
    """A model in the headline: its mapped diversity, the corrected one after an audit, the true one where known."""

    model: str
    backend: str
    images: int
    mapped: Figure
    corrected: Figure | None
    truth: Figure | None
    quality: Figure | None
    culture_free: int | None
    similarity: Mapping[str, float]


def model_lines(run: RunFolders, scores: pl.DataFrame) -> Iterator[ModelLine]:
    """Give the headline of each model, over all its prompts."""
    for model in run.models:
        about = scores.filter(pl.col("model") == model)
        concept = None if about["concept"].null_count() else about["concept"][0]
        overall = about.filter(pl.col("concept").eq_missing(pl.lit(concept, pl.String)))
        vs = overall.filter(pl.col("metric") == "vs", pl.col("kernel") == HEADLINE_KERNEL)
        mapped = figure(vs, labels="mapped")
        if mapped is None:
            continue
        truth = run.manifest(roles.TRUTH, model).counts if model in run.truthful else {}
        yield ModelLine(
            model=model,
            backend=str(run.manifest(roles.IMAGES, model).options["backend"]),
            images=run.manifest(roles.IMAGES, model).counts["ok"],
            mapped=mapped,
            corrected=figure(vs, labels="corrected"),
            truth=figure(vs, labels="truth") if model in run.truthful else None,
            quality=figure(overall.filter(pl.col("metric") == "quality"), labels="mapped"),
            culture_free=truth.get("culture_free"),
            similarity=run.manifest(roles.MATCHES, model).notes["similarity"],
        )
