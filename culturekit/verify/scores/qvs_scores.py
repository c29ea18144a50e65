"""A stage of diversity scores: what each row is, and whether it was scored as the stage says."""

from collections.abc import Sequence
from typing import Any

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.bounds import BOUNDS, check_bounds
from culturekit.verify.scores.completeness import check_complete
from culturekit.verify.scores.corrected_scores import check_corrected
from culturekit.verify.scores.diversity_scores import check_diversity, values_by_score
from culturekit.verify.scores.labelled_images import diversity_tables
from culturekit.verify.scores.score_rows import wrong_row

__all__ = ["check_qvs", "check_terms"]


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
