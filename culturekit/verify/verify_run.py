"""A run, verified: the chain of hashes, then what tables say of one another, then score by score."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.records.schemas import TABLES
from culturekit.verify.chain import check_chain, fingerprint
from culturekit.verify.findings import Finding, Ledger, ScoreVerdict
from culturekit.verify.run_tree import FinishedStage, RunTree, open_tree
from culturekit.verify.scores.caption_scores import check_caption_stats
from culturekit.verify.scores.check_scores import check_scores
from culturekit.verify.scores.value_means import check_distributions
from culturekit.verify.tables.check_caption_world import (
    check_captioned,
    check_pair_items,
    check_ranked_values,
    check_truth_of_captions,
    check_worth,
)
from culturekit.verify.tables.check_ground import check_activities, check_activity_prompts, check_descriptors
from culturekit.verify.tables.check_images import check_images, check_truth
from culturekit.verify.tables.check_imports import check_import
from culturekit.verify.tables.check_inclusion import (
    check_clip_values,
    check_geographic_prompts,
    check_object_items,
    check_object_truth,
    check_photographed,
    check_triplets,
)
from culturekit.verify.tables.check_journals import check_journals, check_spending
from culturekit.verify.tables.check_judged import check_answers, check_judged
from culturekit.verify.tables.check_linguistic import (
    check_built,
    check_even_sample,
    check_joined,
    check_known,
    check_questions,
)
from culturekit.verify.tables.check_matches import check_matches
from culturekit.verify.tables.check_pairs import (
    check_expansion,
    check_exported,
    check_objects,
    check_sample,
    check_selected,
    check_translations,
)
from culturekit.verify.tables.check_quality import check_audits, check_image_values, check_quality
from culturekit.verify.tables.check_ratings import check_ratings
from culturekit.verify.tables.check_recipe import check_recipe
from culturekit.verify.tables.check_report import check_report
from culturekit.verify.tables.check_scenes import check_scene_replies, check_scene_truth
from culturekit.verify.tables.check_seen import check_seen_marks, check_tasks
from culturekit.verify.tables.check_verdicts import check_completion, check_filter

__all__ = ["Verification", "verify_run"]


def check_tables(tree: RunTree, ledger: Ledger) -> None:
    """Compare the tables of all stages with their declarations; a table of another name is not looked at."""
    for stage in tree.stages.values():
        for name in sorted(stage.manifest.outputs):
            stem = name.removesuffix(".parquet")
            path = stage.folder / name
            if stem == name or stem not in TABLES or not path.is_file():
                continue
            with ledger.guarded("tables", f"{stage.name}/{name}"):
                frame = pl.read_parquet(path)
                for problem in TABLES[stem].problems(frame):
                    ledger.broken("tables", f"{stage.name}/{name}", f"not a {stem} table: {problem}")
                ledger.count("tables in their declared form")


def each(area: str, check: Callable[[RunTree, FinishedStage, Ledger], None], *kinds: str) -> Callable[..., None]:
    """Make what applies a check to every stage of some kinds; `area` stands before its findings."""

    def go_through(tree: RunTree, ledger: Ledger) -> None:
        for stage in tree.of_kind(*kinds):
            with ledger.guarded(area, stage.name):
                check(tree, stage, ledger)

    return go_through


CHECKS: tuple[Callable[[RunTree, Ledger], None], ...] = (
    check_chain,
    check_recipe,
    check_tables,
    check_journals,
    check_spending,
    each("replies", check_filter, "filter"),
    each("replies", check_completion, "completion"),
    each("replies", check_judged, "answers", "judge", "questions", "tag", "vqascore"),
    each("activities", check_activities, "merge-activities"),
    each("prompts", check_activity_prompts, "activity-prompts"),
    each("descriptors", check_descriptors, "refine-descriptors"),
    check_images,
    each("replies", check_scene_replies, "judge-extract", "judge-likert", "judge-stereotypes"),
    each("truth", check_truth, "truth"),
    each("truth", check_scene_truth, "scene-truth"),
    each("captions", check_captioned, "captioned-images"),
    each("captions", check_truth_of_captions, "caption-truth"),
    each("captions", check_pair_items, "pair-items"),
    each("captions", check_ranked_values, "ranked-values"),
    each("captions", check_worth, "pair-worth"),
    each("quality", check_quality, "quality"),
    each("audits", check_audits, "simulated-audit"),
    each("judgments", check_answers, "answers"),
    each("answers", check_import, "annotate-import"),
    each("matches", check_matches, "map"),
    each("ratings", check_ratings, "annotate-aggregate"),
    each("captions", check_expansion, "expand-captions"),
    each("captions", check_sample, "sample-captions"),
    each("captions", check_caption_stats, "caption-stats"),
    each("captions", check_translations, "translate-captions"),
    each("captions", check_objects, "list-objects"),
    each("linguistic", check_built, "build-dialects", "build-neutral", "build-specific"),
    each("linguistic", check_joined, "joined-prompts"),
    each("linguistic", check_questions, "question-captions"),
    each("linguistic", check_even_sample, "even-sample"),
    each("linguistic", check_known, "portrait-truth"),
    each("inclusion", check_geographic_prompts, "geographic-prompts"),
    each("inclusion", check_photographed, "photographed-prompts"),
    each("inclusion", check_triplets, "triplets"),
    each("inclusion", check_object_items, "object-items"),
    each("inclusion", check_tasks, "inclusion-tasks"),
    each("inclusion", check_seen_marks, "seen-marks"),
    each("inclusion", check_object_truth, "object-truth"),
    each("inclusion", check_clip_values, "score-clip"),
    each("pairs", check_selected, "select"),
    each("pairs", check_exported, "export-pairs"),
    each("values", check_image_values, "score-meta"),
    check_scores,
    each("distributions", check_distributions, "distribution"),
    each("report", check_report, "report"),
)
"""In the order in which what they look at comes about; a stage is found by its kind, scores by `check_scores`."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a run.

    Attributes:
        root: the folder that was verified.
        fingerprint: of all its manifests.
        stages: how many were found.
        checked: what was looked at, counted.
        findings: what is not as it should be, and notes.
        verdicts: one per row of every scores table.
    """

    root: Path
    fingerprint: str
    stages: int
    checked: dict[str, int]
    findings: tuple[Finding, ...]
    verdicts: tuple[ScoreVerdict, ...]

    @property
    def exit_code(self) -> int:
        """Give 4 where bytes or numbers are not what they are said to be, 1 where a person has to look, else 0."""
        if any(finding.severity == "broken" for finding in self.findings):
            return 4
        return int(any(finding.severity == "finding" for finding in self.findings))


def verify_run(root: Path) -> Verification:
    """Verify a run, or one stage folder standing alone.

    Raises:
        UsageError: there is no finished stage.
    """
    ledger = Ledger()
    tree = open_tree(root, ledger)
    for check in CHECKS:
        check(tree, ledger)
    return Verification(
        root,
        fingerprint(tree),
        len(tree.stages),
        dict(sorted(ledger.checked.items())),
        tuple(ledger.findings),
        tuple(sorted(ledger.verdicts, key=lambda verdict: (verdict.folder, verdict.row))),
    )
