"""Scores of diversity worked out again: what a finished stage says against formulas that share nothing with it."""

from collections import Counter
from pathlib import Path

from culturekit.verify.chain import Ledger, RunTree, check_chain, open_tree
from tests.oracles.qvs_scores import check_qvs
from tests.oracles.score_rows import SCORES_FILE, read_rows


def scored_again(folder: Path) -> Ledger:
    """Work every row of the scores of a stage out again, and say what is wrong with it."""
    ledger = Ledger()
    tree: RunTree = open_tree(folder, ledger)
    check_chain(tree, ledger)
    (stage,) = tree.stages.values()
    check_qvs(tree, stage, read_rows(folder / SCORES_FILE), ledger)
    return ledger


def check_scored_again(folder: Path) -> Ledger:
    """Make sure that every row of the scores of a stage is what the formulas give."""
    ledger = scored_again(folder)
    assert [str(finding) for finding in ledger.findings] == []
    assert Counter(each.verdict for each in ledger.verdicts) == {"verified": len(ledger.verdicts)}
    assert ledger.verdicts
    return ledger
