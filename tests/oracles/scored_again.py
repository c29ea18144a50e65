"""Scores of diversity worked out again: what a finished stage says against formulas that share nothing with it.

Bounds and whole collections are held in tests/scores.
"""

from pathlib import Path
from typing import Any

from culturekit.verify.chain import Ledger, RunTree, check_chain, open_tree
from tests.oracles.corrected_scores import CorrectedScores
from tests.oracles.diversity_scores import DiversityScores
from tests.oracles.labelled_images import diversity_tables
from tests.oracles.score_rows import read_rows


def scored_again(folder: Path) -> list[dict[str, Any]]:
    """Work every row of the scores of a stage out again, and make sure that each is what the formulas give."""
    ledger = Ledger()
    tree: RunTree = open_tree(folder, ledger)
    check_chain(tree, ledger)
    assert [str(finding) for finding in ledger.findings] == []
    (stage,) = tree.stages.values()
    tables, options = diversity_tables(stage), stage.manifest.options
    plain = DiversityScores(tables)
    corrected = CorrectedScores(tables, int(options.get("seed", 0)), options.get("design", "drawn"))
    rows = [row for row in read_rows(folder / "scores.parquet") if row["metric"] in {"quality", "vs", "qvs"}]
    assert rows
    for row in rows:
        (corrected if row["about"].get("labels") == "corrected" else plain).check(row)
    return rows
