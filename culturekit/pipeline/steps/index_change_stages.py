"""The stages that change an index: each reads a finished folder and writes another."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.families.handles.behind_specs import behind
from culturekit.families.handles.inputs import roles_of
from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.index.encoders import ENCODERS
from culturekit.index.folder.index_append import AppendFiles, AppendOptions, append_index
from culturekit.index.folder.index_changes import Removed, compact_index, remove_artifacts
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand
from culturekit.storage.manifest import read_manifest

__all__ = ["APPEND", "COMPACT", "REMOVE", "ChangedIndex", "append_stage", "compact_stage", "remove_stage"]

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
            **(behind(ENCODERS, spec) if spec else {}),
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
