"""The stages from pictures of artifacts to an index, and to folders of vectors."""

from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.config.recipe_parts import Audit
from culturekit.core.declared import check_options, kept
from culturekit.core.digests import read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered, roles_of
from culturekit.core.layouts import prompts_table, space_table
from culturekit.core.package_data import shipped
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, CSPACE, IMAGES, MATCHES
from culturekit.core.spec_state import check_ready, spec_state
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource, embed_table
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
from culturekit.index.matching.comparison import MappingInputs, MappingOptions
from culturekit.index.matching.diagnosis import DiagnosisOptions, ShuffleOptions, diagnose, shuffle_pictures
from culturekit.index.matching.mapped_alike import check_mapped_through
from culturekit.index.matching.mapping import map_images
from culturekit.index.raters.simulated_raters import simulated_audits
from culturekit.metrics.corrected.audit_sampling import audit_sample

# The stages that change an index: each reads a finished folder and writes another.

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
        {**source.options, "encoder": encoder, **spec_state(ENCODERS, encoder)},
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


# The stages of the instrument: what images truly show, what they are mapped to, floors, and a diagnosis.

CAVEAT = "The audit was made by simulated raters, who know what the simulated models drew."


def truth_stage(images: Path, cspace: Path) -> Stage:
    """Write down what simulated images really show."""
    inputs = {"images": images, "cspace": cspace}
    return Stage(
        "truth",
        "truth",
        1,
        lambda work: true_matches(work, images, space_table(cspace, work.scratch)),
        inputs,
        packages=("polars",),
    )


def simulated_audit_stage(matches: Path, truth: Path, cspace: Path, audit: Audit, *, seed: int) -> Stage:
    """Draw images, and have simulated raters label them."""

    def run(work: Work) -> Outcome:
        sample = audit_sample(read_table(matches, MATCHES), n=audit.images, rng=np.random.default_rng(seed))
        said = simulated_audits(
            read_table(truth, MATCHES),
            read_table(cspace, CSPACE),
            sample["image_id"].to_list(),
            audit.raters,
            seed=seed,
        )
        write_table(work.out, AUDIT_SAMPLE, sample)
        write_table(work.out, AUDITS, said)
        return Outcome({"audit_sample": sample.height, "audits": said.height}, notes={"caveat": CAVEAT})

    inputs = {"matches": matches, "truth": truth, "cspace": cspace}
    options = {"images": audit.images, **asdict(audit.raters)}
    return Stage("audit", "simulated-audit", 4, run, inputs, options, {"audit": seed})


def true_matches(work: Work, images_path: Path, cspace_path: Path) -> Outcome:
    """Write the truth as a mapping that never errs; a culture-free image has a row without an artifact."""
    images = read_table(images_path, IMAGES).filter(pl.col("status") == "ok")
    if "truth_artifact_id" not in images.columns:
        raise UsageError("these images do not come with the truth", where=str(images_path), expected="simulated images")
    work.progress.begin(images.height, "images")
    shown = read_table(cspace_path, CSPACE).unique(["artifact_id", "country"], maintain_order=True)
    everywhere = shown.group_by("artifact_id").agg(countries=pl.col("country").sort())
    rows = images.join(
        shown.select("artifact_id", "country", "continent", artifact="name"),
        left_on=["truth_artifact_id", "truth_country"],
        right_on=["artifact_id", "country"],
        how="left",
    ).join(everywhere, left_on="truth_artifact_id", right_on="artifact_id", how="left")
    matches = rows.select(
        "image_id", "model", "prompt_id", "concept", "repeat", "slot", "artifact", "continent",
        rank=pl.lit(1, pl.UInt16),
        artifact_id="truth_artifact_id",
        country="truth_country",
        countries=pl.col("countries").fill_null([]),
        score=pl.lit(1.0, pl.Float32),
        margin=pl.lit(1.0, pl.Float32),
        country_margin=pl.lit(1.0, pl.Float32),
        abstained=pl.col("truth_artifact_id").is_null(),
        method=pl.lit("truth"),
    ).select(list(MATCHES.columns))  # fmt: skip
    write_table(work.out, MATCHES, matches)
    work.progress.advance(images.height)
    return Outcome({"matches": matches.height, "culture_free": int(matches["abstained"].sum())})


@dataclass(frozen=True, slots=True)
class ShuffleReads:
    """What is shuffled."""

    images: Annotated[Path, Field(description="Images table.")]


def shuffle_stage(given: ShuffleReads, options: ShuffleOptions) -> Stage:
    """Cut images into tiles and shuffle them.

    What such pictures score is the floor of a score.
    """
    return Stage(
        "shuffled",
        "shuffle",
        1,
        lambda work: shuffle_pictures(work, given.images, options),
        roles_of(given),
        kept(options, but=("seed",)),
        {"shuffle": options.seed},
        packages=("numpy", "pillow", "polars"),
    )


@dataclass(frozen=True, slots=True)
class DiagnosisReads:
    """The instrument, and what was mapped with it."""

    index: Annotated[Path, Field(description="Folder that `index build` wrote.")]
    matches: Annotated[
        Numbered, Field(description="Table that `index map` wrote, whose hubs are listed; may be repeated.")
    ] = Numbered()


def diagnosis_stage(given: DiagnosisReads, options: DiagnosisOptions) -> Stage:
    """Hold references out, and say how far the encoder is right.

    Precision and recall by country, the ceiling of a score, and the hubs of a mapping.
    """

    def run(work: Work) -> Outcome:
        check_mapped_through(given.index, given.matches.places)
        return diagnose(work, given.index, given.matches.places, options)

    return Stage(
        "diagnosis",
        "diagnose",
        1,
        run,
        roles_of(given),
        kept(options, but=("seed",)),
        {"ceiling": options.seed},
        packages=("numpy", "polars"),
    )


SHUFFLE = StageCommand(shuffle_stage, "--images images/images.parquet --out shuffled", workers=True, engine=True)
DIAGNOSE = StageCommand(
    diagnosis_stage,
    "--index index --matches matches/matches.parquet --out diagnosis",
    workers=True,
    engine=True,
)


def map_stage(given: MappingInputs, options: MappingOptions) -> Stage:
    """Map every image to its nearest artifacts, with margins."""
    check_options(options)
    check_options(given.adjustment)
    if given.calibration is not None and options.max_error is None:
        raise UsageError("images to calibrate on serve a stated error", expected="--max-error beside --calibration")

    def run(work: Work) -> Outcome:
        prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
        return map_images(work, replace(given, prompts=prompts), options)

    adjustment = {} if given.adjustment.name is None else {"adjustment": asdict(given.adjustment)}
    return Stage(
        "matches",
        "map",
        2,
        run,
        roles_of(given),
        {**kept(options), **adjustment},
        packages=("numpy", "pillow", "polars"),
    )


MAP = StageCommand(map_stage, "--index index --images images/images.parquet --out matches", workers=True, engine=True)
