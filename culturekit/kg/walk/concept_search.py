"""A concept as a search in a graph: QIDs become nodes, rules become masks."""

import logging
from collections.abc import Sequence

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph
from culturekit.kg.walk.searches import Search
from culturekit.records.choices import Semantics

__all__ = ["nodes_of", "search_of"]

logger = logging.getLogger(__name__)


def search_of(graph: Graph, concept: Concept, *, semantics: Semantics = "default") -> Search:
    """Say in nodes and masks what a concept looks for; a root given twice goes as far as it may in either."""
    limits: dict[int, int] = {}
    missing = []
    for root in concept.roots:
        node = graph.find(int(root.qid[1:]))
        if node is None:
            missing.append(root.qid)
        else:
            limits[node] = max(concept.hops_of(root), limits.get(node, 0))
    say_missing(concept, missing, any_there=bool(limits))
    return Search(
        roots=tuple(sorted(limits)),
        hops=tuple(limits[node] for node in sorted(limits)),
        edge_mask=mask_of(concept.follow, EDGE_PROPERTIES, ranks=concept.ranks, ended=concept.ended),
        country_mask=mask_of(concept.country_properties, COUNTRY_PROPERTIES, ranks=concept.ranks, ended=concept.ended),
        blocked=tuple(nodes_of(graph, concept.exclude.classes)),
        expand_artifacts=concept.expand_artifacts,
        literal=semantics == "authors",
    )


def say_missing(concept: Concept, missing: Sequence[str], *, any_there: bool) -> None:
    """Warn of roots that the graph never mentions; without any root there is nothing to do."""
    if not any_there:
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            found=" ".join(missing),
            hint="Check the QIDs, or ingest the dump that describes them.",
        )
    for qid in missing:
        logger.warning("the graph never mentions the root %s of %s", qid, concept.concept)


def nodes_of(graph: Graph, qids: Sequence[str]) -> list[int]:
    """Find the nodes of QIDs, ascending; what the graph does not have is left out."""
    nodes = (graph.find(int(qid[1:])) for qid in qids)
    return sorted({node for node in nodes if node is not None})
