"""What a verifier is told about an item: its names, and those of its classes and countries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.builders.completing.completion_lookup import KnownItem
from culturekit.builders.filtering.cspace_filter import MOST_CHARACTERS, named
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid
from culturekit.kg.store import GraphTables

LONGEST_CLASS = 100
"""Characters of the name of a class or a country that are shown."""


@dataclass(frozen=True, slots=True)
class ItemNames:
    """Names of classes, from the root configs and, where there is one, the graph."""

    concepts: Sequence[Concept]
    graph: Path | None

    def describe(self, items: Sequence[KnownItem | None]) -> list[dict[str, object] | None]:
        """Describe items as a verifier is shown them; None stays None."""
        classes = self.class_names(items)
        countries = {qid: country.name for qid, country in by_qid().items()}
        return [None if item is None else description_of(item, classes, countries) for item in items]

    def class_names(self, items: Sequence[KnownItem | None]) -> dict[str, str]:
        """Look up what the classes of items are called."""
        roots = {root.qid: root.label for concept in self.concepts for root in concept.roots}
        if self.graph is None:
            return roots
        qids = {qid for item in items if item is not None for qid in item.classes}
        return GraphTables(self.graph).names(qids) | roots


def description_of(item: KnownItem, classes: Mapping[str, str], countries: Mapping[str, str]) -> dict[str, object]:
    """Describe one item."""
    description = item.description
    return {
        "label": item.label[:MOST_CHARACTERS],
        "description": None if description is None else description[:MOST_CHARACTERS],
        "classes": [name[:LONGEST_CLASS] for name in named(item.classes, classes)],
        "countries": [name[:LONGEST_CLASS] for name in named(item.country_qids, countries)],
        "dropped": item.reason[:MOST_CHARACTERS] or None,
    }
