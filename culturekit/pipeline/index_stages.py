"""The stages from pictures of artifacts to an index, and from images to their nearest artifacts."""

from dataclasses import asdict
from pathlib import Path

from culturekit.index.build import build_index
from culturekit.index.mapping import MappingOptions, map_images
from culturekit.pipeline.public_files import prompts_table, space_table
from culturekit.pipeline.stage import Stage

__all__ = ["index_stage", "map_stage"]


def index_stage(
    cspace: Path, references: Path, *, encoder: str, prompts: Path | None = None, name: str = "index"
) -> Stage:
    """Build the index of artifacts."""
    inputs = {"cspace": cspace, "references": references} | ({"prompts": prompts} if prompts else {})
    return Stage(
        name,
        "index",
        1,
        lambda work: build_index(
            work,
            space_table(cspace, work.scratch),
            references,
            encoder,
            prompts_path=None if prompts is None else prompts_table(prompts, work.scratch),
        ),
        inputs,
        {"encoder": encoder},
        packages=("numpy", "pillow", "polars"),
    )


def map_stage(index: Path, images: Path, options: MappingOptions, *, name: str) -> Stage:
    """Map images to their nearest artifacts."""
    return Stage(
        name,
        "map",
        1,
        lambda work: map_images(work, index, images, options),
        {"index": index, "images": images},
        asdict(options),
        packages=("numpy", "pillow", "polars"),
    )
