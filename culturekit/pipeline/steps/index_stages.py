"""The stages from pictures of artifacts to an index, to folders of vectors, and from one index to another."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from culturekit.families.handles.public_files import prompts_table, space_table
from culturekit.families.handles.weights_behind import check_weights, weights_behind
from culturekit.index.embedding.embed_table import EmbedSource, embed_table
from culturekit.index.folder.build import IndexFiles, IndexOptions, build_index
from culturekit.index.folder.index_append import AppendFiles, append_index
from culturekit.index.folder.index_changes import compact_index, remove_artifacts
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.manifest import read_manifest
from culturekit.storage.package_data import shipped

__all__ = ["append_stage", "compact_stage", "embed_stage", "index_stage", "remove_stage"]

TEMPLATES = "index/folder/text_templates.yaml"

PACKAGES = ("numpy", "pillow", "polars")


def index_stage(files: IndexFiles, options: IndexOptions, *, name: str = "index") -> Stage:
    """Build the index of artifacts."""

    def build(work: Work) -> Outcome:
        prompts = None if files.prompts is None else prompts_table(files.prompts, work.scratch)
        return build_index(
            work, replace(files, cspace=space_table(files.cspace, work.scratch), prompts=prompts), options
        )

    return Stage(
        name,
        "index",
        2,
        build,
        {**files.inputs, **shipped_templates(files, options)},
        {**asdict(options), **weights_behind(options.encoder)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_weights, options.encoder),
    )


def shipped_templates(files: IndexFiles, options: IndexOptions) -> dict[str, Path]:
    """Name the wordings that come with culturekit as an input, where texts may be made with them."""
    if files.templates is not None or options.channel == "image":
        return {}
    return {"templates": shipped(TEMPLATES)}


def embed_stage(source: EmbedSource, encoder: str, *, name: str = "vectors") -> Stage:
    """Turn the images or texts of a table into a folder of vectors."""
    return Stage(
        name,
        "embed",
        1,
        lambda work: embed_table(work, source, encoder),
        source.inputs,
        {**source.options, "encoder": encoder, **weights_behind(encoder)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_weights, encoder),
    )


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
