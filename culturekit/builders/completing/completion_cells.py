"""What is completed: every concept in every country it is about, each with the names that are there already."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from culturekit.builders.space.scope import countries_in_scope
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import Country, countries
from culturekit.storage.table_slices import TableSlices

__all__ = ["Cell", "cells_of", "drawn_cells", "names_there"]

LOOKED_AT = ("concept", "qid", "label", "country_qids", "sitelinks")


@dataclass(frozen=True, slots=True)
class Cell:
    """One concept in one country."""

    concept: Concept
    country: Country

    @property
    def id(self) -> str:
        """What the cell is called in requests and tables."""
        return f"{self.concept.concept}/{self.country.iso}"

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of artifact that the concept takes: the names of its roots."""
        return tuple(dict.fromkeys(root.label for root in self.concept.roots))

    def root_of(self, kind: str) -> str:
        """Give the QID of the root that a kind is the name of."""
        return next(root.qid for root in self.concept.roots if root.label == kind)


def cells_of(concepts: Sequence[Concept]) -> list[Cell]:
    """List the cells: concepts in the order given, countries by ISO code."""
    return [
        Cell(concept, country)
        for concept in concepts
        for iso, country in sorted(countries().items())
        if iso in concept.codes
    ]


def drawn_cells(cells: Sequence[Cell], size: int) -> list[Cell]:
    """Draw cells for a pilot by hash, the same ones each time; they stay in their order."""
    drawn = sorted(cells, key=lambda cell: blake2b(cell.id.encode(), digest_size=8).digest())[:size]
    return [cell for cell in cells if cell in drawn]


def names_there(kept: TableSlices, cells: Sequence[Cell], *, most: int) -> Mapping[str, list[str]]:
    """Name, for each cell, the artifacts that are there: the best known first, no more than `most`."""
    concepts = {cell.concept.concept: cell.concept for cell in cells}
    best: dict[str, list[tuple[int, int, str]]] = {cell.id: [] for cell in cells}
    for place, row in enumerate(row for frame in kept.slices(LOOKED_AT) for row in frame.iter_rows(named=True)):
        concept = concepts.get(row["concept"])
        if concept is None or not row["label"]:
            continue
        entry = (row["sitelinks"], -place, row["label"])
        for iso in countries_in_scope(row["country_qids"], concept):
            names = best.get(f"{concept.concept}/{iso}")
            if names is None:
                continue
            if len(names) < most:
                heapq.heappush(names, entry)
            elif entry > names[0]:
                heapq.heapreplace(names, entry)
    return {cell: [label for _, _, label in sorted(names, reverse=True)] for cell, names in best.items()}
