"""The stages that say how unlike the images of a batch look: pictures measured in pairs, then scores."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.errors import UsageError
from culturekit.index.spread.pair_measures import PAIR_MEASURES
from culturekit.index.spread.picture_spread import measure_spread
from culturekit.metrics.scoring.score_spread import SpreadInput, SpreadOptions, score_spread
from culturekit.metrics.scoring.scored import Scored
from culturekit.pipeline.family_stage import family_stage
from culturekit.pipeline.scores.vector_files import gathered, one_identity_of_all, tables_of_images, vector_inputs
from culturekit.pipeline.stage import Stage
from culturekit.pipeline.weights_behind import check_weights, weights_behind
from culturekit.records.schemas import PAIR_DISTANCES
from culturekit.registry import parse_spec
from culturekit.storage.digests import digest_file
from culturekit.storage.manifest import read_manifest
from culturekit.storage.tables import read_table

__all__ = ["SpreadFiles", "pair_stage", "spread_stage"]


def pair_stage(images: Path, measure: str, *, size: int = 8, name: str = "pairs") -> Stage:
    """Measure how far the pictures of each batch are apart; weights are part of what the result depends on."""
    PAIR_MEASURES.check(measure)
    backbone = parse_spec(measure).options.get("backbone", "")
    beside = {"backbone": digest_file(Path(backbone))} if backbone and Path(backbone).is_file() else {}
    return Stage(
        name,
        "pair-distances",
        1,
        lambda work: measure_spread(work, images, measure, size=size),
        {"images": images},
        {"measure": measure, "size": size, **weights_behind(measure), **beside},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_weights, measure),
    )


@dataclass(frozen=True, slots=True)
class SpreadFiles:
    """The files that the spread of images is scored from, each by its role.

    Attributes:
        images: tables of images.
        vectors: folders of vectors of these images.
        distances: folders of the stage that measures pairs.
        prompts: prompts of the images, for what their tables do not say; may be none.
    """

    images: Mapping[str, Path]
    vectors: Mapping[str, Path]
    distances: Mapping[str, Path]
    prompts: Path | None = None

    def __post_init__(self) -> None:
        """Refuse files of which nothing can be scored."""
        if not self.vectors and not self.distances:
            raise UsageError(
                "nothing says how unlike the images are", expected="a folder of vectors, or one of distances of pairs"
            )

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        tables = {role: folder / f"{PAIR_DISTANCES.name}.parquet" for role, folder in self.distances.items()}
        prompts = {} if self.prompts is None else {"prompts": self.prompts}
        return {**self.images, **vector_inputs(self.vectors), **tables, **prompts}


def spread_stage(files: SpreadFiles, options: SpreadOptions, *, name: str = "scores") -> Stage:
    """Score how unlike images look; what made vectors and distances is read from their manifests when it is due."""

    def score(scratch: Path) -> Scored:
        tables = [read_table(folder / f"{PAIR_DISTANCES.name}.parquet", PAIR_DISTANCES)
                  for folder in files.distances.values()]  # fmt: skip
        given = SpreadInput(
            images=tables_of_images(list(files.images.values()), files.prompts, scratch),
            vectors=gathered(list(files.vectors.values()), scratch / "vectors.npy") if files.vectors else None,
            distances=pl.concat(tables) if tables else None,
        )
        known = replace(
            options,
            encoder=one_identity_of_all(list(files.vectors.values())) if files.vectors else {},
            measures=measures_behind(files.distances),
        )
        return score_spread(given, options=known)

    return family_stage("spread", files.inputs, asdict(options), lambda work: score(work.scratch), name=name)


def measures_behind(folders: Mapping[str, Path]) -> dict[str, Any]:
    """Say what made distances: everything that the manifests say of the measure; one name is one measure."""
    found: dict[str, Any] = {}
    for folder in folders.values():
        manifest = read_manifest(folder)
        notes = {} if manifest is None else manifest.notes
        own = dict(notes.get("parameters", {}))
        if not own:
            continue
        own["licence"] = str(notes.get("licence", ""))
        known = found.setdefault(str(own["name"]), own)
        if known != own:
            differ = [key for key in {**known, **own} if known.get(key) != own.get(key)]
            raise UsageError(
                "the distances were measured in different ways", where=", ".join(map(str, folders.values())),
                expected=", ".join(f"{key} {known.get(key)}" for key in differ),
                found=", ".join(f"{key} {own.get(key)}" for key in differ), hint="Measure all with one.",
            )  # fmt: skip
    return found
