"""The stages that look at the instrument: shuffled images as a floor, and a diagnosis of an index."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from culturekit.index.diagnosis.diagnosis import DiagnosisOptions, diagnose
from culturekit.index.diagnosis.shuffled_pictures import ShuffleOptions, shuffle_pictures
from culturekit.index.matching.mapping_options import MappingOptions
from culturekit.stages.stage import Stage

__all__ = ["diagnosis_stage", "shuffle_stage"]


def shuffle_stage(images: Path, options: ShuffleOptions, *, seed: int, name: str = "shuffled") -> Stage:
    """Shuffle the tiles of images: what they score then is the floor of a score."""
    return Stage(
        name,
        "shuffle",
        1,
        lambda work: shuffle_pictures(work, images, options, seed=seed),
        {"images": images},
        asdict(options),
        {"shuffle": seed},
        packages=("numpy", "pillow", "polars"),
    )


def diagnosis_stage(
    index: Path,
    matches: Mapping[str, Path],
    mapping: MappingOptions,
    options: DiagnosisOptions,
    *,
    seed: int,
    name: str = "diagnosis",
) -> Stage:
    """Diagnose an index, and the hubs among what was mapped with it."""
    return Stage(
        name,
        "diagnose",
        1,
        lambda work: diagnose(work, index, list(matches.values()), mapping, options, seed=seed),
        {"index": index, **matches},
        {**asdict(options), "mapping": asdict(mapping)},
        {"ceiling": seed},
        packages=("numpy", "polars"),
    )
