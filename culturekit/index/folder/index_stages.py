"""The stages that build an index and change it: each reads a finished folder and writes another."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.core.digests import read_manifest
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
    AppendOptions,
    IndexFiles,
    IndexOptions,
    Removed,
    append_index,
    build_index,
    compact_index,
    remove_artifacts,
)

PACKAGES = ("numpy", "pillow", "polars")


@dataclass(frozen=True, slots=True)
class ChangedIndex:
    """What is changed."""

    index: Annotated[Path, Field(description="Folder of the index; it is read and left as it is.")]


def append_stage(given: ChangedIndex, files: AppendFiles, options: AppendOptions) -> Stage:
    """Append pictures and artifacts to an index.

    Only what is new is embedded.
    """

    def append(work: Work) -> Outcome:
        prompts = None if files.prompts is None else prompts_table(files.prompts, work.scratch)
        cspace = None if files.cspace is None else space_table(files.cspace, work.scratch)
        return append_index(work, given.index, replace(files, prompts=prompts, cspace=cspace), options)

    manifest = read_manifest(given.index)
    spec = options.encoder or str(manifest.notes.get("encoder", "") if manifest else "")
    return Stage(
        "index",
        "index",
        2,
        append,
        roles_of(given) | roles_of(files),
        {
            "change": "append",
            "encoder": options.encoder,
            **options_of(given.index),
            **(spec_state(ENCODERS, spec) if spec else {}),
        },
        packages=PACKAGES,
    )


def remove_stage(given: ChangedIndex, removed: Removed) -> Stage:
    """Remove artifacts from an index.

    Their vectors stay on disk until it is compacted.
    """
    going = removed.ids
    return Stage(
        "index",
        "index",
        2,
        lambda work: remove_artifacts(work, given.index, going),
        roles_of(given),
        {"change": "remove", "artifacts": going, **options_of(given.index)},
        packages=PACKAGES,
    )


def compact_stage(given: ChangedIndex) -> Stage:
    """Make one array again of an index that was changed.

    It is as if it had been built at once, without what was removed.
    """
    return Stage(
        "index",
        "index",
        2,
        lambda work: compact_index(work, given.index),
        roles_of(given),
        {"change": "compact", **options_of(given.index)},
        packages=PACKAGES,
    )


def options_of(index: Path) -> dict[str, bool]:
    """Pass on how the texts of an index were made."""
    manifest = read_manifest(index)
    return {"countries_in_texts": bool(manifest and manifest.options.get("countries_in_texts"))}


APPEND = StageCommand(
    append_stage, "--index index --references more/images.parquet --out index-2", workers=True, engine=True
)

REMOVE = StageCommand(remove_stage, "--index index --artifact Q42 --out index-2")

COMPACT = StageCommand(compact_stage, "--index index-2 --out index-3")

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
        {**asdict(options), **spec_state(ENCODERS, options.encoder)},
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
