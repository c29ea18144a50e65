"""Why an item is an artifact of a concept, or why not: every path, every statement, every line of the dump."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np

from culturekit.kg.concepts import Concept
from culturekit.kg.graph_tables import GraphTables, Said, titled
from culturekit.kg.looking.explanation import CountrySaid, Explanation, PathStep, PathStory, RootHop, StepSaid
from culturekit.kg.looking.path_search import PathCount, distances_below, paths_to
from culturekit.kg.looking.why_not import Beyond, Findings, reasons_of
from culturekit.kg.qids import number_of_item
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES
from culturekit.kg.store import Graph, load_graph
from culturekit.kg.walk.levels import WalkChoices, choices_of

__all__ = ["explain"]

ITEMS_AT_MOST = 300_000
"""Above so many items a climb stops and says so; all classes of a class in Wikidata are far fewer."""


@dataclass(frozen=True, slots=True)
class Ancestors:
    """The statements of an item and of what is above it, by item; `complete` when all levels were climbed."""

    said: Mapping[int, tuple[Said, ...]]
    complete: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: an item, a concept, and the graph to look at."""

    graph: Graph
    tables: GraphTables
    number: int
    concept: Concept
    choices: WalkChoices
    successors: Mapping[int, int]


def explain(
    folder: Path,
    qid: str,
    concept: Concept,
    *,
    successors: Mapping[int, int] = MappingProxyType({}),
    show: int = 20,
) -> Explanation:
    """Explain what Algorithm 1 makes of an item; at most `show` paths are told, open ones first.

    `successors` says by QID number which country has taken the place of which.
    """
    number, tables = number_of_item(qid), GraphTables(folder)
    choices = choices_of(concept)
    asked = Asked(load_graph(folder), tables, number, concept, choices, successors)
    near = climb(tables, asked.number, concept.follow, choices.edge_mask, levels=choices.most_hops)
    opened = open_parents(asked.graph, choices, near)
    free = paths_to(asked.number, opened, choices.limits, show=show)
    cut = cut_paths(asked, near, opened, show=show)
    roots = root_hops(asked, opened)
    facts, story = tables.facts([number]).get(number), told(asked, cut.paths, near)
    countries = stated_countries(asked)
    findings = Findings(
        number, facts is not None, asked.graph.find(number) is not None, countries, near.said.get(number, ()),
        roots[0].hop if roots else None, story, None if roots else beyond(asked),
    )  # fmt: skip
    reasons = reasons_of(findings, choices, concept, tables)
    return Explanation(
        qid=qid,
        label=facts.label if facts else None,
        description=facts.description if facts else None,
        place=facts.place if facts else None,
        concept=concept.concept,
        verdict="in" if reasons[0].code == "artifact" else "out",
        reasons=reasons,
        roots=roots,
        countries=countries,
        open_paths=free.counted,
        more_open_paths=free.more,
        cut_paths=cut.counted,
        more_cut_paths=cut.more,
        paths=(*told(asked, free.paths, near), *story[: show - len(free.paths)]),
    )


def told(asked: Asked, paths: Sequence[tuple[int, ...]], near: Ancestors) -> tuple[PathStory, ...]:
    """Tell paths, each a tuple of item numbers, root first, with their statements."""
    numbers = sorted({number for path in paths for number in path})
    marks = asked.choices.is_artifact(asked.graph, np.array(numbers, np.uint32)).tolist()
    stops = [artifact and not asked.choices.expand_artifacts for artifact in marks]
    artifacts = {number for number, stop in zip(numbers, stops, strict=True) if stop}
    facts = asked.tables.facts(numbers)
    labels = asked.tables.labels(numbers)
    stories = []
    for path in paths:
        steps = []
        for position, number in enumerate(path):
            before = path[position - 1] if position else None
            said = tuple(s for s in near.said.get(number, ()) if position and s.value == before)
            last = position == len(path) - 1
            cut = what_cuts(asked, number, said, artifact=number in artifacts and not last) if position else None
            place = facts[number].place if number in facts else None
            step_said = tuple(StepSaid(s.property, s.rank, s.qualified, s.ended, s.counts) for s in said)
            steps.append(PathStep(f"Q{number}", labels[number], step_said, place, cut))
        is_open = all(step.cut is None for step in steps)
        stories.append(PathStory(f"Q{path[0]}", len(path) - 1, is_open, tuple(steps)))
    return tuple(stories)


def what_cuts(asked: Asked, number: int, said: Sequence[Said], *, artifact: bool) -> str | None:
    """Say what keeps a walk from coming to an item, or from going on below it."""
    if not any(s.counts for s in said):
        ranks = sorted({f"{s.rank}{', ended' if s.ended else ''}" for s in said})
        return f"only statements that do not count ({'; '.join(ranks)})"
    if number in asked.choices.excluded_classes:
        return "excluded class"
    if artifact:
        countries = asked.tables.stated([number], COUNTRY_PROPERTIES, asked.choices.country_mask)
        values = sorted({s.value for s in countries if s.counts and s.value is not None})
        labels = asked.tables.labels(values)
        return f"an artifact itself (country {', '.join(titled(f'Q{value}', labels[value]) for value in values)})"
    return None


