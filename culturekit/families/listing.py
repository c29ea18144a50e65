"""Where each family of scores is, ours and those of other packages; one is imported when somebody asks for it."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from culturekit.errors import UsageError
from culturekit.registry import Entry, Registry

if TYPE_CHECKING:
    from culturekit.families.family import Family
    from culturekit.metrics.catalog import Metric


logger = logging.getLogger(__name__)

FAMILIES = {
    "qvs": "culturekit.families.qvs:QVS",
    "ahead": "culturekit.families.ahead:AHEAD",
    "c3": "culturekit.families.c3:C3",
    "compare": "culturekit.families.compare:COMPARE",
    "stability": "culturekit.families.stability:STABILITY",
    "routes": "culturekit.families.routes:ROUTES",
    "gaps": "culturekit.families.gaps:GAPS",
    "meta": "culturekit.families.meta:META",
    "agreement": "culturekit.families.agreement:AGREEMENT",
    "audit-sample": "culturekit.families.audited:TO_AUDIT",
    "audited": "culturekit.families.audited:AUDITED",
    "judged": "culturekit.families.judged:JUDGED",
    "distribution": "culturekit.families.distribution:DISTRIBUTION",
    "task1": "culturekit.families.task1:TASK_1",
    "task2": "culturekit.families.task2:TASK_2",
    "survey": "culturekit.families.survey:SURVEY",
    "tones": "culturekit.families.tones:TONES",
    "dialects": "culturekit.families.dialects:DIALECTS",
    "neutral": "culturekit.families.neutral:NEUTRAL",
    "question-pairs": "culturekit.families.question_pairs:QUESTION_PAIRS",
    "ranks": "culturekit.families.compare:RANKS",
    "ratings": "culturekit.families.ratings:RATINGS",
    "realism": "culturekit.families.realism:REALISM",
    "clip": "culturekit.families.clip:CLIP",
    "questions": "culturekit.families.faithfulness:ASKED",
    "pairs": "culturekit.families.spread:PAIRS",
    "spread": "culturekit.families.spread:SPREAD",
    "within": "culturekit.families.within:WITHIN",
}
"""The families by the names of their commands, in the order of the help."""

KNOWN: "Registry[Family]" = Registry(
    "metric", [Entry(name, place, "") for name, place in FAMILIES.items()], point="metric",
    wanted="culturekit.families.family:Family",
)  # fmt: skip
"""Another package adds a family as the entry point `metric.NAME`."""


def outside_names() -> list[str]:
    """List the families that other packages bring."""
    return [name for name in KNOWN.names() if name not in FAMILIES]


def family_named(name: str) -> "Family":
    """Import a family.

    Raises:
        UsageError: there is none of that name, or what its package brings is no family with metrics of its own.
    """
    family: Family = KNOWN.load(name)
    plugin = KNOWN.find(name).plugin
    if plugin is None:
        return family
    from culturekit.families.brought import held_family
    from culturekit.metrics.catalog import CATALOG

    refuse_taken(name, family, CATALOG)
    return held_family(family, plugin)


def refuse_taken(name: str, family: "Family", known: "Mapping[str, Metric]") -> None:
    """Refuse a family with a metric that has the name of another."""
    taken = sorted(metric.name for metric in family.metrics if metric.name in known)
    if taken:
        where = KNOWN.find(name).factory
        raise UsageError("two metrics have one name", where=where, found=", ".join(taken), expected="a name of its own")


def all_metrics() -> "Mapping[str, Metric]":
    """Describe every metric by its name, those of other packages included; a package that is wrong is left out."""
    from culturekit.metrics.catalog import CATALOG

    found = dict(CATALOG)
    for name in outside_names():
        try:
            family = family_named(name)
            refuse_taken(name, family, found)
        except UsageError as error:
            logger.warning("metric %s is left out: %s", name, error)
            continue
        found |= {metric.name: metric for metric in family.metrics}
    return dict(sorted(found.items()))
