"""The stage that scores how good images are."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.families.family import kept
from culturekit.families.handles.behind_specs import behind, check_ready
from culturekit.families.handles.inputs import roles_of
from culturekit.families.handles.public_files import prompts_table
from culturekit.index.raters.score_pictures import QualityOptions, score_pictures
from culturekit.index.raters.scorers import SCORERS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand

__all__ = ["QUALITY", "QualityReads", "quality_stage"]


@dataclass(frozen=True, slots=True)
class QualityReads:
    """Images, and what they were asked for by, where a scorer needs it."""

    images: Annotated[Path, Field(description="Images table.")]
    prompts: Annotated[
        Path | None,
        Field(description="Prompts the images were asked for by. [what the images table says was sent]"),
    ] = None


def quality_stage(given: QualityReads, options: QualityOptions) -> Stage:
    """Score the quality of every image.

    What cannot be scored is listed with its reason.
    """
    scorer = options.scorer
    SCORERS.check(scorer)

    def run(work: Work) -> Outcome:
        prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
        return score_pictures(work, given.images, scorer, prompts_path=prompts)

    return Stage(
        "quality",
        "quality",
        2,
        run,
        roles_of(given),
        {**kept(options), **behind(SCORERS, scorer)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, SCORERS, scorer),
    )


QUALITY = StageCommand(
    quality_stage,
    "--images images/images.parquet --scorer clipscore:transformers:clip --prompts prompts/prompts.parquet "
    "--out quality",
    workers=True,
    engine=True,
)
