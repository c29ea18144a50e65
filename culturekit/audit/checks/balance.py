"""How evenly rows are spread over countries and concepts."""

from collections import Counter
from collections.abc import Iterator
from statistics import median

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Code, Finding
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["CHECK"]

IMBALANCE = Code(
    "imbalance",
    "note",
    "a country has less than half of what countries have of a concept in the middle, more than twice, or nothing",
    "nothing: rows must be found, or left out, by a person",
)
MANY = 2


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold the count of every country and concept against the median of the concept."""
    counts = Counter(
        (concept, country.name)
        for row in sheet.rows
        if (country := sheet.country(row)) is not None and (concept := sheet.concept(row)) is not None
    )
    places = sorted({place for _, place in counts})
    if len(places) < MANY:
        return
    for concept in sorted({concept for concept, _ in counts}):
        middle = median(counts[concept, place] for place in places)
        for place in places:
            own = counts[concept, place]
            if own == 0 or not middle / MANY <= own <= middle * MANY:
                yield IMBALANCE.finding(
                    f"{place} × {concept}: {own:,} rows, where countries have {middle:,g} in the middle",
                    row=None,
                    field=sheet.column("country"),
                    value=f"{place} × {concept}",
                    suggestion="look for more rows, or say in the card why there are so many",
                )


CHECK = Check(Turn.FILE, (IMBALANCE,), find)
