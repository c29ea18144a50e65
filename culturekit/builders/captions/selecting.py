"""Strategies that choose pairs of captions and images: the alignments of C³, and chance."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

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
    found = alignments(values)
    tables = [ranked(strategy, found, options) for strategy in dict.fromkeys(options.strategies)]
    return pl.DataFrame([row for rows in tables for row in rows], schema=SELECTED.schema)


def alignments(values: pl.DataFrame) -> dict[str, C3Alignment]:
    """Read the terms of each item; null is a term that it lacks."""
    rows = values.filter(pl.col("metric").is_in([f"c3_{term}" for term in TERMS["c3"]]))
    scorings = rows.select("model", "benchmark", "params").unique()
    if scorings.height != 1:
        raise UsageError(
            "these are not the values of one scoring of captions",
            expected="values.parquet of one `culturekit score c3`",
            found=f"{scorings.height} scorings by C³",
        )
    terms = rows.pivot("metric", index="item", values="value").sort("item").fill_null(float("nan"))
    return {
        item: C3Alignment(*cells) for item, *cells in terms.select("item", "c3_text", "c3_image", "c3_object").rows()
    }


def ranked(strategy: str, found: Mapping[str, C3Alignment], options: SelectOptions) -> Iterator[dict[str, Any]]:
    """Give the row of each item under a strategy."""
    items = list(found)
    lacks = {item: [term for term in TERMS[strategy] if term in found[item].missing] for item in items}
    out = {item for item in items if lacks[item] and options.missing == "leave-out"}
    values = (
        drawn(items, options.seed) if strategy == "random" else [STRATEGIES[strategy](found[item]) for item in items]
    )
    order = keep_best(items, [np.nan if item in out else value for item, value in zip(items, values, strict=True)],
                      n=len(items))  # fmt: skip
    ranks = {item: rank for rank, item in enumerate(order, start=1)}
    for item, value in zip(items, values, strict=True):
        rank = ranks.get(item)
        kept = rank is not None and rank <= options.keep
        why = BELOW if rank else UNKNOWN if np.isnan(value) else INCOMPLETE
        yield {
            "strategy": strategy, "item": item, "rank": rank, "value": None if np.isnan(value) else value,
            "kept": kept, "missing": lacks[item], "reason": None if kept else why,
        }  # fmt: skip


def drawn(items: Sequence[str], seed: int) -> list[float]:
    """Draw a number for each item, in their order: what chance keeps of fewer is among what it keeps of more."""
    return list(map(float, np.random.default_rng(seed).random(len(items))))


def counted(selected: pl.DataFrame, options: SelectOptions) -> Outcome:
    """Count what each strategy keeps, with terms missing and in all, and why it leaves out the rest."""
    kept = selected.filter("kept")
    counts, incomplete = Counter(kept["strategy"]), Counter(kept.filter(pl.col("missing").list.len() > 0)["strategy"])
    drops = Counter(
        f"{row['strategy']}: {row['reason']}" for row in selected.filter(~pl.col("kept")).iter_rows(named=True)
    )
    short = [f"{name} keeps {counts[name]:,} of {options.keep:,}" for name in options.strategies
             if counts[name] < options.keep]  # fmt: skip
    return Outcome(
        {"selected": selected.height, **{f"{name} kept": counts[name] for name in options.strategies},
         **{f"{name} kept without a term": count for name, count in incomplete.items()}},
        dict(drops),
        {"findings": [f"there are fewer pairs than asked for: {', '.join(short)}"]} if short else {},
    )  # fmt: skip
