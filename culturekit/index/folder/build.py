"""A cultural space to an index: pictures that show its artifacts, texts that name them, or both."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.atomic import decoding
from culturekit.core.choices import ChannelName, ChannelsName
from culturekit.core.declared import StageCommand, Typed
from culturekit.core.errors import UsageError
from culturekit.core.inputs import roles_of
from culturekit.core.package_data import shipped
from culturekit.core.registry import check_ready, spec_state
from culturekit.core.schemas import ARTIFACTS, DROPS, TOMBSTONES, VECTOR_IDS
from culturekit.core.spreadsheet_cells import read_csv_texts
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import prompts_table, read_table, space_table, write_drops, write_table
from culturekit.index.embedding.embedding import embed, save_blocks
from culturekit.index.encoder import ENCODERS, ImageEncoder, TextEncoder, Vectors
from culturekit.index.folder.artifact_names import (
    AliasesOfCandidates,
    PromptsOfReferences,
    TextTemplates,
    artifact_names,
    artifacts_of,
    country_names,
    known_references,
    text_templates,
    text_vectors,
)
from culturekit.index.folder.index_folder import (
    UNIT_WITHIN,
    OpenIndex,
    check_identity,
    ids_name,
    names_countries,
    open_index,
    part_names,
    read_graves,
    save_part_of_index,
    stated_encoder,
    take_over,
    write_index,
)

_NO_REFERENCE = "artifact without a reference"
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
        Typed(offers="culturekit.index.encoder:ENCODERS"),
    ]
    channel: Annotated[
        ChannelsName | None,
        Field(description="How artifacts are known. [all that encoder and references allow]"),
        Typed(after="prompts"),
    ] = None
    countries_in_texts: Annotated[
        bool, Field(description="Use the wordings that name an artifact's countries, too."), Typed("countries-in-texts")
    ] = False


@dataclass(slots=True)
class _Gathered:
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
            length = float(np.linalg.norm(answer.vectors[0]))
            if abs(length - 1) > UNIT_WITHIN:
                raise UsageError(
                    "an index is made of vectors of length one", where=encoder, found=f"one of length {length:.4g}",
                    hint="Leave give= away; features as they are go to `culturekit index embed`.",
                )  # fmt: skip
            self.add("image", answer.kept.select("artifact_id", source="image_id"), answer.vectors)
        return answer.kept.height


def build_index(work: Work, files: IndexFiles, options: IndexOptions) -> Outcome:
    """Write an index over a cultural space, and list what has no place in it."""
    channels = channels_for(files, options)
    artifacts = artifacts_of(files.cspace)
    found = _Gathered()
    if "image" in channels:
        _add_references(work, files, options, artifacts, found)
        else_known = "by its names only" if "text" in channels else None
        for artifact in artifacts.join(found.rows[0], on="artifact_id", how="anti")["artifact_id"]:
            found.drop(artifact, _NO_REFERENCE, else_known, stage=ARTIFACTS_STAGE)
    if "text" in channels:
        _add_texts(work, files, options, artifacts, found)
    indexed = pl.concat(found.rows)
    path = work.scratch / "all-vectors.npy"
    save_blocks(path, found.vectors)
    whole: Vectors = np.load(path, mmap_mode="r", allow_pickle=False)
    write_index(work.out, indexed, whole, artifacts)
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
            raise _no_references(
                options.encoder, "The encoder reads no texts, so artifacts are known by pictures only."
            )
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
        raise _no_references(options.encoder, "The image channel is made of them.")
    return wanted


def _no_references(encoder: str, why: str) -> UsageError:
    """Say that pictures of the artifacts are needed."""
    return UsageError(
        "the index needs pictures that show the artifacts",
        where=encoder,
        expected="--references IMAGES.parquet",
        hint=f"{why} The simulated backend draws them: culturekit generate --backend simulated.",
    )


def _add_references(
    work: Work, files: IndexFiles, options: IndexOptions, artifacts: pl.DataFrame, found: _Gathered
) -> None:
    """Add the image channel: a vector for each reference picture of a known artifact."""
    assert files.references is not None, "channels_for made sure of them"
    known, others = known_references(files.references, files.prompts, artifacts)
    for image_id, reason, detail in others:
        found.drop(image_id, reason, detail, stage=REFERENCES_STAGE)
    root = files.references.parent
    count = found.add_pictures(work, known, root, options.encoder, stage=REFERENCES_STAGE)
    if not count:
        raise UsageError("no reference picture of a known artifact can be read", where=str(files.references))
    found.counts["references"] = count


def _add_texts(work: Work, files: IndexFiles, options: IndexOptions, artifacts: pl.DataFrame, found: _Gathered) -> None:
    """Add the text channel: a vector for each artifact."""
    names, strangers = artifact_names(files.cspace, aliases=files.aliases, candidates=files.candidates)
    templates = text_templates(files.templates)
    places = country_names(files.cspace) if options.countries_in_texts else {}
    rows, vectors, notes = text_vectors(work, artifacts, names, templates, options.encoder, countries=places)
    found.add("text", rows, vectors)
    found.notes |= {**notes, "templates": templates.model_dump(mode="json")}
    found.counts["names"] = sum(len(some) for some in names.values())
    if strangers:
        found.notes["aliases_of_no_artifact"] = strangers


# More pictures and artifacts into an index: only what is new is embedded, and the old vectors stay as they are.

_REMOVED = "reference of a removed artifact"
_STAGE = "index append"


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


@dataclass(slots=True)
class _Appended(_Gathered):
    """What is new so far, how many references are not, and which artifacts were removed."""

    known: int = 0
    removed: frozenset[str] = frozenset()


def append_index(work: Work, folder: Path, files: AppendFiles, encoder: str | None) -> Outcome:
    """Write an index that holds another, and what is new, as a part of its own; the encoder is the index's own."""
    index = open_index(folder)
    spec = encoder or index.encoder
    check_identity(index, ENCODERS.kept(spec))
    artifacts = _with_new(index, files.cspace)
    found = _Appended(removed=frozenset(index.notes.get("removed", [])))
    if files.references is not None:
        _append_pictures(work, index, files.references, files.prompts, artifacts, found, encoder=spec)
    new = artifacts.join(index.artifacts, on="artifact_id", how="anti")
    if "text" in index.notes["channels"] and files.cspace is not None and new.height:
        names, _ = artifact_names(files.cspace, aliases=files.aliases, candidates=files.candidates)
        places = country_names(files.cspace) if names_countries(index.folder) else {}
        templates = TextTemplates.model_validate(index.notes["templates"])
        found.add("text", *text_vectors(work, new, names, templates, spec, countries=places)[:2])
    if not found.rows:
        raise UsageError("nothing is new", where=str(folder), found=f"{found.known} references that it has already")
    take_over(index.folder, work.out)
    shards: list[str] = list(index.notes.get("shards", []))
    rows = pl.concat(found.rows)
    shards.append(save_part_of_index(work.out, len(shards) + 1, rows, np.concatenate(found.vectors), artifacts))
    write_table(work.out, ARTIFACTS, artifacts)
    graves = read_graves(index.folder)
    if graves.height:
        write_table(work.out, TOMBSTONES, graves)
    indexed = pl.concat([_indexed_rows(index).select("artifact_id"), rows.select("artifact_id")])["artifact_id"]
    drops = _drops_of(index, artifacts, indexed, found)
    counts = {
        "ids": indexed.len(), "artifacts": artifacts.height - len(found.removed), "indexed": indexed.n_unique(),
        "drops": drops.height, "appended": rows.height, "known": found.known,
    }  # fmt: skip
    return Outcome(counts, write_drops(work.out, drops), {**index.notes, "encoder": spec, "shards": shards})


