"""The stage from images to their nearest artifacts."""

from dataclasses import asdict, replace

from culturekit.families.family import check_options, kept
from culturekit.families.handles.inputs import roles_of
from culturekit.families.handles.public_files import prompts_table
from culturekit.index.matching.mapping import MappingInputs, MappingOptions, map_images
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand

__all__ = ["MAP", "map_stage"]


def map_stage(given: MappingInputs, options: MappingOptions, *, name: str = "matches") -> Stage:
    """Map every image to its nearest artifacts, with margins."""
    check_options(options)
    check_options(given.adjustment)

    def run(work: Work) -> Outcome:
        prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
        return map_images(work, replace(given, prompts=prompts), options)

    adjustment = {} if given.adjustment.name is None else {"adjustment": asdict(given.adjustment)}
    return Stage(
        name,
        "map",
        2,
        run,
        roles_of(given),
        {**kept(options), **adjustment},
        packages=("numpy", "pillow", "polars"),
    )


MAP = StageCommand(map_stage, "--index index --images images/images.parquet --out matches", workers=True, engine=True)
