"""A finished run as the report reads it: which models, which tables, which manifests."""

import math
from collections.abc import Mapping

import polars as pl

from culturekit.records.schemas import CSPACE, IMAGES, MATCHES, PROMPTS, SCORES, VALUES
from culturekit.records.tables import Table
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.stages.run import Run
from culturekit.storage.manifest import Manifest
from culturekit.storage.tables import read_table
from culturekit.trail.upstream import manifest_of

__all__ = ["HEADLINE_KERNEL", "RunFolders", "with_comparison"]

HEADLINE_KERNEL = "country"

ABOUT = pl.Struct({"kernel": pl.String, "labels": pl.String, "scorer": pl.String, "weights": pl.List(pl.Float64)})
"""What the page reads of the parameters of a score."""


class RunFolders(Run):
    """The folders of a finished run, read: `stages` are their names, each after what it reads."""

    __slots__ = ()

    @property
    def truthful(self) -> tuple[str, ...]:
        """The models of which it is known what their images really show."""
        return self.models_with(roles.TRUTH)

    def manifest(self, role: Role, model: str = "", variant: str = "") -> Manifest:
        """Read the manifest of a stage."""
        return manifest_of(self.folder(role, model, variant))

    def found(self, role: Role, model: str = "", variant: str = "") -> Manifest | None:
        """Read the manifest of a stage; None for a run without it."""
        return self.manifest(role, model, variant) if self.has(role, model, variant) else None

    def read(self, role: Role, table: Table, model: str = "", variant: str = "") -> pl.DataFrame | None:
        """Read a table of a stage; None for a run without that stage."""
        return self.needed(role, table, model, variant) if self.has(role, model, variant) else None

    def needed(self, role: Role, table: Table, model: str = "", variant: str = "") -> pl.DataFrame:
        """Read a table of a stage that every run has."""
        return read_table(self.table(role, model, variant, file=f"{table.name}.parquet"), table)

    def numbered(self, role: Role) -> pl.DataFrame | None:
        """Read the scores of a stage with the number of each row; None for a run without that stage."""
        found = self.read(role, SCORES)
        return None if found is None else found.with_row_index("row")

    @property
    def kernel(self) -> str:
        """Name the kernel of the headline: that of countries, or the first of a run that scores others."""
        kernels = self.scores()["kernel"].drop_nulls().to_list()
        return HEADLINE_KERNEL if HEADLINE_KERNEL in kernels or not kernels else str(kernels[0])

    @property
    def size(self) -> int:
        """Say how many images a batch of the scores has."""
        return int(self.manifest(roles.SCORES).options["size"])

    def confidence(self, role: Role = roles.SCORES) -> str:
        """Say how often intervals of the scores are to hold the truth, such as 95 %."""
        return f"{100 * float(self.manifest(role).options['confidence']):g} %"

    def scores(self) -> pl.DataFrame:
        """Read the scores, with the number of each row and the parameters as columns."""
        scores = self.of_main_order(self.needed(roles.SCORES, SCORES).with_row_index("row"))
        return with_named_kernel(scores.with_columns(p=pl.col("params").str.json_decode(ABOUT)).unnest("p"))

    def values(self) -> pl.DataFrame:
        """Read what scores are means of, with the parameters as columns."""
        values = self.of_main_order(self.needed(roles.SCORES, VALUES))
        return with_named_kernel(values.with_columns(p=pl.col("params").str.json_decode(ABOUT)).unnest("p"))

    def of_main_order(self, table: pl.DataFrame, role: Role = roles.SCORES, *, at: str = "$") -> pl.DataFrame:
        """Keep one order of each kernel: that which was corrected, or else the one that a stage calls its main."""
        main = self.manifest(role).options.get("q", 1.0)
        orders = self.corrected_orders() if role == roles.SCORES else {}
        told = pl.col("params").str
        order = told.json_path_match(f"{at}.q").cast(pl.Float64)
        kernel = told.json_path_match(f"{at}.weights")
        default = math.inf if main is None else float(main)
        wanted = kernel.replace_strict(orders, default=default, return_dtype=pl.Float64) if orders else default
        return table.filter(order.is_null() | (order == wanted))

    def corrected_orders(self) -> dict[str, float]:
        """Say of which order each kernel was corrected: those with artifacts have another than the main one."""
        params = self.needed(roles.SCORES, SCORES).select(
            pl.col("params").str.json_path_match(f"$.{name}").alias(name) for name in ("labels", "weights", "q")
        )
        corrected = params.filter(labels="corrected").unique().sort("weights")
        return {row["weights"]: float(row["q"]) for row in corrected.to_dicts()}

    def prompts(self) -> dict[str, str]:
        """Read the text of each prompt."""
        return dict(self.needed(roles.PROMPTS, PROMPTS).select("prompt_id", "text").iter_rows())

    def images(self, model: str) -> pl.DataFrame:
        """Read the images of a model."""
        return self.needed(roles.IMAGES, IMAGES, model)

    def matches(self, model: str) -> pl.DataFrame:
        """Read the matches of a model."""
        return self.needed(roles.MATCHES, MATCHES, model)

    def ranks(self, metric: str) -> pl.DataFrame | None:
        """Read the differences or the ranks of models by corrected diversity; None where there was no audit."""
        found = self.numbered(roles.RANKS)
        return None if found is None else with_comparison(found.filter(metric=metric))

    def comparison(self) -> pl.DataFrame | None:
        """Read the differences of models, with what was compared as columns; None where there is one model."""
        found = self.read(roles.COMPARISON, SCORES)
        return None if found is None else self.of_main_order(with_comparison(found), at="$.of")

    def floor(self) -> Mapping[str, float] | None:
        """Say how near pictures of nothing are to what they are mapped to, where that was tried."""
        if not self.has(roles.DIAGNOSIS):
            return None
        found: Mapping[str, float] = self.manifest(roles.MATCHES, roles.CULTURE_FREE).notes["similarity"]
        return found

    def space(self) -> pl.DataFrame:
        """Read the cultural space."""
        return self.needed(roles.CSPACE, CSPACE)


def with_named_kernel(scores: pl.DataFrame) -> pl.DataFrame:
    """Call a kernel that has no name by its weights."""
    weights = pl.col("weights").list.eval(pl.element().round(3).cast(pl.String)).list.join(", ")
    return scores.with_columns(pl.coalesce("kernel", pl.when(pl.col("weights").is_not_null()).then(weights))).drop(
        "weights"
    )


def with_comparison(scores: pl.DataFrame) -> pl.DataFrame:
    """Put what was compared beside each difference of models, as columns."""
    params = pl.Struct(
        [
            pl.Field("of", ABOUT),
            *(pl.Field(name, pl.String) for name in ("a", "b", "metric")),
            *(pl.Field(name, pl.Int64) for name in ("common", "left_out", "models")),
            pl.Field("p_corrected", pl.Float64),
            pl.Field("differ_in", pl.List(pl.String)),
        ]
    )
    numbered = (scores if "row" in scores.columns else scores.with_row_index("row")).drop("metric")
    found = numbered.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    told = pl.col("of").struct
    named = found.with_columns(kernel=told.field("kernel"), labels=told.field("labels"), weights=told.field("weights"))
    return with_named_kernel(named).rename({"metric": "of_metric", "kernel": "of_kernel", "labels": "of_labels"})