def _with_new(index: OpenIndex, cspace: Path | None) -> pl.DataFrame:
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
                "an artifact has changed since the index was built", where=f"{cspace}: {mine['artifact_id']}",
                expected=f"{name} {mine[name]!r}", found=repr(theirs[name]),
                hint="Build the index again: the artifact's vectors stand elsewhere now.",
            )  # fmt: skip
    return pl.concat([index.artifacts, given.join(known, on="artifact_id", how="anti")]).sort("artifact_id")


def _indexed_rows(index: OpenIndex) -> pl.DataFrame:
    """List channel, artifact_id and source of every vector that counts, in order."""
    names = index.artifacts["artifact_id"]
    parts = [
        pl.DataFrame({"artifact_id": names.gather(channel.owners), "source": channel.sources}).select(
            pl.lit(name).alias("channel"), "artifact_id", "source"
        )
        for name, channel in index.channels.items()
    ]
    return pl.concat(parts)


def _append_pictures(
    work: Work,
    index: OpenIndex,
    references_path: Path,
    prompts_path: Path | None,
    artifacts: pl.DataFrame,
    found: _Appended,
    *,
    encoder: str,
) -> None:
    """Embed the references that the index has not; one is known by its artifact and its image_id."""
    if "image" not in index.notes["channels"]:
        raise UsageError("the index has no channel of pictures", where=str(index.folder), found="names only")
    alive = artifacts.filter(~pl.col("artifact_id").is_in(found.removed))
    references, others = known_references(references_path, prompts_path, alive)
    for image_id, reason, detail in others:
        found.drop(image_id, _REMOVED if detail in found.removed else reason, detail, stage=_STAGE)
    old = _indexed_rows(index).filter(pl.col("channel") == "image").select("artifact_id", image_id="source")
    fresh = references.join(old, on=["artifact_id", "image_id"], how="anti", maintain_order="left")
    found.known = references.height - fresh.height
    if fresh.height:
        found.add_pictures(work, fresh, references_path.parent, encoder, stage=_STAGE)


