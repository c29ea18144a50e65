"""One contender of `algorithm1.py` on one graph: prints seconds, peak memory and what it found as JSON."""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph, load_graph
from culturekit.kg.walk import Search

EDGE_MASK = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
COUNTRY_MASK = mask_of(COUNTRY_PROPERTIES, COUNTRY_PROPERTIES)
Prepared = Callable[[], int]


def searches_of(roots: list[int], hops: int) -> list[Search]:
    """Deal the roots out to three concepts."""
    dealt = [tuple(sorted(roots[first::3])) for first in range(3)]
    return [Search(own, (hops,) * len(own), EDGE_MASK, COUNTRY_MASK) for own in dealt]


def ours(graph: Graph, roots: list[int], hops: int) -> Prepared:
    """Walk all roots in one pass; count pairs of concept and artifact."""
    from culturekit.kg.extract import reached_by
    from culturekit.kg.walk import walk

    def run() -> int:
        searches = searches_of(roots, hops)
        walked = walk(graph, searches)
        return sum(len(reached_by(walked, searches, number).nodes) for number in range(3))

    return run


def plain(graph: Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Give the edges that count, parents and children, and which nodes have a country."""
    good = (graph.edge_flags & EDGE_MASK) != 0
    parents = np.repeat(np.arange(len(graph.nodes)), np.diff(graph.children_offsets))[good]
    return parents, graph.children[good], (graph.country_flags & COUNTRY_MASK) != 0


def with_networkx(graph: Graph, roots: list[int], hops: int) -> Prepared:
    """Walk breadth first from each root of a networkx graph, which is made before the clock starts."""
    import networkx

    parents, children, country = plain(graph)
    nodes = networkx.DiGraph(zip(parents.tolist(), children.tolist(), strict=True))
    country = country.copy()
    artifacts = set(np.flatnonzero(country).tolist())

    def run() -> int:
        total = 0
        for search in searches_of(roots, hops):
            special = set(search.roots)
            found: set[int] = set()
            for root in search.roots:
                seen, frontier = {root}, [root]
                for _ in range(hops):
                    fresh = {child for node in frontier if node in nodes for child in nodes.successors(node)} - seen
                    seen |= fresh
                    ends = (fresh & artifacts) - special
                    found |= ends
                    frontier = list(fresh - ends)
            total += len(found)
        return total

    return run


def with_scipy(graph: Graph, roots: list[int], hops: int) -> Prepared:
    """Multiply a sparse matrix by a vector for each root and hop; the matrix is made before the clock starts."""
    from scipy.sparse import csr_array

    parents, children, country = plain(graph)
    size = len(graph.nodes)
    matrix = csr_array((np.ones(len(parents), np.bool_), (children, parents)), shape=(size, size))

    def run() -> int:
        total = 0
        for search in searches_of(roots, hops):
            artifact = country.copy()
            artifact[list(search.roots)] = False
            found = np.zeros(size, np.bool_)
            for root in search.roots:
                seen, frontier = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
                seen[root] = frontier[root] = True
                for _ in range(hops):
                    fresh = (matrix @ frontier) & ~seen
                    seen |= fresh
                    found |= fresh & artifact
                    frontier = fresh & ~artifact
            total += int(found.sum())
        return total

    return run


def authors(graph: Graph, roots: list[int], hops: int) -> Prepared:
    """Walk every way, and write the rows out as arrays."""
    from culturekit.kg.extract import authors_walk, one_by_one

    def run() -> int:
        found = (authors_walk(graph, search, concept="any") for search in searches_of(roots, hops))
        return sum(one_by_one(ways).height for ways in found)

    return run


def naive(graph: Graph, roots: list[int], hops: int) -> Prepared:
    """Hop by hop, test every item against every node of the list of roots, as the published code is described to do.

    A node that several roots reach stands in the list as often.
    """
    parents, children, country = plain(graph)
    above: list[list[int]] = [[] for _ in graph.nodes]
    for parent, child in zip(parents.tolist(), children.tolist(), strict=True):
        above[child].append(parent)
    has_country = country.tolist()

    def run() -> int:
        rows: list[tuple[int, int]] = []
        for search in searches_of(roots, hops):
            listed = list(search.roots)
            for _ in range(hops):
                fresh: list[int] = []
                for item, own in enumerate(above):
                    for root in listed:
                        if root in own:
                            if has_country[item]:
                                rows.append((root, item))
                            else:
                                fresh.append(item)
                listed = fresh
        return len(rows)

    return run


KINDS = {"ours": ours, "networkx": with_networkx, "scipy": with_scipy, "authors": authors, "naive": naive}


def main() -> None:
    """Prepare, measure, print."""
    kind, folder, hops = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    roots = np.load(folder / "roots.npy").tolist()
    run = KINDS[kind](load_graph(folder), roots, hops)
    times = [0.0] * (3 if kind == "authors" else 1)
    for place in range(len(times)):
        begin = time.perf_counter()
        found = run()
        times[place] = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps({"seconds": min(times), "mib": peak, "found": found}))


if __name__ == "__main__":
    main()
