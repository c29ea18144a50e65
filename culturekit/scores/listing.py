"""Where each family of scores is, ours and those of other packages; one is imported when somebody asks for it."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from culturekit.core.errors import UsageError
from culturekit.core.registry import Entry, Registry
from culturekit.scores.catalog import CATALOG, FAMILIES, Metric

if TYPE_CHECKING:
    from culturekit.scores.family import Family


logger = logging.getLogger(__name__)

# Another package adds a family as the entry point `metric.NAME`
KNOWN: "Registry[Family]" = Registry(
    "metric", [Entry(name, target, "") for name, target in FAMILIES.items()], point="metric",
    wanted="culturekit.scores.family:Family",
)  # fmt: skip


def outside_names() -> list[str]:
    """List the families that other packages bring."""
    return [name for name in KNOWN.names() if name not in FAMILIES]


def family_named(name: str) -> "Family":
    """Import a family."""
    family: Family = KNOWN.load(name)
    plugin = KNOWN.find(name).plugin
    if plugin is None:
        return family
    from culturekit.scores.family import held_family

    refuse_taken(name, family, CATALOG)
    return held_family(family, plugin)


def refuse_taken(name: str, family: "Family", known: Mapping[str, Metric]) -> None:
    """Refuse a family with a metric that has the name of another."""
    taken = sorted(metric.name for metric in family.metrics if metric.name in known)
    if taken:
        where = KNOWN.find(name).factory
        raise UsageError("two metrics have one name", where=where, found=", ".join(taken), expected="a name of its own")


def all_metrics() -> Mapping[str, Metric]:
    """Describe every metric by its name, those of other packages included; a package that is wrong is left out."""
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


def title_of(metric: str) -> str:
    """Name a metric; one whose package is not installed by its own name."""
    known = all_metrics().get(metric)
    return known.title if known else metric
