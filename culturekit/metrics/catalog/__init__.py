"""The description of every metric, one module per family."""

from collections.abc import Mapping
from types import MappingProxyType

from culturekit.metrics.catalog.diversity import DIVERSITY
from culturekit.metrics.catalog.metric import Direction, Metric

__all__ = ["CATALOG", "Direction", "Metric"]

FAMILIES = (DIVERSITY,)

CATALOG: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in sorted((each for family in FAMILIES for each in family), key=lambda each: each.name)
    }
)
"""Every metric by the name it has in a scores table."""
