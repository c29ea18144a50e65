"""A finished run as the report reads it: which models, which tables, which manifests."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.records.schemas import (
    CSPACE,
    DISTRIBUTIONS,
    HUBS,
    IMAGES,
    MATCHES,
    PROMPTS,
    RECOGNITION,
    SCORES,
    VALUES,
)
from culturekit.records.tables import Table
from culturekit.report.stage_names import COMPARISON, CULTURE_FREE, DIAGNOSIS, SHOWN
from culturekit.storage.manifest import Manifest
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import manifest_of

__all__ = ["RunFolders", "with_comparison"]


@dataclass(frozen=True, slots=True)
class RunFolders:
    """The folders of a run: `stages` are their names, each after what it reads."""

    root: Path
    models: tuple[str, ...]
    stages: tuple[str, ...]

    @property
    def truthful(self) -> tuple[str, ...]:
        """The models of which it is known what their images really show."""
        return tuple(model for model in self.models if f"truth-{model}" in self.stages)

    def scores(self) -> pl.DataFrame:
        """Read the scores, with the number of each row and the parameters as columns."""
        params = pl.Struct({"kernel": pl.String, "labels": pl.String, "scorer": pl.String})
        scores = read_table(self.root / "scores/scores.parquet", SCORES).with_row_index("row")
        return scores.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")

    def values(self) -> pl.DataFrame:
        """Read what scores are means of, with the parameters as columns."""
        params = pl.Struct({"kernel": pl.String, "labels": pl.String})
        values = read_table(self.root / "scores/values.parquet", VALUES)
        return values.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")

    def prompts(self) -> dict[str, str]:
        """Read the text of each prompt."""
        return dict(read_table(self.root / "prompts/prompts.parquet", PROMPTS).select("prompt_id", "text").iter_rows())

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

    def table(self, stage: str, table: Table) -> pl.DataFrame | None:
        """Read a table of a stage; None for a run without that stage."""
        return read_table(self.root / f"{stage}/{table.name}.parquet", table) if stage in self.stages else None

    def recognition(self) -> pl.DataFrame | None:
        """Read how well held-out references are recognised, where that was tried."""
        return self.table(DIAGNOSIS, RECOGNITION)

    def hubs(self) -> pl.DataFrame | None:
        """Read which artifacts many images are near to."""
        return self.table(DIAGNOSIS, HUBS)

    def stability(self) -> pl.DataFrame | None:
        """Read how far encoders agree on the order of the models, where there are several."""
        return self.table("stability", SCORES)

    def distributions(self) -> pl.DataFrame | None:
        """Read how often each country was shown, where that was counted."""
        return self.table(SHOWN, DISTRIBUTIONS)

    def comparison(self) -> pl.DataFrame | None:
        """Read the differences of models, with what was compared as columns; None where there is one model."""
        found = self.table(COMPARISON, SCORES)
        return None if found is None else with_comparison(found)

    def floor(self) -> Mapping[str, float] | None:
        """Say how near pictures of nothing are to what they are mapped to, where that was tried."""
        return self.manifest(f"matches-{CULTURE_FREE}").notes["similarity"] if DIAGNOSIS in self.stages else None

    def references(self) -> pl.DataFrame | None:
        """Read the reference pictures; None where artifacts are known by their names."""
        return self.table("references", IMAGES)

    def reference_prompts(self) -> pl.DataFrame | None:
        """Read which artifact each prompt of the references names, where they have prompts of their own."""
        return self.table("reference-prompts", PROMPTS)

    def space(self) -> pl.DataFrame:
        """Read the cultural space."""
        return read_table(self.root / "cspace/cspace.parquet", CSPACE)

    def manifest(self, stage: str) -> Manifest:
        """Read the manifest of a stage."""
        return manifest_of(self.root / stage)


def with_comparison(scores: pl.DataFrame) -> pl.DataFrame:
    """Put what was compared beside each difference of models, as columns."""
    of = pl.Struct({"kernel": pl.String, "labels": pl.String})
    params = pl.Struct(
        [
            pl.Field("of", of),
            *(pl.Field(name, pl.String) for name in ("a", "b", "metric")),
            *(pl.Field(name, pl.Int64) for name in ("common", "left_out")),
            pl.Field("p_corrected", pl.Float64),
            pl.Field("differ_in", pl.List(pl.String)),
        ]
    )
    numbered = scores.with_row_index("row").drop("metric")
    found = numbered.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    return found.rename({"metric": "of_metric"}).with_columns(
        of_kernel=pl.col("of").struct.field("kernel"), of_labels=pl.col("of").struct.field("labels")
    )
