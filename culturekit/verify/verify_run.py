"""A run, verified: the chain of hashes, then what tables say of one another, then score by score."""

from dataclasses import dataclass
from pathlib import Path

from culturekit.verify.chain import check_chain, fingerprint
from culturekit.verify.findings import Finding, Ledger, ScoreVerdict
from culturekit.verify.run_tree import open_tree
from culturekit.verify.scores.check_scores import check_scores
from culturekit.verify.scores.distributions import check_distributions
from culturekit.verify.tables.check_answers import check_answers
from culturekit.verify.tables.check_image_values import check_image_values
from culturekit.verify.tables.check_images import check_images, check_truth
from culturekit.verify.tables.check_journals import check_journals
from culturekit.verify.tables.check_judged import check_judged
from culturekit.verify.tables.check_matches import check_matches
from culturekit.verify.tables.check_quality import check_audits, check_quality
from culturekit.verify.tables.check_ratings import check_ratings
from culturekit.verify.tables.check_recipe import check_recipe
from culturekit.verify.tables.check_report import check_reports
from culturekit.verify.tables.check_spending import check_spending
from culturekit.verify.tables.check_tables import check_tables
from culturekit.verify.tables.check_verdicts import check_verdicts

__all__ = ["Verification", "verify_run"]

CHECKS = (
    check_chain,
    check_recipe,
    check_tables,
    check_journals,
    check_spending,
    check_verdicts,
    check_judged,
    check_images,
    check_truth,
    check_quality,
    check_audits,
    check_answers,
    check_matches,
    check_ratings,
    check_image_values,
    check_scores,
    check_distributions,
    check_reports,
)
"""In the order in which what they look at comes about."""


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
