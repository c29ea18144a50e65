"""The stages that change an index: each reads a finished folder and writes another."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.families.handles.weights_behind import weights_behind
from culturekit.index.folder.index_append import AppendFiles, append_index
from culturekit.index.folder.index_changes import compact_index, remove_artifacts
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.manifest import read_manifest

__all__ = ["append_stage", "compact_stage", "remove_stage"]

PACKAGES = ("numpy", "pillow", "polars")


def append_stage(index: Path, files: AppendFiles, *, encoder: str | None = None, name: str = "index") -> Stage:
    """Append pictures and artifacts to an index."""

    def append(work: Work) -> Outcome:
        prompts = None if files.prompts is None else prompts_table(files.prompts, work.scratch)
        cspace = None if files.cspace is None else space_table(files.cspace, work.scratch)
        return append_index(work, index, replace(files, prompts=prompts, cspace=cspace), encoder=encoder)

    manifest = read_manifest(index)
    spec = encoder or str(manifest.notes.get("encoder", "") if manifest else "")
    return Stage(
        name,
        "index",
        2,
        append,
        {"index": index, **files.inputs},
        {"change": "append", "encoder": encoder, **options_of(index), **(weights_behind(spec) if spec else {})},
        packages=PACKAGES,
    )


def remove_stage(index: Path, artifacts: Sequence[str], *, name: str = "index") -> Stage:
    """Remove artifacts from an index."""
    return Stage(
        name,
        "index",
        2,
        lambda work: remove_artifacts(work, index, artifacts),
        {"index": index},
        {"change": "remove", "artifacts": sorted(set(artifacts)), **options_of(index)},
        packages=PACKAGES,
    )


def compact_stage(index: Path, *, name: str = "index") -> Stage:
    """Make one part of an index of many."""
    return Stage(
        name,
        "index",
        2,
        lambda work: compact_index(work, index),
        {"index": index},
        {"change": "compact", **options_of(index)},
        packages=PACKAGES,
    )


def options_of(index: Path) -> dict[str, bool]:
    """Pass on how the texts of an index were made."""
    manifest = read_manifest(index)
    return {"countries_in_texts": bool(manifest and manifest.options.get("countries_in_texts"))}
