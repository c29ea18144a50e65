"""A stage of diversity scores: what each row is, whether it was scored as the stage says, and whether all are there.

A row that was taken out leaves no trace but its absence.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from culturekit.verify.chain import FinishedStage, Ledger, RunTree
from tests.oracles.corrected_scores import check_corrected
from tests.oracles.diversity_scores import (
    ValuesByScore,
    check_diversity,
    compare_values,
    over_repeats,
    values_by_score,
)
from tests.oracles.image_batches import Collection, collection_of
from tests.oracles.labelled_images import DiversityTables, diversity_tables
from tests.oracles.score_rows import SCORES_FILE, compare_row, wrong_row
from tests.oracles.vendi import Codes, kernel_name, kernel_of, order_of, vendi_of_kernels

BOUNDS = ("vs_worst", "vs_best")
HOW = "from all images asked for: the unknown ones unlike everything, or all like one that is shown"

Key = tuple[Any, ...]


def check_qvs(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Recompute the scores of diversity."""
    tables = diversity_tables(tree, stage)
    values = values_by_score(stage)
    plain = [
        row for row in rows if row["metric"] in {"quality", "vs", "qvs"} and row["about"].get("labels") != "corrected"
    ]
    check_diversity(stage.name, plain, tables, values, ledger)
    check_bounds(stage.name, [row for row in rows if row["metric"] in BOUNDS], tables, values, ledger)
    corrected = [row for row in rows if row["about"].get("labels") == "corrected"]
    check_corrected(stage.name, corrected, tables, stage.manifest.options, ledger)
    check_complete(stage, rows, tables, ledger)
    check_terms(stage, rows, ledger)


def check_terms(stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Compare what rows say of how they were scored with the options of the stage; refuse what is no score of it."""
    for row in rows:
        about, options = row["about"], stage.manifest.options
        if row["metric"] not in {"quality", "vs", "qvs", *BOUNDS} or row["group"] is not None:
            wrong_row(
                stage.name, row, "is no score of this stage", expected="quality, vs, qvs and bounds of it",
                found=row["metric"], ledger=ledger,
            )  # fmt: skip
            continue
        wanted: dict[str, object] = {"confidence": options["confidence"]}
        if about.get("size") != "whole" and "interval" not in about and about.get("labels") != "corrected":
            wanted["target"] = options["target"]
        if about.get("size") not in {None, "whole"}:
            wanted["size"] = options["size"]
        if about.get("labels") in {"mapped", "tagged"} and "missing" in about:
            wanted |= {"missing": options["missing"], "partial": options["partial"]}
        stated = {**about, "benchmark": row["benchmark"], "unit": row["unit"]}
        wanted |= {"benchmark": options["benchmark"], "unit": "share"}
        for name, expected in wanted.items():
            whole_quality = name == "target" and about.get("target") == "population" and row["metric"] == "quality"
            if stated.get(name) != expected and not whole_quality:
                wrong_row(
                    stage.name, row, f"{name} is not that of the stage", expected=expected, found=stated.get(name),
                    ledger=ledger,
                )  # fmt: skip


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


def check_complete(
    stage: FinishedStage, rows: Sequence[dict[str, Any]], tables: DiversityTables, ledger: Ledger
) -> None:
    """Compare the rows that are there with those that there must be."""
    if tables.missing:
        return
    there = [score_key(row) for row in rows if row["country"] is None]
    wanted = set(keys_asked(stage, tables))
    for key in sorted(wanted - set(there), key=str):
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score is missing", expected=named(key))
    plain = [key for key in there if key[0] in {"quality", "vs", "qvs"} and key[3] != "corrected"]
    for key in sorted({key for key in plain if key not in wanted or plain.count(key) > 1}, key=str):
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score that nobody asked for", found=named(key))
    check_bounds_count(stage, rows, tables, ledger)


def score_key(row: dict[str, Any]) -> Key:
    """Name a score by what it scores."""
    about = row["about"]
    weights = tuple(float(weight) for weight in about.get("weights", ()))
    order = order_of(about["q"]) if "q" in about else None
    return row["metric"], row["model"], row["concept"], about.get("labels"), weights, order, about.get("scorer")


def keys_asked(stage: FinishedStage, tables: DiversityTables) -> Iterator[Key]:
    """List the scores of mapped and true labels that the options ask for."""
    options = stage.manifest.options
    # A manifest is JSON, which has no infinity: that order stands there as null.
    orders = [order_of("inf" if q is None else q) for q in (options["q"], *options["other_orders"])]
    kernels = [tuple(float(weight) for weight in kernel) for kernel in options["kernels"]]
    every = [*tables.mapped, *tables.truth, *tables.limits]
    several = len({concept for table in every for concept in table["concept"].unique()}) > 1
    for group, scorers in (
        (tables.mapped, sorted(tables.quality)),
        (tables.truth, sorted(tables.quality)),
        (tables.limits, []),
    ):
        for table in group:
            for model, concept, labels in collections_in(table, several=several):
                for scorer in scorers:
                    yield "quality", model, concept, labels, (), None, scorer
                for order in orders:
                    for kernel in kernels:
                        yield "vs", model, concept, labels, kernel, order, None
                        for scorer in scorers:
                            yield "qvs", model, concept, labels, kernel, order, scorer


def collections_in(table: pl.DataFrame, *, several: bool) -> Iterator[tuple[str, str | None, str]]:
    """List the models and concepts of a table, and each model over its concepts where any table has several."""
    for model, concept in table.select("model", "concept").unique().iter_rows():
        method = table.filter(pl.col("model") == model)["method"][0]
        yield model, concept, kind_of(method)
    if several:
        for model in table["model"].unique():
            method = table.filter(pl.col("model") == model)["method"][0]
            yield model, None, kind_of(method)


def kind_of(method: str) -> str:
    """Say what labels are called that a method gave."""
    return {"truth": "truth", "vlm": "tagged"}.get(method, "mapped")


def check_bounds_count(
    stage: FinishedStage, rows: Sequence[dict[str, Any]], tables: DiversityTables, ledger: Ledger
) -> None:
    """Count the bounds: both for each kernel and order of a model and concept that has unknown images."""
    if tables.asked is None:
        return
    known = pl.concat(list(tables.mapped)).filter(~pl.col("abstained"), pl.col("artifact").is_not_null())
    unknown = tables.asked.join(known, on="image_id", how="anti").drop_nulls(["prompt_id", "repeat"])
    options = stage.manifest.options
    cells = len(options["kernels"]) * (1 + len(options["other_orders"]))
    due = 2 * cells * unknown.select("model", "concept").unique().height
    there = sum(row["metric"] in {"vs_worst", "vs_best"} for row in rows)
    if there != due:
        ledger.broken(
            "scores", f"{stage.name}/{SCORES_FILE}", "bounds of models with unknown images are missing, or too many",
            expected=due, found=there,
        )  # fmt: skip


def named(key: Key) -> str:
    """Name a score for a reader."""
    metric, model, concept, labels, weights, order, scorer = key
    parts = [metric, model, concept or "over all", labels, scorer, f"weights {weights}, q {order}" if weights else None]
    return ", ".join(part for part in parts if part)