def _drops_of(index: OpenIndex, artifacts: pl.DataFrame, indexed: pl.Series, found: _Appended) -> pl.DataFrame:
    """List what has no place, from before and from now; an artifact that has a reference now is no longer listed."""
    before = _drops_in(index).filter(
        ~((pl.col("reason") == _NO_REFERENCE) & pl.col("key").is_in(indexed.unique().to_list()))
    )
    new = pl.DataFrame(found.drops, schema=DROPS.schema)
    before = before.join(new, on=["key", "stage"], how="anti", maintain_order="left")
    listed = set(index.artifacts["artifact_id"]) | set(indexed)
    unknown = artifacts.filter(~pl.col("artifact_id").is_in(listed)).select(
        key="artifact_id", concept=None, stage=pl.lit("index"), reason=pl.lit(_NO_REFERENCE), detail=None
    )
    return pl.concat([before, new, unknown.select(pl.col(name).cast(kind) for name, kind in DROPS.schema.items())])


def _drops_in(index: OpenIndex) -> pl.DataFrame:
    """Read what has no place in an index."""
    path = index.folder / "drops.parquet"
    return read_table(path, DROPS) if path.exists() else pl.DataFrame(schema=DROPS.schema)


# Artifacts out of an index, and an index of many parts made one again.

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Removed:
    """What is removed: the artifacts of a file, and those that are named."""

    artifacts: Annotated[
        Path | None, Field(description="File of artifacts to remove: a table with artifact_id, or one id a line.")
    ] = None
    artifact: Annotated[tuple[str, ...], Field(description="Artifact to remove; may be given several times.")] = ()

    @property
    def ids(self) -> list[str]:
        """The ids of all, each once."""
        return sorted({*self.artifact, *(listed_artifacts(self.artifacts) if self.artifacts else ())})


