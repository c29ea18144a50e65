"""How a walk is to be made, as the tools around the graph need to know it: masks, roots, limits, exclusions."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid, country
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph

__all__ = ["WalkChoices", "choices_of", "country_key"]


@dataclass(frozen=True, slots=True)
class WalkChoices:
    """Which statements count, from where and how far to walk, and what cuts the walk; items by number.

    `countries` is None where all are in scope. Where `first_country_property` has a country, no other property counts.
    """

    edge_mask: int
    country_mask: int
    limits: Mapping[int, int]
    excluded_classes: frozenset[int]
    excluded_items: frozenset[int]
    countries: frozenset[int] | None
    expand_artifacts: bool
    first_country_property: str | None

    @property
    def most_hops(self) -> int:
        """The longest way that any root allows."""
        return max(self.limits.values())

    def is_artifact(self, graph: Graph, numbers: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Tell which items state a country and are no root; what the graph does not have is none."""
        places = np.minimum(np.searchsorted(graph.nodes, numbers), len(graph.nodes) - 1)
        known = graph.nodes[places] == numbers
        stated = (graph.country_flags[places] & self.country_mask) != 0
        artifact: NDArray[np.bool_] = known & stated & ~np.isin(numbers, sorted(self.limits))
        return artifact


def choices_of(concept: Concept) -> WalkChoices:
    """Read a concept; a root given twice goes as far as it may in either."""
    limits: dict[int, int] = {}
    for root in concept.roots:
        number = number_of(root.qid)
        limits[number] = max(concept.hops_of(root), limits.get(number, 0))
    scope = None
    if concept.countries != "all":
        scope = frozenset(number_of(qid) for iso in concept.countries for qid in country(iso).qids)
    return WalkChoices(
        edge_mask=mask_of(concept.follow, EDGE_PROPERTIES, ranks=concept.ranks, ended=concept.ended),
        country_mask=mask_of(concept.country_properties, COUNTRY_PROPERTIES, ranks=concept.ranks, ended=concept.ended),
        limits=limits,
        excluded_classes=frozenset(map(number_of, concept.exclude.classes)),
        excluded_items=frozenset(map(number_of, concept.exclude.items)),
        countries=scope,
        expand_artifacts=concept.expand_artifacts,
        first_country_property="P495" if concept.country_choice == "P495-first" else None,
    )


def number_of(qid: str) -> int:
    """Read `Q42` as 42."""
    return int(qid[1:])


def country_key(number: int) -> str:
    """Name a country: its ISO code, its QID where culturekit does not know it."""
    known = by_qid().get(f"Q{number}")
    return known.iso if known else f"Q{number}"
