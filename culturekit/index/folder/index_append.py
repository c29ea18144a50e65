"""More pictures and artifacts into an index: only what is new is embedded, and the old vectors stay as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.encoders import ENCODERS
from culturekit.index.folder.artifact_names import AliasesOfCandidates, artifact_names, artifacts_of, country_names
from culturekit.index.folder.build import NO_REFERENCE, Gathered
from culturekit.index.folder.index_folder import OpenIndex, check_identity, open_index
from culturekit.index.folder.index_parts import read_graves, save_part_of_index, take_over
from culturekit.index.folder.references import PromptsOfReferences, known_references
from culturekit.index.folder.text_channel import text_vectors
from culturekit.index.folder.text_templates import TextTemplates
from culturekit.records.schemas import ARTIFACTS, DROPS, TOMBSTONES
from culturekit.records.work import Outcome, Work
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table, write_drops, write_table

__all__ = ["AppendFiles", "AppendOptions", "append_index", "indexed_rows"]

REMOVED = "reference of a removed artifact"
STAGE = "index append"


@dataclass(frozen=True, slots=True)
class AppendFiles:
    """What is appended."""

    references: Annotated[
        Path | None, Field(description="Images table of pictures; those the index has already are passed over.")
    ] = None
    prompts: PromptsOfReferences = None
    cspace: Annotated[
        Path | None, Field(description="Cultural space with new artifacts; those known already must be unchanged.")
    ] = None
    aliases: Annotated[
        Path | None, Field(description="Other names of new artifacts: Parquet or CSV with artifact_id and alias.")
    ] = None
    candidates: AliasesOfCandidates = None


@dataclass(frozen=True, slots=True)
class AppendOptions:
    """Who embeds it."""

    encoder: Annotated[
        str | None, Field(description="SPEC of the same encoder where its weights lie elsewhere now. [the index's]")
    ] = None


@dataclass(slots=True)
class Appended(Gathered):
    """What is new so far, how many references are not, and which artifacts were removed."""

    known: int = 0
    removed: frozenset[str] = frozenset()


def append_index(work: Work, folder: Path, files: AppendFiles, options: AppendOptions) -> Outcome:
    """Write an index that holds another, and what is new, as a part of its own."""
    index = open_index(folder)
    spec = options.encoder or index.encoder
    check_identity(index, ENCODERS.kept(spec))
    artifacts = with_new(index, files.cspace)
    found = Appended(removed=frozenset(index.notes.get("removed", [])))
    if files.references is not None:
        add_pictures(work, index, files.references, files.prompts, artifacts, found, encoder=spec)
    if "text" in index.notes["channels"] and files.cspace is not None:
        new = artifacts.join(index.artifacts, on="artifact_id", how="anti")
        names, _ = artifact_names(files.cspace, aliases=files.aliases, candidates=files.candidates)
        places = country_names(files.cspace) if names_countries(index) else {}
        add_names(work, index, new, names, places, found, encoder=spec)
    if not found.rows:
        raise UsageError("nothing is new", where=str(folder), found=f"{found.known} references that it has already")
    return written(work, index, spec, artifacts, found)


def written(work: Work, index: OpenIndex, encoder: str, artifacts: pl.DataFrame, found: Appended) -> Outcome:
    """Write the folder: the old parts, the new one, and tables that tell of both."""
    take_over(index.folder, work.out)
    shards: list[str] = list(index.notes.get("shards", []))
    rows = pl.concat(found.rows)
    shards.append(save_part_of_index(work.out, len(shards) + 1, rows, np.concatenate(found.vectors), artifacts))
    write_table(work.out, ARTIFACTS, artifacts)
    graves = read_graves(index.folder)
    if graves.height:
        write_table(work.out, TOMBSTONES, graves)
    indexed = pl.concat([indexed_rows(index).select("artifact_id"), rows.select("artifact_id")])["artifact_id"]
    drops = drops_of(index, artifacts, indexed, found)
    reasons = write_drops(work.out, drops)
    notes = {**index.notes, "encoder": encoder, "shards": shards}
    counts = {
        "ids": indexed.len(),
        "artifacts": artifacts.height - len(found.removed),
        "indexed": indexed.n_unique(),
        "drops": drops.height,
        "appended": rows.height,
        "known": found.known,
    }
    return Outcome(counts, reasons, notes)


def with_new(index: OpenIndex, cspace: Path | None) -> pl.DataFrame:
    """Give the artifacts of an index and a cultural space; those of both must be the same in both."""
    if cspace is None:
        return index.artifacts
    given = artifacts_of(cspace)
    both = given.join(index.artifacts, on="artifact_id", how="semi").sort("artifact_id")
    known = index.artifacts.join(given, on="artifact_id", how="semi").sort("artifact_id")
    for mine, theirs in zip(known.iter_rows(named=True), both.iter_rows(named=True), strict=True):
        if mine != theirs:
            name = next(name for name in mine if mine[name] != theirs[name])
            raise UsageError(
                "an artifact has changed since the index was built",
                where=f"{cspace}: {mine['artifact_id']}",
                expected=f"{name} {mine[name]!r}",
                found=repr(theirs[name]),
                hint="Build the index again: the artifact's vectors stand elsewhere now.",
            )
    return pl.concat([index.artifacts, given.join(known, on="artifact_id", how="anti")]).sort("artifact_id")


def indexed_rows(index: OpenIndex) -> pl.DataFrame:
    """List channel, artifact_id and source of every vector that counts, in order."""
    names = index.artifacts["artifact_id"]
    parts = [
        pl.DataFrame({"artifact_id": names.gather(channel.owners), "source": channel.sources}).select(
            pl.lit(name).alias("channel"), "artifact_id", "source"
        )
        for name, channel in index.channels.items()
    ]
    return pl.concat(parts)


def add_pictures(
    work: Work,
    index: OpenIndex,
    references_path: Path,
    prompts_path: Path | None,
    artifacts: pl.DataFrame,
    found: Appended,
    *,
    encoder: str,
) -> None:
    """Embed the references that the index has not; one is known by its artifact and its image_id."""
    if "image" not in index.notes["channels"]:
        raise UsageError("the index has no channel of pictures", where=str(index.folder), found="names only")
    alive = artifacts.filter(~pl.col("artifact_id").is_in(found.removed))
    references = known_references(references_path, prompts_path, alive)
    for image_id, reason, detail in references.left_out:
        found.drop(image_id, REMOVED if detail in found.removed else reason, detail, stage=STAGE)
    old = indexed_rows(index).filter(pl.col("channel") == "image").select("artifact_id", image_id="source")
    fresh = references.rows.join(old, on=["artifact_id", "image_id"], how="anti", maintain_order="left")
    found.known = references.rows.height - fresh.height
    if fresh.height:
        found.add_pictures(work, fresh, references_path.parent, encoder, stage=STAGE)


def add_names(
    work: Work,
    index: OpenIndex,
    new: pl.DataFrame,
    names: Mapping[str, Sequence[str]],
    places: Mapping[str, Sequence[str]],
    found: Appended,
    *,
    encoder: str,
) -> None:
    """Embed the names of new artifacts, in the wordings that the index was built with."""
    if new.is_empty():
        return
    templates = TextTemplates.model_validate(index.notes["templates"])
    answer = text_vectors(work, new, names, templates, encoder, countries=places)
    found.add("text", answer.rows, answer.vectors)


def names_countries(index: OpenIndex) -> bool:
    """Tell whether the texts of an index name the countries of artifacts."""
    manifest = read_manifest(index.folder)
    return bool(manifest and manifest.options.get("countries_in_texts"))


def drops_of(index: OpenIndex, artifacts: pl.DataFrame, indexed: pl.Series, found: Appended) -> pl.DataFrame:
    """List what has no place, from before and from now; an artifact that has a reference now is no longer listed."""
    path = index.folder / "drops.parquet"
    before = read_table(path, DROPS) if path.exists() else pl.DataFrame(schema=DROPS.schema)
    before = before.filter(~((pl.col("reason") == NO_REFERENCE) & pl.col("key").is_in(indexed.unique().to_list())))
    new = pl.DataFrame(found.drops, schema=DROPS.schema)
    before = before.join(new, on=["key", "stage"], how="anti", maintain_order="left")
    listed = set(index.artifacts["artifact_id"]) | set(indexed)
    missing: list[tuple[Any, ...]] = [
        (artifact, None, "index", NO_REFERENCE, None) for artifact in artifacts["artifact_id"] if artifact not in listed
    ]
    return pl.concat([before, new, pl.DataFrame(missing, schema=DROPS.schema, orient="row")])
