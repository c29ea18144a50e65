"""The description of every metric, one module per family."""

from collections.abc import Mapping
from types import MappingProxyType

from culturekit.scores.catalog.ahead import AHEAD
from culturekit.scores.catalog.audits import AUDITS, QUESTIONS
from culturekit.scores.catalog.captions import CAPTIONS
from culturekit.scores.catalog.diversity import DIVERSITY
from culturekit.scores.catalog.inclusion import INCLUSION
from culturekit.scores.catalog.linguistic import LINGUISTIC
from culturekit.scores.catalog.metric import Direction, Metric
from culturekit.scores.catalog.realism import REALISM
from culturekit.scores.catalog.statistics import STATISTICS

__all__ = ["CATALOG", "FAMILIES", "Direction", "Metric"]

FAMILIES = (AHEAD, AUDITS, CAPTIONS, DIVERSITY, INCLUSION, LINGUISTIC, QUESTIONS, REALISM, STATISTICS)

CATALOG: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in sorted((each for family in FAMILIES for each in family), key=lambda each: each.name)
    }
)
"""Every metric by the name it has in a scores table."""
