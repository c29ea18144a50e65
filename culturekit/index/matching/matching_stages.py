"""The stages that map images to the artifacts of an index, and say how far the mapping can be right."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.declared import check_options, kept
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered, roles_of
from culturekit.core.layouts import prompts_table, space_table
from culturekit.core.schemas import CSPACE, IMAGES, MATCHES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import StageCommand
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.index.matching.comparison import MappingInputs, MappingOptions
from culturekit.index.matching.diagnosis import DiagnosisOptions, ShuffleOptions, diagnose, shuffle_pictures
from culturekit.index.matching.mapped_alike import check_mapped_through
from culturekit.index.matching.mapping import map_images

# The stages of the instrument: what images truly show, what they are mapped to, floors, and a diagnosis.


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