def listed_artifacts(path: Path) -> list[str]:
    """Read the ids of artifacts: the column artifact_id of a Parquet or CSV table, or a text file with one a line."""
    tables = path.suffix in {".parquet", ".csv"}
    with decoding(path, "the artifacts cannot be read", expected="a column artifact_id" if tables else ""):
        if tables:
            table = pl.read_parquet(path) if path.suffix == ".parquet" else read_csv_texts(path)
            return sorted(set(table["artifact_id"].cast(pl.String).drop_nulls()))
        lines = path.read_text(encoding="utf-8").splitlines()
    return sorted({line.strip() for line in lines} - {""})


def remove_artifacts(work: Work, folder: Path, artifact_ids: Iterable[str]) -> Outcome:
    """Write an index that holds another, but for some artifacts; their vectors stay on disk and count no more."""
    index = open_index(folder)
    going = sorted(set(artifact_ids))
    before = set(index.notes.get("removed", []))
    _check_known(index, going, before)
    removed = sorted(before | set(going))
    take_over(folder, work.out)
    write_table(work.out, TOMBSTONES, _graves_of(index, removed))
    write_table(work.out, ARTIFACTS, index.artifacts)
    _take_over_drops(index, work.out, removed)
    left = _indexed_rows(index).filter(~pl.col("artifact_id").is_in(removed))
    if left.is_empty():
        raise UsageError("nothing would be left in the index", where=str(folder), found=f"{len(going)} artifacts to go")
    counts = {
        "ids": left.height, "artifacts": index.artifacts.height - len(removed),
        "indexed": left["artifact_id"].n_unique(), "removed": len(removed),
    }  # fmt: skip
    return Outcome(counts, {}, {**index.notes, "removed": removed})


def _check_known(index: OpenIndex, going: list[str], before: set[str]) -> None:
    """Make sure that artifacts can be removed: some are named, and all are there."""
    unknown = sorted(set(going) - (set(index.artifacts["artifact_id"]) - before))
    if not going:
        raise UsageError("no artifact to remove is named", expected="--artifact ID or --artifacts FILE")
    if unknown:
        more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
        raise UsageError(
            "artifacts to remove are not in the index", where=str(index.folder),
            expected="ids of artifacts.parquet that were not removed before", found=", ".join(unknown[:_SHOWN]) + more,
        )  # fmt: skip


def _graves_of(index: OpenIndex, removed: list[str]) -> pl.DataFrame:
    """Give TOMBSTONES of every row that belongs to artifacts that are gone, in all parts."""
    graves = [read_graves(index.folder)]
    for number, name in enumerate(part_names(index.notes)):
        ids = read_table(index.folder / ids_name(name), VECTOR_IDS)
        buried = ids.filter(pl.col("id").is_in(removed)).select(pl.lit(number, pl.UInt32).alias("part"), "row")
        graves.append(buried)
    return pl.concat(graves).unique().sort("part", "row")


def _take_over_drops(index: OpenIndex, out: Path, removed: list[str]) -> None:
    """Take over what has no place in an index, but for what is said of artifacts that are gone."""
    if (index.folder / "drops.parquet").exists():
        write_drops(out, _drops_in(index).filter(~pl.col("key").is_in(removed)))


def compact_index(work: Work, folder: Path) -> Outcome:
    """Write an index of one part, rows in order: what building it at once would have given."""
    index = open_index(folder)
    removed = index.notes.get("removed", [])
    rows = _indexed_rows(index)
    artifacts = index.artifacts.filter(~pl.col("artifact_id").is_in(removed))
    channels = [channel.vectors for channel in index.channels.values()]
    vectors = channels[0] if len(channels) == 1 else np.concatenate(channels)
    write_index(work.out, rows, vectors, artifacts)
    _take_over_drops(index, work.out, removed)
    notes = {name: note for name, note in index.notes.items() if name not in {"shards", "removed"}}
    counts = {"ids": rows.height, "artifacts": artifacts.height, "indexed": rows["artifact_id"].n_unique()}
    return Outcome(counts, {}, notes)


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
