"""The stages that look at the instrument: shuffled images as a floor, and a diagnosis of an index."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.families.family import kept
from culturekit.families.handles.inputs import Numbered, roles_of
from culturekit.index.diagnosis.diagnosis import DiagnosisOptions, diagnose
from culturekit.index.diagnosis.shuffled_pictures import ShuffleOptions, shuffle_pictures
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand

__all__ = ["DIAGNOSE", "SHUFFLE", "DiagnosisReads", "ShuffleReads", "diagnosis_stage", "shuffle_stage"]


@dataclass(frozen=True, slots=True)
class ShuffleReads:
    """What is shuffled."""

    images: Annotated[Path, Field(description="Images table.")]


def shuffle_stage(given: ShuffleReads, options: ShuffleOptions, *, name: str = "shuffled") -> Stage:
    """Cut images into tiles and shuffle them: what such pictures score is the floor of a score."""
    return Stage(
        name,
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


def diagnosis_stage(given: DiagnosisReads, options: DiagnosisOptions, *, name: str = "diagnosis") -> Stage:
    """Hold references out: precision and recall by country, the ceiling of a score, and the hubs of a mapping."""
    return Stage(
        name,
        "diagnose",
        1,
        lambda work: diagnose(work, given.index, given.matches.places, options),
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
