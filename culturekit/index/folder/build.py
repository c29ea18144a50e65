"""A cultural space to an index: pictures that show its artifacts, texts that name them, or both."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.index.embedding.embedding import embed
from culturekit.index.encoder import ImageEncoder, TextEncoder, Vectors
from culturekit.index.encoders import ENCODERS
from culturekit.index.folder.artifact_names import AliasesOfCandidates, artifact_names, artifacts_of, country_names
from culturekit.index.folder.index_checks import UNIT_WITHIN
from culturekit.index.folder.index_folder import write_index
from culturekit.index.folder.references import PromptsOfReferences, known_references
from culturekit.index.folder.text_channel import text_vectors
from culturekit.index.folder.text_templates import text_templates
from culturekit.records.choices import ChannelName, ChannelsName
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.arrays import save_rows
from culturekit.storage.tables import write_drops

__all__ = ["NO_REFERENCE", "Gathered", "IndexFiles", "IndexOptions", "build_index", "channels_for"]

NO_REFERENCE = "artifact without a reference"
ARTIFACTS_STAGE, REFERENCES_STAGE = "index", "index references"


@dataclass(frozen=True, slots=True)
class IndexFiles:
    """What an index is built from; all but the cultural space may be none."""

    cspace: Annotated[Path, Field(description="Table that `cspace release` wrote.")]
    references: Annotated[
        Path | None, Field(description="Images table of pictures that show the artifacts, several of each or one.")
    ] = None
    prompts: PromptsOfReferences = None
    templates: Annotated[
        Path | None, Field(description="YAML file of wordings for the text channel. [shipped ones]")
    ] = None
    aliases: Annotated[Path | None, Field(description="Other names: Parquet or CSV with artifact_id and alias.")] = None
    candidates: AliasesOfCandidates = None


@dataclass(frozen=True, slots=True)
class IndexOptions:
    """How an index is built: `channel` none takes all that the encoder and the references allow."""

    encoder: Annotated[
        str,
        Field(description="Who turns pictures and texts into vectors, as a SPEC."),
        Typed(offers="culturekit.index.encoders:ENCODERS"),
    ]
    channel: Annotated[
        ChannelsName | None,
        Field(description="How artifacts are known. [all that encoder and references allow]"),
        Typed(after="prompts"),
    ] = None
    countries_in_texts: Annotated[
        bool,
        Field(description="Use the wordings that name an artifact's countries, too."),
        Typed("countries-in-texts"),
    ] = False


@dataclass(slots=True)
class Gathered:
    """What the channels of an index have brought together so far."""

    rows: list[pl.DataFrame] = field(default_factory=list)
    vectors: list[Vectors] = field(default_factory=list)
    drops: list[dict[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)

    def drop(self, key: str, reason: str, detail: str | None, *, stage: str) -> None:
        """Leave something out, and say why."""
        self.drops.append({"key": key, "concept": None, "stage": stage, "reason": reason, "detail": detail})

    def add(self, channel: ChannelName, rows: pl.DataFrame, vectors: Vectors) -> None:
        """Add vectors to a channel, and the artifact_id and source of each."""
        self.rows.append(rows.select(pl.lit(channel).alias("channel"), "artifact_id", "source"))
        self.vectors.append(vectors)

    def add_pictures(self, work: Work, pictures: pl.DataFrame, root: Path, encoder: str, *, stage: str) -> int:
        """Embed pictures of artifacts, and say how many could be read."""
        answer = embed(pictures, root, encoder, work.scratch, engine=work.engine, progress=work.progress)
        for image_id, reason, detail in answer.unreadable.iter_rows():
            self.drop(image_id, reason, detail, stage=stage)
        if answer.kept.height:
            refuse_features(answer.vectors, encoder)
            self.add("image", answer.kept.select("artifact_id", source="image_id"), answer.vectors)
        return answer.kept.height


def refuse_features(vectors: Vectors, encoder: str) -> None:
    """Refuse vectors that keep their length: they are for distances of distributions, and no cosine is made of them."""
    length = float(np.linalg.norm(vectors[0]))
    if abs(length - 1) > UNIT_WITHIN:
        raise UsageError(
            "an index is made of vectors of length one", where=encoder, found=f"one of length {length:.4g}",
            hint="Leave give= away; features as they are go to `culturekit index embed`.",
        )  # fmt: skip


def build_index(work: Work, files: IndexFiles, options: IndexOptions) -> Outcome:
    """Write an index over a cultural space, and list what has no place in it."""
    channels = channels_for(files, options)
    artifacts = artifacts_of(files.cspace)
    found = Gathered()
    if "image" in channels:
        add_references(work, files, options, artifacts, found)
        list_without_reference(artifacts, found, else_known="by its names only" if "text" in channels else None)
    if "text" in channels:
        add_texts(work, files, options, artifacts, found)
    indexed = pl.concat(found.rows)
    write_index(work.out, indexed, together(work.scratch / "all-vectors.npy", found.vectors), artifacts)
    encoder = ENCODERS.kept(options.encoder)
    notes = {
        "encoder": options.encoder,
        "identity": encoder.identity.as_options(),
        "caveat": encoder.caveat,
        "channels": sorted(channels),
        **found.notes,
    }
    counts = {
        "ids": indexed.height,
        "artifacts": artifacts.height,
        "indexed": indexed["artifact_id"].n_unique(),
        "drops": len(found.drops),
        **found.counts,
    }
    return Outcome(counts, write_drops(work.out, found.drops), notes)


def channels_for(files: IndexFiles, options: IndexOptions) -> Sequence[ChannelName]:
    """Decide which channels are built, or say what is missing for one that was asked for."""
    encoder = ENCODERS.kept(options.encoder)
    texts, pictures = isinstance(encoder, TextEncoder), isinstance(encoder, ImageEncoder)
    wanted: Sequence[ChannelName]
    if options.channel is None:
        wanted = [*(["text"] if texts else []), *(["image"] if files.references else [])]  # type: ignore[list-item]
        if not wanted:
            raise no_references(options.encoder, "The encoder reads no texts, so artifacts are known by pictures only.")
    else:
        wanted = ["text", "image"] if options.channel == "both" else [options.channel]
    if "text" in wanted and not texts:
        raise UsageError("the encoder reads no texts", where=options.encoder, expected="--channel image",
                         hint="Encoders of both are CLIP and SigLIP; see docs/encoders.md.")  # fmt: skip
    named = {"templates": files.templates, "aliases": files.aliases, "candidates": files.candidates}
    given = [name for name, path in named.items() if path is not None]
    given += ["countries-in-texts"] if options.countries_in_texts else []
    if given and "text" not in wanted:
        raise UsageError(
            f"--{given[0]} is of names, and this index goes by pictures only", expected="--channel text or both",
            found=f"channel image, with {options.encoder}",
        )  # fmt: skip
    if files.references and "image" not in wanted:
        raise UsageError("references are pictures, and this index goes by names only",
                         expected="--channel image or both", found="channel text")  # fmt: skip
    if "image" in wanted and not pictures:
        raise UsageError("the encoder reads no pictures", where=options.encoder, expected="--channel text")
    if "image" in wanted and files.references is None:
        raise no_references(options.encoder, "The image channel is made of them.")
    return wanted


def no_references(encoder: str, why: str) -> UsageError:
    """Say that pictures of the artifacts are needed."""
    return UsageError(
        "the index needs pictures that show the artifacts",
        where=encoder,
        expected="--references IMAGES.parquet",
        hint=f"{why} The simulated backend draws them: culturekit generate --backend simulated.",
    )


def add_references(
    work: Work, files: IndexFiles, options: IndexOptions, artifacts: pl.DataFrame, found: Gathered
) -> None:
    """Add the image channel: a vector for each reference picture of a known artifact."""
    if files.references is None:
        raise no_references(options.encoder, "The image channel is made of them.")
    known = known_references(files.references, files.prompts, artifacts)
    for image_id, reason, detail in known.left_out:
        found.drop(image_id, reason, detail, stage=REFERENCES_STAGE)
    root = files.references.parent
    count = found.add_pictures(work, known.rows, root, options.encoder, stage=REFERENCES_STAGE)
    if not count:
        raise UsageError("no reference picture of a known artifact can be read", where=str(files.references))
    found.counts["references"] = count


def list_without_reference(artifacts: pl.DataFrame, found: Gathered, *, else_known: str | None) -> None:
    """List the artifacts that no picture shows; without a text channel they are in no channel at all."""
    for artifact in artifacts.join(found.rows[0], on="artifact_id", how="anti")["artifact_id"]:
        found.drop(artifact, NO_REFERENCE, else_known, stage=ARTIFACTS_STAGE)


def add_texts(work: Work, files: IndexFiles, options: IndexOptions, artifacts: pl.DataFrame, found: Gathered) -> None:
    """Add the text channel: a vector for each artifact."""
    names, strangers = artifact_names(files.cspace, aliases=files.aliases, candidates=files.candidates)
    templates = text_templates(files.templates)
    places = country_names(files.cspace) if options.countries_in_texts else {}
    answer = text_vectors(work, artifacts, names, templates, options.encoder, countries=places)
    found.add("text", answer.rows, answer.vectors)
    found.notes |= {**answer.notes, "templates": templates.model_dump(mode="json")}
    found.counts["names"] = sum(len(own) for own in names.values())
    if strangers:
        found.notes["aliases_of_no_artifact"] = strangers


def together(path: Path, vectors: Sequence[Vectors]) -> Vectors:
    """Put the vectors of all channels one after the other, on disk."""
    shape = (sum(len(one) for one in vectors), vectors[0].shape[1])
    save_rows(path, vectors, shape=shape, dtype=np.float32)
    whole: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    return whole
