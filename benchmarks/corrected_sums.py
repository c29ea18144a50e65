"""What runs of corrected worlds came to: sums by world, kernel and model, to which other runs add, and their table."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from recording import RESULTS
from scipy.stats import binomtest, kendalltau
from simulated_worlds import WORLDS

from culturekit.metrics.diversity.labels import STANDARD_KERNELS
from culturekit.scores.qvs import WITH_AUDITS

__all__ = ["HEAD", "SUMS", "added", "recorded", "rows_of", "seeds_of", "sums_of"]

HEAD = (
    "world", "kernel", "seeds", "runs", "coverage (95 %)", "lowest of a model", "worst bias", "tau", "of labels alone",
    "width / labels alone", "widest of a model", "width / without mapping", "widest of one", "refused", "seconds each",
)  # fmt: skip

SUMS = RESULTS / "corrected_worlds.csv"
"""What all runs with `--add` came to, of this estimator, on whatever machines: runs of other seeds add to it."""

RUN, ROW = ["world", "kernel", "seed", "run"], ["estimator", "world", "kernel", "model"]
NUMBERS = ["held", "off", "tau", "tau_people", "width_labels", "labels", "width_unmapped", "unmapped", "seconds"]


def sums_of(answers: pl.DataFrame) -> pl.DataFrame:
    """Add up what answers say by world, kernel and model: each number, and how often it is known."""
    told = answers.fill_nan(None).with_columns(people=pl.coalesce("by_labels", "unmapped"))
    ranked = [
        (*run, tau_of(five["value"], five["truth"]), tau_of(five["people"], five["truth"]))
        for run, five in told.group_by(*RUN)
    ]
    taus = pl.DataFrame(ranked, [*RUN, "tau", "tau_people"], orient="row", infer_schema_length=None)
    truth, width = pl.col("truth"), pl.col("high") - pl.col("low")
    known = told.join(taus, on=RUN).with_columns(
        pl.lit(WITH_AUDITS).alias("estimator"),
        held=((pl.col("low") - 1e-9 <= truth) & (truth <= pl.col("high") + 1e-9)).cast(pl.Int64),
        off=pl.col("value") - truth,
        width_labels=pl.when(pl.col("alone").is_not_null()).then(width),
        labels=pl.when(width.is_not_null()).then("alone"),
        width_unmapped=pl.when(pl.col("unmapped_width").is_not_null()).then(width),
        unmapped=pl.when(width.is_not_null()).then("unmapped_width"),
    )
    seeds = pl.col("seed").unique().sort().cast(pl.String).str.join(" ").alias("seeds")
    sums = pl.col(NUMBERS).sum(), pl.col(NUMBERS).count().name.suffix("_known")
    return known.group_by(ROW).agg(seeds, pl.len().alias("runs"), *sums)


def tau_of(value: pl.Series, truth: pl.Series) -> float | None:
    """Give Kendall's tau of the models of a run that have values."""
    there = value.is_not_null()
    return float(kendalltau(value.filter(there), truth.filter(there)).statistic) if there.sum() > 1 else None


def together(sums: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Add sums up, by less than they were told apart."""
    seeds = pl.col("seeds").str.split(" ").explode().unique().cast(pl.Int64).sort().cast(pl.String).str.join(" ")
    return sums.group_by(*by, maintain_order=True).agg(seeds, pl.exclude("seeds", *ROW).sum())


def rows_of(sums: pl.DataFrame) -> list[list[str]]:
    """Write a line for each world and kernel, and after those of a kernel one for all of them."""
    worlds, kernels = (pl.Enum(list(each)) for each in ((*WORLDS, "all of these"), STANDARD_KERNELS))
    whole = together(sums, ["kernel", "model"]).with_columns(world=pl.lit("all of these"))
    both = pl.concat([sums, whole], how="diagonal").with_columns(
        pl.col("world").cast(worlds), pl.col("kernel").cast(kernels)
    )
    groups = both.sort("kernel", "world", "model").group_by("kernel", "world", maintain_order=True)
    return [row_of(str(world), str(kernel), models) for (kernel, world), models in groups]


def row_of(world: str, kernel: str, models: pl.DataFrame) -> list[str]:
    """Write one line of the table."""
    of = {column: models[column].to_numpy() for column in models.columns if column != "seeds"}
    seeds = together(models, ["world"])["seeds"][0].replace(" ", ", ")
    start, took = [world, kernel, seeds, str(of["runs"].max())], f"{of['seconds'].sum() / of['runs'].sum():.2f}"
    answered = of["held_known"]
    if not answered.any():
        return [*start, *"-" * (len(HEAD) - 6), "1.00", took]
    least = np.argmin(np.divide(of["held"], answered, out=np.full(len(answered), np.inf), where=answered > 0))
    bias = means(of, "off")
    return [
        *start,
        share_of(of["held"].sum(), answered.sum()),
        share_of(of["held"][least], answered[least]),
        f"{bias[np.nanargmax(np.abs(bias))]:+.4f}",
        *(f"{np.nanmean(means(of, each)):.3f}" if of[f"{each}_known"].any() else "-" for each in ("tau", "tau_people")),
        *(cell for each in ("labels", "unmapped") for cell in ratios(means(of, f"width_{each}"), means(of, each))),
        f"{1 - answered.sum() / of['runs'].sum():.2f}",
        took,
    ]


def means(of: dict[str, NDArray[Any]], name: str) -> NDArray[np.float64]:
    """Give the mean of a number for each model, NaN where it is not known."""
    known = of[f"{name}_known"]
    return np.asarray(np.divide(of[name], known, out=np.full(len(known), np.nan), where=known > 0))


def share_of(held: int, of: int) -> str:
    """Write how often something held, and between what that is known to lie (Wilson)."""
    limits = binomtest(int(held), int(of)).proportion_ci(method="wilson")
    return f"{held / of:.3f} ({limits.low:.3f}-{limits.high:.3f})"


def ratios(width: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[str, str]:
    """Write the mean over models of the ratio of two mean widths, and the largest."""
    found = (width / other)[np.isfinite(width) & np.isfinite(other)]
    return (f"{found.mean():.2f}", f"{found.max():.2f}") if len(found) else ("-", "-")


def recorded() -> pl.DataFrame | None:
    """Read what earlier calls added, of this estimator."""
    if not SUMS.exists():
        return None
    sums = pl.read_csv(SUMS, schema_overrides={"seeds": pl.String})
    return sums.filter(pl.col("estimator") == WITH_AUDITS)


def seeds_of(sums: pl.DataFrame | None) -> set[int]:
    """Give the seeds whose runs were added up."""
    return set() if sums is None else {int(seed) for seeds in sums["seeds"] for seed in seeds.split()}


def added(sums: pl.DataFrame) -> pl.DataFrame:
    """Add these sums to those of earlier calls, which may be of other kernels, and keep them."""
    before = recorded()
    again = seeds_of(before) & seeds_of(sums)
    if again:
        sys.exit(f"runs of the seeds {sorted(again)} are among those of {SUMS}: expected other seeds")
    if before is not None:
        sums = together(pl.concat([before.cast(sums.schema), sums], how="diagonal"), ROW)
    sums = sums.sort(ROW)
    sums.write_csv(SUMS, float_precision=6)
    return sums
