"""The stage from pictures of artifacts to an index."""

from pathlib import Path

from culturekit.index.build import build_index
from culturekit.pipeline.public_files import prompts_table, space_table
from culturekit.pipeline.stage import Stage

__all__ = ["index_stage"]


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
