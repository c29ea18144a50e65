"""The stages from pictures of artifacts to an index, and to folders of vectors."""

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from culturekit.families.handles.behind_specs import behind, check_ready
from culturekit.families.handles.inputs import roles_of
from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource, embed_table
from culturekit.index.encoders import ENCODERS
from culturekit.index.folder.build import IndexFiles, IndexOptions, build_index
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand
from culturekit.storage.package_data import shipped

__all__ = ["BUILD", "EMBED", "embed_stage", "index_stage"]

TEMPLATES = "index/folder/text_templates.yaml"


def index_stage(files: IndexFiles, options: IndexOptions) -> Stage:
    """Build the index of a space from pictures, names, or both."""

    def build(work: Work) -> Outcome:
        prompts = None if files.prompts is None else prompts_table(files.prompts, work.scratch)
        return build_index(
            work, replace(files, cspace=space_table(files.cspace, work.scratch), prompts=prompts), options
        )

    return Stage(
        "index",
        "index",
        2,
        build,
        {**roles_of(files), **shipped_templates(files, options)},
        {**asdict(options), **behind(ENCODERS, options.encoder)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, ENCODERS, options.encoder),
    )


def shipped_templates(files: IndexFiles, options: IndexOptions) -> dict[str, Path]:
    """Name the wordings that come with culturekit as an input, where texts may be made with them."""
    if files.templates is not None or options.channel == "image":
        return {}
    return {"templates": shipped(TEMPLATES)}


BUILD = StageCommand(
    index_stage,
    "--cspace cspace/cspace.parquet --encoder embedded --references references/images.parquet --out index",
    workers=True,
    engine=True,
)


def embed_stage(source: EmbedSource, options: EmbedOptions) -> Stage:
    """Embed images or texts into a folder of vectors.

    Scores and `index map` take it.
    """
    encoder = options.encoder
    return Stage(
        "vectors",
        "embed",
        1,
        lambda work: embed_table(work, source, encoder),
        source.inputs,
        {**source.options, "encoder": encoder, **behind(ENCODERS, encoder)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, ENCODERS, encoder),
    )


EMBED = StageCommand(
    embed_stage,
    "--images images/images.parquet --encoder embedded --out vectors",
    workers=True,
    engine=True,
    also=False,
)
