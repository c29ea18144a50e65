"""The description of every metric, one module per family."""

from collections.abc import Mapping
from types import MappingProxyType

from culturekit.metrics.catalog.ahead import AHEAD
from culturekit.metrics.catalog.audits import AUDITS, QUESTIONS
from culturekit.metrics.catalog.captions import CAPTIONS
from culturekit.metrics.catalog.diversity import DIVERSITY
from culturekit.metrics.catalog.inclusion import INCLUSION
from culturekit.metrics.catalog.linguistic import LINGUISTIC
from culturekit.metrics.catalog.metric import Direction, Metric
from culturekit.metrics.catalog.realism import REALISM
from culturekit.metrics.catalog.statistics import STATISTICS

__all__ = ["CATALOG", "FAMILIES", "Direction", "Metric"]

FAMILIES = (AHEAD, AUDITS, CAPTIONS, DIVERSITY, INCLUSION, LINGUISTIC, QUESTIONS, REALISM, STATISTICS)

CATALOG: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in sorted((each for family in FAMILIES for each in family), key=lambda each: each.name)
    }
)
"""Every metric by the name it has in a scores table."""
