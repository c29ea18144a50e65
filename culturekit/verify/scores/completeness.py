"""Whether all scores are there that the options of a stage ask for: a row that was taken out leaves no trace else."""

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage
from culturekit.verify.scores.labelled_images import DiversityTables
from culturekit.verify.scores.score_rows import SCORES_FILE
from culturekit.verify.scores.vendi import order_of

__all__ = ["check_complete"]

WITHHELD = "kernels not corrected: "
"""How the manifest's reasons begin for which a kernel of a model and concept was not corrected."""

Key = tuple[Any, ...]


def check_complete(
    stage: FinishedStage, rows: Sequence[dict[str, Any]], tables: DiversityTables, ledger: Ledger
) -> None:
    """Compare the rows that are there with those that there must be."""
    if tables.missing:
        return
    there = [key_of(row) for row in rows if row["country"] is None]
    wanted = set(expected(stage, tables))
    for key in sorted(wanted - set(there), key=str):
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score is missing", expected=said(key))
    plain = [key for key in there if key[0] in {"quality", "vs", "qvs"} and key[3] != "corrected"]
    for key in sorted({key for key in plain if key not in wanted or plain.count(key) > 1}, key=str):
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a score that nobody asked for", found=said(key))
    check_corrected_count(stage, rows, tables, ledger)
    check_bounds_count(stage, rows, tables, ledger)


def key_of(row: dict[str, Any]) -> Key:
    """Name a score by what it scores."""
    about = row["about"]
    weights = tuple(float(weight) for weight in about.get("weights", ()))
    order = order_of(about["q"]) if "q" in about else None
    return row["metric"], row["model"], row["concept"], about.get("labels"), weights, order, about.get("scorer")


def expected(stage: FinishedStage, tables: DiversityTables) -> Iterator[Key]:
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


def check_corrected_count(
    stage: FinishedStage, rows: Sequence[dict[str, Any]], tables: DiversityTables, ledger: Ledger
) -> None:
    """Count corrected scores: each kernel of a model and concept has one, or the manifest says why not."""
    if tables.audits is None:
        return
    withheld = sum(count for why, count in stage.manifest.drops.items() if why.startswith(WITHHELD))
    pairs = pl.concat(list(tables.mapped)).select("model", "concept").unique()
    several = {model for (model,), own in pairs.group_by("model") if own.height > 1}
    due = pairs.height * len(stage.manifest.options["kernels"])
    there = sum(
        row["metric"] == "vs" and row["about"].get("labels") == "corrected"
        and not (row["concept"] is None and row["model"] in several)
        for row in rows
    )  # fmt: skip
    if there + withheld != due:
        ledger.broken(
            "scores", f"{stage.name}/{SCORES_FILE}", "corrected scores are missing, or reasons why they are",
            expected=f"{due} of models by concepts by kernels", found=f"{there}, and {withheld} withheld",
        )  # fmt: skip


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


def said(key: Key) -> str:
    """Name a score for a reader."""
    metric, model, concept, labels, weights, order, scorer = key
    parts = [metric, model, concept or "over all", labels, scorer, f"weights {weights}, q {order}" if weights else None]
    return ", ".join(part for part in parts if part)
