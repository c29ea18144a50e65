"""The stages that build an index and change it: each reads a finished folder and writes another."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.core.inputs import roles_of
from culturekit.core.layouts import prompts_table, space_table
from culturekit.core.package_data import shipped
from culturekit.core.spec_state import check_ready, spec_state
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand
from culturekit.core.work import Outcome, Work
from culturekit.index.encoder import ENCODERS
from culturekit.index.folder.build import (
    AppendFiles,
    IndexFiles,
    IndexOptions,
    Removed,
    append_index,
    build_index,
    compact_index,
    remove_artifacts,
)
from culturekit.index.folder.index_folder import names_countries, stated_encoder

_Index = Annotated[Path, Field(description="Folder of the index; it is read and left as it is.")]
TEMPLATES = "index/folder/text_templates.yaml"


def _stage(run: Callable[[Work], Outcome], inputs: Mapping[str, Path], options: Mapping[str, object]) -> Stage:
    return Stage("index", "index", 2, run, inputs, options, packages=("numpy", "pillow", "polars"))


def _changed(change: str, index: Path, **options: object) -> dict[str, object]:
    """Say what is done to an index; how its texts were made is passed on."""
    return {"change": change, **options, "countries_in_texts": names_countries(index)}


def index_stage(files: IndexFiles, options: IndexOptions) -> Stage:
    """Build the index of a space from pictures, names, or both."""

    def build(work: Work) -> Outcome:
        prompts = None if files.prompts is None else prompts_table(files.prompts, work.scratch)
        cspace = space_table(files.cspace, work.scratch)
        return build_index(work, replace(files, cspace=cspace, prompts=prompts), options)

    inputs = roles_of(files)
    if files.templates is None and options.channel != "image":  # texts may be made with the shipped wordings
        inputs["templates"] = shipped(TEMPLATES)
    stage = _stage(build, inputs, {**asdict(options), **spec_state(ENCODERS, options.encoder)})
    return replace(stage, before=partial(check_ready, ENCODERS, options.encoder))


def append_stage(
    index: _Index,
    files: AppendFiles,
    *,
    encoder: Annotated[
        str | None, Field(description="SPEC of the same encoder where its weights lie elsewhere now. [the index's]")
    ] = None,
) -> Stage:
    """Append pictures and artifacts to an index.

    Only what is new is embedded.
    """

    def append(work: Work) -> Outcome:
        prompts = None if files.prompts is None else prompts_table(files.prompts, work.scratch)
        cspace = None if files.cspace is None else space_table(files.cspace, work.scratch)
        return append_index(work, index, replace(files, prompts=prompts, cspace=cspace), encoder)

    spec = encoder or stated_encoder(index)
    state = spec_state(ENCODERS, spec) if spec else {}
    return _stage(append, {"index": index} | roles_of(files), _changed("append", index, encoder=encoder) | state)


def remove_stage(index: _Index, removed: Removed) -> Stage:
    """Remove artifacts from an index.

    Their vectors stay on disk until it is compacted.
    """
    going = removed.ids
    return _stage(
        lambda work: remove_artifacts(work, index, going), {"index": index}, _changed("remove", index, artifacts=going)
    )


def compact_stage(index: _Index) -> Stage:
    """Make one array again of an index that was changed.

    It is as if it had been built at once, without what was removed.
    """
    return _stage(lambda work: compact_index(work, index), {"index": index}, _changed("compact", index))


BUILD = StageCommand(
    index_stage,
    "--cspace cspace/cspace.parquet --encoder embedded --references references/images.parquet --out index",
    workers=True,
    engine=True,
)
APPEND = StageCommand(
    append_stage, "--index index --references more/images.parquet --out index-2", workers=True, engine=True
)
REMOVE = StageCommand(remove_stage, "--index index --artifact Q42 --out index-2")
COMPACT = StageCommand(compact_stage, "--index index-2 --out index-3")
