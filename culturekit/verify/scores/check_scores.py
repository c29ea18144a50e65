"""Every scores table of a run, row by row; a row that nothing here can work out is said to be so, and why."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.bounds import BOUNDS, check_bounds
from culturekit.verify.scores.comparisons import check_comparisons
from culturekit.verify.scores.completeness import check_complete
from culturekit.verify.scores.corrected_scores import check_corrected
from culturekit.verify.scores.diversity_scores import NAMES, RepeatMeans, check_diversity
from culturekit.verify.scores.faithfulness_scores import FAMILIES, check_faithfulness
from culturekit.verify.scores.labelled_images import diversity_tables
from culturekit.verify.scores.people_scores import check_agreement, check_meta
from culturekit.verify.scores.realism_scores import check_realism
from culturekit.verify.scores.score_rows import SCORES_FILE, read_rows, wrong_row
from culturekit.verify.scores.spread_scores import check_spread
from culturekit.verify.scores.stability import check_stability
from culturekit.verify.scores.value_means import check_means
from culturekit.verify.scores.within_scores import check_within
from culturekit.verify.tables.check_routes import check_routes

__all__ = ["check_scores"]

CHECK = "scores"


def check_scores(tree: RunTree, ledger: Ledger) -> None:
    """Go through the scores of all stages that have some."""
    for stage in tree.stages.values():
        path = stage.folder / SCORES_FILE
        if SCORES_FILE not in stage.manifest.outputs or not path.is_file():
            continue
        with ledger.guarded(CHECK, f"{stage.name}/{SCORES_FILE}"):
            rows = read_rows(path)
            ledger.count("scores", len(rows))
            if stage.manifest.stage == "score-qvs":
                check_qvs_stage(tree, stage, rows, ledger)
            if stage.manifest.stage == "score-compare":
                check_comparisons(tree, stage, rows, ledger)
            if stage.manifest.stage == "score-within":
                check_within(tree, stage, rows, values_by_score(stage.folder / "values.parquet"), ledger)
            if stage.manifest.stage == "score-spread":
                check_spread(tree, stage, rows, values_by_score(stage.folder / "values.parquet"), ledger)
            if stage.manifest.stage == "score-realism":
                check_realism(tree, stage, rows, ledger)
            if stage.manifest.stage == "score-stability":
                check_stability(tree, stage, rows, ledger)
            if stage.manifest.stage in FAMILIES:
                check_faithfulness(tree, stage, rows, ledger)
            if stage.manifest.stage == "score-routes":
                check_routes(tree, stage, rows, values_by_score(stage.folder / "values.parquet"), ledger)
                check_terms(stage, [row for row in rows if row["metric"] in {"vs", "qvs"}], ledger)
            if stage.manifest.stage == "annotate-aggregate":
                check_agreement(stage, rows, ledger)
            if stage.manifest.stage == "score-meta":
                check_meta(tree, stage, rows, ledger)
            check_means(stage, rows, ledger)


def check_qvs_stage(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Work out the scores of diversity."""
    tables = diversity_tables(tree, stage)
    values = values_by_score(stage.folder / "values.parquet")
    plain = [
        row for row in rows if row["metric"] in {"quality", "vs", "qvs"} and row["about"].get("labels") != "corrected"
    ]
    check_diversity(stage.name, plain, tables, values, ledger)
    check_bounds(stage.name, [row for row in rows if row["metric"] in BOUNDS], tables, values, ledger)
    corrected = [row for row in rows if row["about"].get("labels") == "corrected"]
    check_corrected(stage.name, corrected, tables, int(stage.manifest.options.get("seed", 0)), ledger)
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


def values_by_score(path: Path) -> dict[tuple[Any, ...], RepeatMeans]:
    """Read the means of repeats behind each score."""
    found: dict[tuple[Any, ...], RepeatMeans] = {}
    if not path.is_file():
        return found
    for *key, prompt, repeat, value in pl.read_parquet(path).select(*NAMES, "prompt_id", "repeat", "value").iter_rows():
        found.setdefault(tuple(key), {})[prompt, repeat] = math.nan if value is None else value
    return found
