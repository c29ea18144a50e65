"""The stages that say what an image truly shows, and how good it is."""

from functools import partial
from pathlib import Path

from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.families.handles.weights_behind import check_weights, weights_behind
from culturekit.index.diagnosis.truth import true_matches
from culturekit.index.raters.score_pictures import score_pictures
from culturekit.stages.stage import Stage

__all__ = ["quality_stage", "truth_stage"]


def truth_stage(images: Path, cspace: Path, *, name: str = "truth") -> Stage:
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


def quality_stage(images: Path, *, scorer: str, prompts: Path | None = None, name: str = "quality") -> Stage:
    """Score the quality of images; `prompts` say what those were asked for by, where a scorer needs it."""
    return Stage(
        name,
        "quality",
        2,
        lambda work: score_pictures(
            work,
            images,
            scorer,
            prompts_path=None if prompts is None else prompts_table(prompts, work.scratch),
        ),
        {"images": images} | ({"prompts": prompts} if prompts else {}),
        {"scorer": scorer, **weights_behind(scorer)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_weights, scorer),
    )
