"""The stage from images to their nearest artifacts."""

from dataclasses import asdict, replace
from pathlib import Path

from culturekit.families.handles.public_files import prompts_table
from culturekit.index.matching.mapping import MappingInputs, MappingOptions, map_images
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage

__all__ = ["map_stage"]


def map_stage(given: MappingInputs, options: MappingOptions, *, name: str = "matches") -> Stage:
    """Map images to their nearest artifacts.

    Where the encoder lies now and who searches decide no match, so they are no part of what the result depends on.
    """
    paths: dict[str, Path | None] = {
        "index": given.index,
        "images": given.images,
        "prompts": given.prompts,
        "vectors": given.vectors,
        "calibration": given.calibration,
        "bank": given.bank,
    }
    adjustment = {} if given.adjustment is None else {"adjustment": asdict(given.adjustment)}
    return Stage(
        name,
        "map",
        2,
        lambda work: mapped(work, given, options),
        {role: path for role, path in paths.items() if path is not None},
        {**asdict(options), **adjustment},
        packages=("numpy", "pillow", "polars"),
    )


def mapped(work: Work, given: MappingInputs, options: MappingOptions) -> Outcome:
    """Map with the prompts as a table, whatever form they came in."""
    prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
    return map_images(work, replace(given, prompts=prompts), options)
