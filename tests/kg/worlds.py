"""Small worlds as dumps and graphs, with every oddity, and Algorithm 1 on them as anybody can check it by reading."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hypothesis import strategies as st

from culturekit.core.stage import Work
from culturekit.kg.concepts import Concept, Exclusions, Root
from culturekit.kg.dump.ingest import IngestOptions, ingest
from tests.conftest import HeardProgress, HereEngine

ITEMS = range(1, 9)
"""The items that worlds describe; others are only ever mentioned."""


@dataclass(frozen=True)
class Said:
    """A statement of a world; `value` 0 is novalue, -1 is somevalue."""

    number: int
    name: str
    value: int
    rank: str = "normal"
    ended: bool = False

    @property
    def counts(self) -> bool:
        return self.value > 0 and self.rank != "deprecated"

    @property
    def snak(self) -> str:
        return {0: "novalue", -1: "somevalue"}.get(self.value, "value")

    def document(self) -> dict[str, object]:
        snak: dict[str, object] = {"snaktype": self.snak, "property": self.name}
        if self.value > 0:
            snak["datavalue"] = {"value": {"id": f"Q{self.value}"}}
        ends = {"qualifiers": {"P582": [{"snaktype": "somevalue", "property": "P582"}]}} if self.ended else {}
        return {"mainsnak": snak, "rank": self.rank, **ends}


World = Sequence[Said]


def worlds(
    names: Sequence[str], values: st.SearchStrategy[int], *, items: Sequence[int] = ITEMS, ended: bool = True,
    least: int = 0, most: int = 30,
) -> st.SearchStrategy[list[Said]]:  # fmt: skip
    """Draw statements of items, of all ranks."""
    ranks = st.sampled_from(["preferred", "normal", "normal", "deprecated"])
    ends = st.booleans() if ended else st.just(False)
    statement = st.builds(Said, st.sampled_from(items), st.sampled_from(names), values, ranks, ends)
    return st.lists(statement, min_size=least, max_size=most)


def work_in(folder: Path) -> Work:
    """Let a stage function write into a folder."""
    folder.mkdir(parents=True)
    (folder.parent / "scratch").mkdir(exist_ok=True)
    return Work({}, folder, folder.parent / "scratch", HereEngine(), HeardProgress())


def make_graph(
    folder: Path, said: Iterable[Said], items: Sequence[int] = (), labels: Mapping[int, Mapping[str, str]] | None = None
) -> Path:
    """Ingest a world; every item that says something is described, and so are `items`."""
    documents: dict[int, dict[str, list[object]]] = {number: {} for number in items}
    for statement in said:
        documents.setdefault(statement.number, {}).setdefault(statement.name, []).append(statement.document())
    named = labels or {}
    lines = []
    for number, claims in sorted(documents.items()):
        terms = named.get(number, {"en": f"item {number}"})
        written = {code: {"language": code, "value": value} for code, value in terms.items()}
        lines.append(json.dumps({"id": f"Q{number}", "type": "item", "labels": written, "claims": claims or []}))
    work = work_in(folder / "graph")
    (folder / "dump.json").write_text("\n".join(lines), encoding="utf-8")
    ingest(work, [folder / "dump.json"], IngestOptions(languages=("en", "de")))
    return work.out


def concept_of(
    roots: Mapping[int, int | None],
    *,
    hops: int = 3,
    classes: Sequence[int] = (),
    items: Sequence[int] = (),
    countries: Sequence[str] | None = None,
) -> Concept:
    """Make a concept from root numbers and their own limits."""
    return Concept(
        concept="any",
        hops=hops,
        roots=tuple(Root(qid=f"Q{number}", label="", hops=own) for number, own in roots.items()),
        countries=tuple(countries) if countries else "all",
        exclude=Exclusions(classes=tuple(f"Q{n}" for n in classes), items=tuple(f"Q{n}" for n in items)),
    )


class Naive:
    """Algorithm 1 over a list of statements."""

    def __init__(self, world: World, concept: Concept, successors: Mapping[int, int] | None = None) -> None:
        self.concept, self.successors = concept, successors or {}
        self.world = [said for said in world if self.counts(said, world)]
        self.roots = {int(root.qid[1:]): 0 for root in concept.roots}
        for root in concept.roots:
            number = int(root.qid[1:])
            self.roots[number] = max(self.roots[number], concept.hops_of(root))
        self.blocked = {int(qid[1:]) for qid in concept.exclude.classes}
        self.walked: set[int] = set()

    def counts(self, said: Said, world: World) -> bool:
        """Tell whether the concept's rules count a statement."""
        alike = [other for other in world if (other.number, other.name) == (said.number, said.name)]
        best = "preferred" if any(other.rank == "preferred" for other in alike) else "normal"
        good = {"all": True, "not-deprecated": said.rank != "deprecated", "truthy": said.rank == best}[
            self.concept.ranks
        ]
        return good and not (said.ended and self.concept.ended == "drop")

    def edges(self) -> set[tuple[int, int]]:
        """List parents and children."""
        follow = self.concept.follow
        return {(said.value, said.number) for said in self.world if said.value > 0 and said.name in follow}

    def children(self, parent: int) -> list[int]:
        """List what may be entered from a node."""
        return sorted(child for above, child in self.edges() if above == parent and child not in self.blocked)

    def countries(self, number: int) -> list[str]:
        """List the countries of an item in the order that rows give them."""
        own = [said for said in self.world if said.number == number and said.value > 0]
        by_name = {
            name: [self.successors.get(said.value, said.value) for said in own if said.name == name]
            for name in self.concept.country_properties
        }
        if self.concept.country_choice == "P495-first":
            found = by_name.get("P495") or by_name.get("P17") or []
        else:
            found = [value for values in by_name.values() for value in values]
        return [f"Q{value}" for value in dict.fromkeys(found)]

    def valueless(self, number: int) -> set[str]:
        """List the statements that could have been an edge or a country."""
        asked = {*self.concept.follow, *self.concept.country_properties}
        own = [said for said in self.world if said.number == number and said.name in asked and said.value < 1]
        return {f"{said.name} {said.snak}" for said in own}

    def candidates(self) -> dict[int, tuple[int, set[int], tuple[int, ...]]]:
        """Find for each artifact the smallest hop, all roots, and the smallest shortest path."""
        found: dict[int, tuple[int, set[int], tuple[int, ...]]] = {}
        for root, hops in self.roots.items():
            for number, path in self.from_root(root, hops).items():
                hop, roots, best = found.get(number, (len(path) - 1, set(), path))
                hop, best = min((hop, best), (len(path) - 1, path))
                found[number] = (hop, roots | {root}, best)
        return found

    def from_root(self, root: int, hops: int) -> dict[int, tuple[int, ...]]:
        """Walk from one root, keeping the smallest shortest path to each artifact."""
        seen = {root}
        found: dict[int, tuple[int, ...]] = {}
        frontier: dict[int, tuple[int, ...]] = {root: (root,)}
        for _ in range(hops):
            self.walked |= set(frontier)
            fresh: dict[int, tuple[int, ...]] = {}
            for parent, path in frontier.items():
                for child in self.children(parent):
                    if child not in seen:
                        fresh[child] = min(fresh.get(child, (*path, child)), (*path, child))
            seen |= set(fresh)
            artifacts = {number for number in fresh if self.countries(number) and number not in self.roots}
            found |= {number: fresh[number] for number in artifacts}
            onward = fresh if self.concept.expand_artifacts else {n: fresh[n] for n in fresh if n not in artifacts}
            frontier = dict(onward)
        return found

    def ways(self) -> Counter[tuple[int, int, int, int]]:
        """Walk every way, remembering nothing: root, hop, last parent and artifact, with how many there are."""
        return Counter(way for root, hops in self.roots.items() for way in self.ways_below(root, root, 1, hops))

    def ways_below(self, root: int, node: int, hop: int, hops: int) -> Iterator[tuple[int, int, int, int]]:
        """Go one hop down every edge, and on from there."""
        for child in self.children(node):
            artifact = bool(self.countries(child))
            if artifact:
                yield root, hop, node, child
            if hop < hops and (not artifact or self.concept.expand_artifacts):
                yield from self.ways_below(root, child, hop + 1, hops)


def loops(walks: Sequence[Naive]) -> dict[str, int]:
    """Count self-loops and cycles among the nodes that any walk has walked on from."""
    walked = set().union(*(walk.walked for walk in walks))
    edges = {edge for walk in walks for edge in walk.edges() if walked.issuperset(edge)}
    below = {node: {child for parent, child in edges if parent == node} for node in walked}
    for _ in walked:
        below = {node: own.union(*(below[child] for child in own)) for node, own in below.items()}
    groups = {frozenset(other for other in below[node] if node in below[other]) | {node} for node in walked}
    cycles = [group for group in groups if len(group) > 1]
    return {
        "self_loops": sum(parent == child for parent, child in edges),
        "cycles": len(cycles),
        "nodes_in_cycles": sum(map(len, cycles)),
    }
