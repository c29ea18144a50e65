"""Every scores table of a run, row by row, by the check of its stage; what nothing here recomputes is said to be so."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

from culturekit.errors import UsageError
from culturekit.registry import Registry
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.audited_scores import check_audited
from culturekit.verify.scores.caption_scores import check_c3, check_rating_scores
from culturekit.verify.scores.comparisons import check_comparisons
from culturekit.verify.scores.faithfulness_scores import check_faithfulness
from culturekit.verify.scores.judged_scores import check_judged
from culturekit.verify.scores.linguistic_scores import check_linguistic
from culturekit.verify.scores.people_scores import check_agreement, check_meta
from culturekit.verify.scores.qvs_scores import check_qvs
from culturekit.verify.scores.rank_scores import check_gaps, check_ranks
from culturekit.verify.scores.realism_scores import check_realism
from culturekit.verify.scores.score_rows import SCORES_FILE, read_rows
from culturekit.verify.scores.seen_scores import check_consistency, check_seen_scores
from culturekit.verify.scores.spread_scores import check_spread
from culturekit.verify.scores.stability import check_stability
from culturekit.verify.scores.value_means import check_means, check_nothing_known
from culturekit.verify.scores.within_scores import check_within
from culturekit.verify.tables.check_marks import check_marks
from culturekit.verify.tables.check_routes import check_routes
from culturekit.verify.tables.check_scenes import check_breakdown, check_gaps_of_scores

__all__ = ["BY_MEANS", "SCORE_CHECKS", "check_scores"]

CHECK = "scores"

Check: TypeAlias = Callable[[RunTree, FinishedStage, Sequence[dict[str, Any]], Ledger], None]
"""Gives a verdict on rows of a scores table, each with its number as `row` and its params as `about`."""

SCORE_CHECKS: Mapping[str, Check] = {
    "annotate-aggregate": check_agreement,
    "gaps-of-scores": check_gaps_of_scores,
    "scene-breakdown": check_breakdown,
    "scene-marks": check_marks,
    "score-agreement": check_agreement,
    "score-audited": check_audited,
    "score-c3": check_c3,
    "score-clip": check_consistency,
    "score-compare": check_comparisons,
    "score-dialects": check_linguistic,
    "score-faithfulness": check_faithfulness,
    "score-gaps": check_gaps,
    "score-judged": check_judged,
    "score-meta": check_meta,
    "score-neutral": check_linguistic,
    "score-question-pairs": check_linguistic,
    "score-questions": check_faithfulness,
    "score-qvs": check_qvs,
    "score-ranks": check_ranks,
    "score-ratings": check_rating_scores,
    "score-realism": check_realism,
    "score-routes": check_routes,
    "score-spread": check_spread,
    "score-stability": check_stability,
    "score-task1": check_seen_scores,
    "score-task2": check_seen_scores,
    "score-tones": check_linguistic,
    "score-within": check_within,
}
"""By the kind of the stage, by which a family names its check; rows that it leaves alone are held against values."""

BY_MEANS = frozenset(
    (
        "caption-truth", "object-truth", "pair-worth", "score-ahead", "score-survey", "report-runs",
    )
)  # fmt: skip
"""Stages whose scores are only held against the values beside them: nothing here recomputes these."""

OUTSIDE: Registry[Check] = Registry("check", [], point="check")
"""Checks that other packages bring: the entry point `check.KIND`."""


def check_scores(tree: RunTree, ledger: Ledger) -> None:
    """Go through the scores of all stages that have some."""
    for stage in tree.stages.values():
        path = stage.folder / SCORES_FILE
        if SCORES_FILE not in stage.manifest.outputs or not path.is_file():
            continue
        with ledger.guarded(CHECK, f"{stage.name}/{SCORES_FILE}"):
            rows = read_rows(path)
            ledger.count("scores", len(rows))
            check = check_of(stage.manifest.stage)
            if isinstance(check, str):
                check_nothing_known(stage, rows, ledger, why=check)
                continue
            if check is not None:
                check(tree, stage, rows, ledger)
            check_means(stage, rows, ledger)


def check_of(kind: str) -> Check | str | None:
    """Find the check of a kind of stage, among ours first; None where means are all, or else why there is none."""
    if kind in SCORE_CHECKS or kind in BY_MEANS:
        return SCORE_CHECKS.get(kind)
    if kind not in OUTSIDE.names():
        return f"no check of {kind} is installed, nor named by --plugins"
    try:
        check: Check = OUTSIDE.load(kind)
        plugin = OUTSIDE.find(kind).plugin
    except UsageError as error:
        return str(error)

    def held(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
        with plugin.blamed() if plugin else nullcontext():
            check(tree, stage, rows, ledger)

    return held
