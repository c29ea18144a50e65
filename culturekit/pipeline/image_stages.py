"""The stages that say what an image truly shows, and how good it is."""

from pathlib import Path

from culturekit.index.score_pictures import score_pictures
from culturekit.index.truth import true_matches
from culturekit.pipeline.public_files import space_table
from culturekit.pipeline.stage import Stage

__all__ = ["quality_stage", "truth_stage"]


def truth_stage(images: Path, cspace: Path, *, name: str) -> Stage:
    """Write down what simulated images really show."""
    inputs = {"images": images, "cspace": cspace}
    return Stage(
        name,
        "truth",
        1,
        lambda work: true_matches(work, images, space_table(cspace, work.scratch)),
        inputs,
        packages=("polars",),
    )


def quality_stage(images: Path, *, scorer: str, name: str) -> Stage:
    """Score the quality of images."""
    return Stage(
        name,
        "quality",
        1,
        lambda work: score_pictures(work, images, scorer),
        {"images": images},
        {"scorer": scorer},
        packages=("numpy", "pillow", "polars"),
    )
