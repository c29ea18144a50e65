"""A finished run as the report reads it: which models, which tables, which manifests."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.records.schemas import CSPACE, IMAGES, MATCHES, SCORES
from culturekit.storage.manifest import Manifest
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import manifest_of

__all__ = ["RunFolders"]


@dataclass(frozen=True, slots=True)
class RunFolders:
    """The folders of a run."""

    root: Path
    models: tuple[str, ...]
    truthful: frozenset[str]
    audited: bool = False

    def scores(self) -> pl.DataFrame:
        """Read the scores, with the number of each row and the parameters as columns."""
        params = pl.Struct({"kernel": pl.String, "labels": pl.String, "scorer": pl.String})
        scores = read_table(self.root / "scores/scores.parquet", SCORES).with_row_index("row")
        return scores.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")

    def images(self, model: str) -> pl.DataFrame:
        """Read the images of a model."""
        return read_table(self.root / f"images-{model}/images.parquet", IMAGES)

    def matches(self, model: str) -> pl.DataFrame:
        """Read the matches of a model."""
        return read_table(self.root / f"matches-{model}/matches.parquet", MATCHES)

    def truth(self, model: str) -> pl.DataFrame | None:
        """Read what the images of a model really show, where that is known."""
        if model not in self.truthful:
            return None
        return read_table(self.root / f"truth-{model}/matches.parquet", MATCHES)

    def references(self) -> pl.DataFrame:
        """Read the reference pictures."""
        return read_table(self.root / "references/images.parquet", IMAGES)

    def space(self) -> pl.DataFrame:
        """Read the cultural space."""
        return read_table(self.root / "cspace/cspace.parquet", CSPACE)

    def stage_names(self) -> list[str]:
        """List the folders of the run's stages, each after what it reads."""
        per_model = ["images", "matches", "quality", "truth", *(["audit"] if self.audited else [])]
        names = ["graph", "candidates", "filter", "cspace", "prompts", "references", "index"]
        for model in self.models:
            names += [f"{kind}-{model}" for kind in per_model if kind != "truth" or model in self.truthful]
        return [*names, "scores"]

    def manifest(self, stage: str) -> Manifest:
        """Read the manifest of a stage."""
        return manifest_of(self.root / stage)
