"""The worst and the best case of mapped diversity, where images were refused, not matched, or abstained."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.scores.diversity_scores import ValuesByScore, compare_values, over_repeats
from culturekit.verify.scores.image_batches import Collection, collection_of
from culturekit.verify.scores.labelled_images import DiversityTables
from culturekit.verify.scores.score_rows import compare_row
from culturekit.verify.scores.vendi import Codes, kernel_name, kernel_of, order_of, vendi_of_kernels

__all__ = ["BOUNDS", "check_bounds"]

BOUNDS = ("vs_worst", "vs_best")
HOW = "from all images asked for: the unknown ones unlike everything, or all like one that is shown"


def check_bounds(
    folder: str, rows: Sequence[dict[str, Any]], tables: DiversityTables, values: ValuesByScore, ledger: Ledger
) -> None:
    """Work out every row of a bound."""
    cache: dict[tuple[Any, ...], tuple[Collection, frozenset[str]]] = {}
    for row in rows:
        with ledger.guarded("scores", f"{folder} row {row['row']}"):
            if tables.missing or tables.asked is None:
                ledger.judge(folder, row, "not verifiable", f"inputs are not here: {', '.join(tables.missing)}")
                continue
            about = row["about"]
            key = (row["model"], row["concept"], about["size"], about["missing"])
            if key not in cache:
                cache[key] = asked_collection(row, tables)
            check_row(folder, row, *cache[key], values, ledger)


def asked_collection(row: Mapping[str, Any], tables: DiversityTables) -> tuple[Collection, frozenset[str]]:
    """Put all images that were asked for in batches; those that nobody can tell are named."""
    assert tables.asked is not None
    nearest = pl.concat(list(tables.mapped))
    known = nearest.filter(~pl.col("abstained"), pl.col("artifact").is_not_null())
    asked = tables.asked.filter(
        pl.col("model") == row["model"], pl.col("concept").eq_missing(pl.lit(row["concept"], pl.String))
    )
    labels = known.select("image_id", "continent", "country", "artifact")
    rows = asked.join(labels, on="image_id", how="left")
    unknown = asked.join(known, on="image_id", how="anti")["image_id"]
    about = row["about"]
    collection = collection_of(rows, size=int(about["size"]), missing=about["missing"], partial="drop")
    return collection, frozenset(unknown)


def check_row(
    folder: str,
    row: dict[str, Any],
    images: Collection,
    unknown: frozenset[str],
    values: ValuesByScore,
    ledger: Ledger,
) -> None:
    """Bound each batch and average."""
    about = row["about"]
    place = BOUNDS.index(row["metric"])
    solved: dict[tuple[Any, ...], tuple[float, float]] = {}
    pairs, entered = [], 0
    for batch in images.batches:
        told = [number for number in batch.images if images.images[number] not in unknown]
        codes = pattern(images.codes[told])
        key = (tuple(map(tuple, codes.tolist())), len(batch.images))
        if key not in solved:
            solved[key] = bounds(codes, len(batch.images) - len(told), about["weights"], order_of(about["q"]))
        pairs.append((batch.repeat, solved[key][place] / images.size))
        entered += len(batch.images)
    found = over_repeats(pairs, entered, about, every=dict.fromkeys(images.repeats, math.nan))
    said: dict[str, object] = {
        "unknown": sum(image in unknown for image in images.images),
        "images": len(images.images),
    }
    said |= {"kernel": kernel_name(about["weights"])}
    compare_row(folder, row, found.answer, found.entered, HOW, ledger, said=said)
    compare_values(folder, row, found.repeats, values, ledger)


def pattern(codes: Codes) -> Codes:
    """Number labels in the order in which they come, so that batches of the same pattern are equal."""
    fresh = np.zeros_like(codes)
    for level in range(codes.shape[1]):
        seen: dict[int, int] = {}
        fresh[:, level] = [seen.setdefault(code, len(seen)) for code in codes[:, level].tolist()]
    return fresh


def bounds(codes: Codes, unknown: int, weights: Sequence[float], q: float) -> tuple[float, float]:
    """Give VS with the unknown items all like one that is shown, the lowest of these, and with all unlike anything."""
    if not len(codes):
        return 1.0, float(unknown)
    total = len(codes) + unknown
    apart = np.eye(total)
    apart[: len(codes), : len(codes)] = kernel_of(codes, weights)
    best = float(vendi_of_kernels(apart, q))
    if not unknown:
        return best, best
    alike = [
        np.concatenate([codes, np.repeat(codes[place : place + 1], unknown, axis=0)]) for place in range(len(codes))
    ]
    return min(float(vendi_of_kernels(kernel_of(each, weights), q)) for each in alike), best
