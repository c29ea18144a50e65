"""The stages of the instrument: images mapped to artifacts, shuffled ones as a floor, and a diagnosis of an index."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.families.family import check_options, kept
from culturekit.families.handles.inputs import Numbered, roles_of
from culturekit.families.handles.public_files import prompts_table
from culturekit.index.diagnosis.diagnosis import DiagnosisOptions, diagnose
from culturekit.index.diagnosis.shuffled_pictures import ShuffleOptions, shuffle_pictures
from culturekit.index.matching.mapping import MappingInputs, MappingOptions, map_images
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import StageCommand

__all__ = [
    "DIAGNOSE",
    "MAP",
    "SHUFFLE",
    "DiagnosisReads",
    "ShuffleReads",
    "diagnosis_stage",
    "map_stage",
    "shuffle_stage",
]


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


def map_stage(given: MappingInputs, options: MappingOptions, *, name: str = "matches") -> Stage:
    """Map every image to its nearest artifacts, with margins."""
    check_options(options)
    check_options(given.adjustment)

    def run(work: Work) -> Outcome:
        prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
        return map_images(work, replace(given, prompts=prompts), options)

    adjustment = {} if given.adjustment.name is None else {"adjustment": asdict(given.adjustment)}
    return Stage(
        name,
        "map",
        2,
        run,
        roles_of(given),
        {**kept(options), **adjustment},
        packages=("numpy", "pillow", "polars"),
    )


MAP = StageCommand(map_stage, "--index index --images images/images.parquet --out matches", workers=True, engine=True)
