"""The quality scorers that culturekit knows by name."""

from culturekit.index.quality import QualityScorer
from culturekit.registry import Entry, Registry

__all__ = ["SCORERS"]

SCORERS: Registry[QualityScorer] = Registry(
    "quality scorer",
    [
        Entry(
            "embedded",
            "culturekit.index.embedded_quality:make",
            "clarity: sharp edges, contrast, little noise; without weights",
        ),
    ],
)
