"""Strategies that choose pairs of captions and images: the alignments of C³, and chance."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.errors import UsageError
from culturekit.metrics.captions.caption_alignment import STRATEGIES, C3Alignment, keep_best
from culturekit.records.schemas import SELECTED
from culturekit.records.work import Outcome
from culturekit.stages.stage_command import Seed, Typed

__all__ = ["SelectOptions", "Strategy", "counted", "select_pairs"]

Strategy: TypeAlias = Literal["random", "labse", "clip", "c3", "no-objects", "objects"]

TERMS: Mapping[str, tuple[str, ...]] = {
    "random": (), "labse": ("text",), "clip": ("image",), "objects": ("object",), "no-objects": ("text", "image"),
    "c3": ("text", "image", "object"),
}  # fmt: skip
"""What a strategy ranks by."""

BELOW, INCOMPLETE, UNKNOWN = "below the number kept", "lacks a term", "has none of the terms"


@dataclass(frozen=True, slots=True)
class SelectOptions:
    """What is kept, and by which strategies."""

    keep: Annotated[int, Field(ge=1, description="Pairs that each strategy keeps.")]
    strategies: Annotated[
        tuple[Strategy, ...],
        Field(description="How pairs are ranked: by chance, by one term, by all three, or by all but objects."),
        Typed(
            once=True, help="How pairs are ranked, with commas between: random, labse, clip, objects, no-objects, c3."
        ),
    ] = ("c3",)
    missing: Annotated[
        Literal["sum", "leave-out"],
        Field(description="A pair that lacks a term is ranked by the sum of the others, or left out."),
    ] = "sum"
    seed: Seed = 0


def select_pairs(values: pl.DataFrame, options: SelectOptions) -> pl.DataFrame:
    """Rank the items of `score c3` by each strategy, and keep the best; chance ranks every item.

    Args:
        values: the VALUES of one scoring.
        options: how many to keep, and by what.
    """
    terms = terms_of(values)
    found = [C3Alignment(*cells) for cells in terms.drop("item").fill_null(float("nan")).iter_rows()]
    return pl.concat([ranked(strategy, terms, found, options) for strategy in dict.fromkeys(options.strategies)])


def terms_of(values: pl.DataFrame) -> pl.DataFrame:
    """Give a row for each item, by its name, with text, image and object; null is a term that it lacks."""
    rows = values.filter(pl.col("metric").is_in([f"c3_{term}" for term in TERMS["c3"]]))
    scorings = rows.select("model", "benchmark", "params").unique().height
    if scorings != 1:
        raise UsageError(
            "these are not the values of one scoring of captions",
            expected="values.parquet of one `culturekit score c3`", found=f"{scorings} scorings by C³",
        )  # fmt: skip
    terms = rows.pivot("metric", index="item", values="value").sort("item")
    return terms.select("item", *(pl.col(f"c3_{term}").alias(term) for term in TERMS["c3"]))


def ranked(strategy: str, terms: pl.DataFrame, found: Sequence[C3Alignment], options: SelectOptions) -> pl.DataFrame:
    """Rank every item under a strategy; chance draws in their order, so that fewer kept are among more kept."""
    drawn = np.random.default_rng(options.seed).random(terms.height) if strategy == "random" else None
    values = [STRATEGIES[strategy](one) for one in found] if drawn is None else drawn
    lacks = [pl.when(pl.col(term).is_null()).then(pl.lit(term)) for term in TERMS[strategy]]
    table = terms.select(
        "item", pl.Series("value", values, pl.Float64),
        missing=pl.concat_list(lacks).list.drop_nulls() if lacks else pl.lit([], dtype=pl.List(pl.String)),
    )  # fmt: skip
    left_out = (pl.col("missing").list.len() > 0) & (options.missing == "leave-out")
    scores = table.select(pl.when(~left_out).then("value").fill_null(np.nan)).to_series()
    order = pl.DataFrame({"item": keep_best(table["item"].to_list(), scores, n=terms.height)}, {"item": pl.String})
    rank, value = pl.col("rank"), pl.col("value")
    return (
        table.join(order.with_row_index("rank", offset=1), on="item", how="left")
        .with_columns(value.fill_nan(None), strategy=pl.lit(strategy), kept=(rank <= options.keep).fill_null(False))
        .with_columns(
            reason=pl.when("kept").then(None).when(rank.is_not_null()).then(pl.lit(BELOW))
            .when(value.is_null()).then(pl.lit(UNKNOWN)).otherwise(pl.lit(INCOMPLETE))
        )
        .select(list(SELECTED.columns))
    )  # fmt: skip


def counted(selected: pl.DataFrame, options: SelectOptions) -> Outcome:
    """Count what each strategy keeps, with terms missing and in all, and why it leaves out the rest."""
    kept = selected.filter("kept")
    counts, incomplete = Counter(kept["strategy"]), Counter(kept.filter(pl.col("missing").list.len() > 0)["strategy"])
    drops = Counter(selected.filter(~pl.col("kept")).select(pl.format("{}: {}", "strategy", "reason")).to_series())
    short = [f"{name} keeps {counts[name]:,} of {options.keep:,}" for name in options.strategies
             if counts[name] < options.keep]  # fmt: skip
    return Outcome(
        {"selected": selected.height, **{f"{name} kept": counts[name] for name in options.strategies},
         **{f"{name} kept without a term": count for name, count in incomplete.items()}},
        dict(drops),
        {"findings": [f"there are fewer pairs than asked for: {', '.join(short)}"]} if short else {},
    )  # fmt: skip