def cut_paths(asked: Asked, near: Ancestors, opened: Mapping[int, Sequence[int]], *, show: int) -> PathCount:
    """Count the paths that something cuts: those of any statements that are not open from end to end."""

    def is_cut(path: tuple[int, ...]) -> bool:
        return any(parent not in opened.get(child, ()) for parent, child in pairwise(path))

    return paths_to(asked.number, stated_parents(near), asked.choices.limits, show=show, wanted=is_cut)


def root_hops(asked: Asked, opened: Mapping[int, Sequence[int]]) -> tuple[RootHop, ...]:
    """Say from which roots an open path leads to the item, and how long the shortest is."""
    labels = asked.tables.labels(asked.choices.limits)
    found = []
    for root, limit in asked.choices.limits.items():
        hop = distances_below(opened, root).get(asked.number)
        if hop and hop <= limit:
            found.append(RootHop(f"Q{root}", labels[root], hop, limit))
    return tuple(sorted(found, key=lambda root: (root.hop, int(root.qid[1:]))))


def beyond(asked: Asked) -> Beyond:
    """Look without a limit: smallest hop and root of an open path, and the smallest hop of any path."""
    every = climb(asked.tables, asked.number, asked.concept.follow, asked.choices.edge_mask, levels=None)
    nearest, root = smallest_hop(asked, open_parents(asked.graph, asked.choices, every))
    return Beyond(nearest, root, smallest_hop(asked, stated_parents(every))[0], every.complete)


def smallest_hop(asked: Asked, parents: Mapping[int, Sequence[int]]) -> tuple[int | None, int | None]:
    """Give the smallest hop from any root, and that root."""
    hops = [(distances_below(parents, root).get(asked.number), root) for root in sorted(asked.choices.limits)]
    known = [(hop, root) for hop, root in hops if hop]
    return min(known) if known else (None, None)


def stated_countries(asked: Asked) -> tuple[CountrySaid, ...]:
    """List the countries that an item states."""
    said = asked.tables.stated([asked.number], asked.concept.country_properties, asked.choices.country_mask)
    labels = asked.tables.labels(s.value for s in said if s.value is not None)
    scope, first = asked.choices.countries, asked.choices.first_country_property
    first_only = any(s.counts and s.property == first for s in said)
    return tuple(
        CountrySaid(
            s.property,
            None if s.value is None else f"Q{s.value}",
            None if s.value is None else labels[s.value],
            s.snak,
            s.rank,
            s.qualified,
            s.ended,
            counts=s.counts and (s.property == first or not first_only),
            in_scope=s.value is not None and (scope is None or asked.successors.get(s.value, s.value) in scope),
        )
        for s in said
    )


def climb(tables: GraphTables, item: int, follow: Sequence[str], mask: int, *, levels: int | None) -> Ancestors:
    """Collect statements level by level upward, also those that do not count; None climbs to the top."""
    said: dict[int, tuple[Said, ...]] = {}
    frontier = [item]
    level = 0
    while frontier and level != levels and len(said) <= ITEMS_AT_MOST:
        fresh: dict[int, list[Said]] = {number: [] for number in frontier}
        for statement in tables.stated(frontier, follow, mask):
            fresh[statement.number].append(statement)
        said |= {number: tuple(statements) for number, statements in fresh.items()}
        frontier = sorted({s.value for own in fresh.values() for s in own if s.value is not None} - said.keys())
        level += 1
    return Ancestors(said, not frontier)


def stated_parents(ancestors: Ancestors) -> dict[int, tuple[int, ...]]:
    """Give the items that each one points to with a value, whether a walk may take the step or not."""
    return {number: unique(own) for number, own in ancestors.said.items()}


def open_parents(graph: Graph, choices: WalkChoices, ancestors: Ancestors) -> dict[int, tuple[int, ...]]:
    """Keep the steps a walk takes: by statements that count, not into an excluded class, not below an artifact.

    Below artifacts a walk goes on where the concept expands them. A root that is itself excluded is still walked from,
    and not through.
    """
    above = sorted({s.value for own in ancestors.said.values() for s in own if s.value is not None})
    artifacts = choices.is_artifact(graph, np.array(above, np.uint32)) & (not choices.expand_artifacts)
    closed = {number for number, artifact in zip(above, artifacts.tolist(), strict=True) if artifact}
    closed |= choices.excluded_classes - choices.limits.keys()
    return {
        number: tuple(parent for parent in unique([s for s in own if s.counts]) if parent not in closed)
        for number, own in ancestors.said.items()
        if number not in choices.excluded_classes
    }


def unique(statements: Sequence[Said]) -> tuple[int, ...]:
    """Give the values of statements, once each, in ascending order."""
    return tuple(sorted({s.value for s in statements if s.value is not None}))
