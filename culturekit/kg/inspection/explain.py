"""Why an item is an artifact of a concept, or why not: every path, every statement, every line of the dump."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from culturekit.core.counting import counted
from culturekit.kg.concepts import COUNTRY_PROPERTIES, Concept
from culturekit.kg.countries import number_of_item
from culturekit.kg.store import Graph, GraphTables, Place, Said, load_graph, titled
from culturekit.kg.walk.walk import WalkChoices, choices_of

# What is answered when somebody asks why an item is, or is not, among the artifacts of a concept.

Verdict: TypeAlias = Literal["in", "out"]


@dataclass(frozen=True, slots=True)
class StepSaid:
    """A statement that makes a step; `counts` is false for one that a walk does not hear."""

    property: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool


@dataclass(frozen=True, slots=True)
class PathStep:
    """An item on a path: what it says of the one before it, where the dump says so, and what closes the step."""

    qid: str
    label: str | None
    said: tuple[StepSaid, ...]
    place: Place | None
    cut: str | None


@dataclass(frozen=True, slots=True)
class PathStory:
    """A path from a root to the item; it is open when nothing cuts it."""

    root: str
    hop: int
    open: bool
    steps: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class RootHop:
    """A root that has the item below it: the smallest hop of an open path, and how far it is walked from."""

    qid: str
    label: str | None
    hop: int
    limit: int


@dataclass(frozen=True, slots=True)
class CountrySaid:
    """A statement of a country, whether it counts, and whether the concept wants the country."""

    property: str
    value: str | None
    label: str | None
    snak: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool
    in_scope: bool


@dataclass(frozen=True, slots=True)
class Reason:
    """Why, as a word for machines and a sentence for people."""

    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an item is or is not an artifact of a concept."""

    qid: str
    label: str | None
    description: str | None
    place: Place | None
    concept: str
    verdict: Verdict
    reasons: tuple[Reason, ...]
    roots: tuple[RootHop, ...]
    countries: tuple[CountrySaid, ...]
    open_paths: int
    more_open_paths: bool
    cut_paths: int
    more_cut_paths: bool
    paths: tuple[PathStory, ...]


_PATHS_AT_MOST = 10_000
"""How many paths are counted before it says `more`."""

_STEPS_AT_MOST = 400_000
"""How many steps a search takes before it says `more`: about a second."""


@dataclass(frozen=True, slots=True)
class PathCount:
    """The first paths, root first, and how many were counted; `more` says that counting was stopped."""

    paths: tuple[tuple[int, ...], ...]
    counted: int
    more: bool


def _distances_below(parents: Mapping[int, Sequence[int]], root: int) -> dict[int, int]:
    """Give the smallest number of steps from a root down to each item that has it above."""
    children: dict[int, list[int]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    distances = {root: 0}
    frontier = [root]
    while frontier:
        reached = {child for parent in frontier for child in children.get(parent, ()) if child not in distances}
        distances |= dict.fromkeys(reached, distances[frontier[0]] + 1)
        frontier = sorted(reached)
    return distances


def _paths_to(
    item: int,
    parents: Mapping[int, Sequence[int]],
    limits: Mapping[int, int],
    *,
    show: int,
    wanted: Callable[[tuple[int, ...]], bool] = lambda path: True,
) -> PathCount:
    """Count the wanted paths from roots to an item, each within the limit of its root, and keep the first `show`.

    No item stands twice on a path. Shorter paths come first, on ties the smaller numbers from the root on.
    """
    below = [_distances_below(parents, root) for root in limits]
    nearest: dict[int, int] = {}
    for distances in below:
        for node, distance in distances.items():
            nearest[node] = min(distance, nearest.get(node, distance))
    search = Search(parents, limits, nearest, _STEPS_AT_MOST)
    shown: list[tuple[int, ...]] = []
    counted = 0
    for length in range(1, max(limits.values(), default=0) + 1):
        found = []
        for path in filter(wanted, search.of_length((item,), length)):
            counted += 1
            found.append(path)
            if counted >= _PATHS_AT_MOST:
                search.stopped = True
        shown += sorted(found)[: show - len(shown)]
        if search.stopped:
            break
    return PathCount(tuple(shown), counted, search.stopped)


class Search:
    """A depth-first search upward that knows how far each item is from the nearest root."""

    def __init__(
        self,
        parents: Mapping[int, Sequence[int]],
        limits: Mapping[int, int],
        nearest: Mapping[int, int],
        steps: int,
    ) -> None:
        """Take the world and the allowance."""
        self.parents = parents
        self.limits = limits
        self.nearest = nearest
        self.steps = steps
        self.stopped = False

    def of_length(self, path: tuple[int, ...], length: int) -> Iterator[tuple[int, ...]]:
        """Yield the paths of exactly so many steps that end in this one, in no order that matters."""
        done = len(path) - 1
        if done == length:
            if length <= self.limits.get(path[0], 0):
                yield path
            return
        for parent in self.parents.get(path[0], ()):
            self.steps -= 1
            if self.steps < 0:
                self.stopped = True
            if self.stopped:
                return
            if parent not in path and done + 1 + self.nearest.get(parent, length) <= length:
                yield from self.of_length((parent, *path), length)


@dataclass(frozen=True, slots=True)
class Beyond:
    """What lies beyond the limits: smallest hop of an open path and its root, smallest hop of any path.

    `complete` is false where there was too much above the item to look at all of it.
    """

    hop: int | None
    root: int | None
    any_hop: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found about an item: `hop` of the nearest root, and where there is none, what lies `beyond`."""

    number: int
    described: bool
    mentioned: bool
    countries: tuple[CountrySaid, ...]
    classes: Sequence[Said]
    hop: int | None
    cut: tuple[PathStory, ...]
    beyond: Beyond | None


def _reasons_of(findings: Findings, choices: WalkChoices, concept: Concept, tables: GraphTables) -> tuple[Reason, ...]:
    """Give the one reason for being in, or all reasons for being out."""
    out = [
        *_dump_reasons(findings),
        *_name_reasons(findings, choices, concept),
        *_country_reasons(findings, concept),
        *_path_reasons(findings, choices, tables),
    ]
    if out:
        return tuple(out)
    wanted = sorted({c.label or str(c.value) for c in findings.countries if c.counts and c.in_scope})
    reached = counted(findings.hop or 0, "hops")
    return (Reason("artifact", f"it states {' and '.join(wanted)}, and a root reaches it in {reached}"),)


def _dump_reasons(findings: Findings) -> Iterator[Reason]:
    """Say whether the dump knows the item."""
    if not findings.mentioned:
        yield Reason("not-in-the-dump", "the dump neither describes nor mentions it")
    elif not findings.described:
        yield Reason("only-mentioned", "the dump only mentions it, so it states neither a class nor a country")


def _name_reasons(findings: Findings, choices: WalkChoices, concept: Concept) -> Iterator[Reason]:
    """Say whether the concept names the item."""
    if findings.number in choices.limits:
        yield Reason("is-a-root", f"it is a root of {concept.concept}, and roots are never artifacts themselves")
    if findings.number in choices.excluded_items:
        yield Reason("excluded-item", f"{concept.concept} excludes it by name")
    if findings.number in choices.excluded_classes:
        yield Reason("excluded-class", f"it is an excluded class of {concept.concept}")


def _country_reasons(findings: Findings, concept: Concept) -> Iterator[Reason]:
    """Say what is wrong with the countries."""
    stated = findings.countries
    names = " or ".join(concept.country_properties)
    if not findings.described:
        return
    if not stated:
        yield Reason("no-country", f"it has no statement of {names}: it is walked through, like a class")
        return
    valued = [country for country in stated if country.value is not None]
    if not valued:
        snaks = " and ".join(sorted({country.snak for country in stated}))
        yield Reason("country-without-value", f"its statements of {names} are only {snaks}")
    elif not any(country.counts for country in valued):
        kinds = sorted({f"{c.rank}{' and ended' if c.ended else ''}" for c in valued})
        code = "country-deprecated" if all(c.rank == "deprecated" for c in valued) else "country-does-not-count"
        yield Reason(code, f"its statements of {names} with a value do not count: they are {', '.join(kinds)}")
    elif not any(country.counts and country.in_scope for country in valued):
        named = sorted({titled(c.value, c.label) for c in valued if c.counts})
        wanted = "all" if concept.countries == "all" else " ".join(concept.countries)
        yield Reason("country-out-of-scope", f"it states {', '.join(named)}; {concept.concept} wants {wanted}")


def _path_reasons(findings: Findings, choices: WalkChoices, tables: GraphTables) -> Iterator[Reason]:
    """Say why no root reaches the item."""
    if findings.hop or findings.beyond is None or findings.number in choices.limits:
        return
    limits = sorted(set(choices.limits.values()))
    within = f"{limits[0]}" if len(limits) == 1 else f"{limits[0]} to {limits[-1]}"
    beyond = findings.beyond
    if findings.cut:
        yield from _cut_reasons(findings.cut)
    if beyond.hop is not None and beyond.root is not None:
        name = titled(f"Q{beyond.root}", tables.labels([beyond.root])[beyond.root])
        text = f"no open path within {within} hops; the nearest root, {name}, needs {counted(beyond.hop, 'hops')}"
        yield Reason("beyond-the-limit", text)
    elif beyond.any_hop is not None and not findings.cut:
        text = f"no path within {within} hops; the shortest without a limit has {beyond.any_hop}, and all are cut"
        yield Reason("beyond-the-limit", text)
    elif beyond.any_hop is None:
        where = "at any distance" if beyond.complete else "as far as was looked; above it is too much to look at all"
        yield Reason("no-path", f"no path from any root leads to it, {where}{_class_note(findings)}")


def _class_note(findings: Findings) -> str:
    """Say when an item has no class with a value at all."""
    if not findings.described:
        return ""
    if not findings.classes:
        return ": it states no class"
    if all(s.value is None for s in findings.classes):
        return f": its classes are only {' and '.join(sorted({s.snak for s in findings.classes}))}"
    return ""


_CODES = {"excluded": "cut-by-exclusion", "an": "below-an-artifact", "only": "statement-does-not-count"}
"""By the first word of what cuts a step."""


def _cut_reasons(paths: Sequence[PathStory]) -> Iterator[Reason]:
    """Say once for each item what cuts there, with the first path it cuts."""
    told = set()
    for path in paths:
        for step in path.steps:
            if step.cut is not None and (step.qid, step.cut) not in told:
                told.add((step.qid, step.cut))
                way = " > ".join(each.qid for each in path.steps)
                yield Reason(_CODES[step.cut.split()[0]], f"{titled(step.qid, step.label)} cuts {way}: {step.cut}")


_ITEMS_AT_MOST = 300_000
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
    near = _climb(tables, asked.number, concept.follow, choices.edge_mask, levels=choices.most_hops)
    opened = _open_parents(asked.graph, choices, near)
    free = _paths_to(asked.number, opened, choices.limits, show=show)
    cut = cut_paths(asked, near, opened, show=show)
    roots = _root_hops(asked, opened)
    facts, story = tables.facts([number]).get(number), told(asked, cut.paths, near)
    countries = _stated_countries(asked)
    findings = Findings(
        number, facts is not None, asked.graph.find(number) is not None, countries, near.said.get(number, ()),
        roots[0].hop if roots else None, story, None if roots else beyond(asked),
    )  # fmt: skip
    reasons = _reasons_of(findings, choices, concept, tables)
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
            cut = _what_cuts(asked, number, said, artifact=number in artifacts and not last) if position else None
            place = facts[number].place if number in facts else None
            step_said = tuple(StepSaid(s.property, s.rank, s.qualified, s.ended, s.counts) for s in said)
            steps.append(PathStep(f"Q{number}", labels[number], step_said, place, cut))
        is_open = all(step.cut is None for step in steps)
        stories.append(PathStory(f"Q{path[0]}", len(path) - 1, is_open, tuple(steps)))
    return tuple(stories)


def _what_cuts(asked: Asked, number: int, said: Sequence[Said], *, artifact: bool) -> str | None:
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

    return _paths_to(asked.number, _stated_parents(near), asked.choices.limits, show=show, wanted=is_cut)


def _root_hops(asked: Asked, opened: Mapping[int, Sequence[int]]) -> tuple[RootHop, ...]:
    """Say from which roots an open path leads to the item, and how long the shortest is."""
    labels = asked.tables.labels(asked.choices.limits)
    found = []
    for root, limit in asked.choices.limits.items():
        hop = _distances_below(opened, root).get(asked.number)
        if hop and hop <= limit:
            found.append(RootHop(f"Q{root}", labels[root], hop, limit))
    return tuple(sorted(found, key=lambda root: (root.hop, int(root.qid[1:]))))


def beyond(asked: Asked) -> Beyond:
    """Look without a limit: smallest hop and root of an open path, and the smallest hop of any path."""
    every = _climb(asked.tables, asked.number, asked.concept.follow, asked.choices.edge_mask, levels=None)
    nearest, root = _smallest_hop(asked, _open_parents(asked.graph, asked.choices, every))
    return Beyond(nearest, root, _smallest_hop(asked, _stated_parents(every))[0], every.complete)


def _smallest_hop(asked: Asked, parents: Mapping[int, Sequence[int]]) -> tuple[int | None, int | None]:
    """Give the smallest hop from any root, and that root."""
    hops = [(_distances_below(parents, root).get(asked.number), root) for root in sorted(asked.choices.limits)]
    known = [(hop, root) for hop, root in hops if hop]
    return min(known) if known else (None, None)


def _stated_countries(asked: Asked) -> tuple[CountrySaid, ...]:
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


def _climb(tables: GraphTables, item: int, follow: Sequence[str], mask: int, *, levels: int | None) -> Ancestors:
    """Collect statements level by level upward, also those that do not count; None climbs to the top."""
    said: dict[int, tuple[Said, ...]] = {}
    frontier = [item]
    level = 0
    while frontier and level != levels and len(said) <= _ITEMS_AT_MOST:
        fresh: dict[int, list[Said]] = {number: [] for number in frontier}
        for statement in tables.stated(frontier, follow, mask):
            fresh[statement.number].append(statement)
        said |= {number: tuple(statements) for number, statements in fresh.items()}
        frontier = sorted({s.value for own in fresh.values() for s in own if s.value is not None} - said.keys())
        level += 1
    return Ancestors(said, not frontier)


def _stated_parents(ancestors: Ancestors) -> dict[int, tuple[int, ...]]:
    """Give the items that each one points to with a value, whether a walk may take the step or not."""
    return {number: _unique(own) for number, own in ancestors.said.items()}


def _open_parents(graph: Graph, choices: WalkChoices, ancestors: Ancestors) -> dict[int, tuple[int, ...]]:
    """Keep the steps a walk takes: by statements that count, not into an excluded class, not below an artifact.

    Below artifacts a walk goes on where the concept expands them. A root that is itself excluded is still walked from,
    and not through.
    """
    above = sorted({s.value for own in ancestors.said.values() for s in own if s.value is not None})
    artifacts = choices.is_artifact(graph, np.array(above, np.uint32)) & (not choices.expand_artifacts)
    closed = {number for number, artifact in zip(above, artifacts.tolist(), strict=True) if artifact}
    closed |= choices.excluded_classes - choices.limits.keys()
    return {
        number: tuple(parent for parent in _unique([s for s in own if s.counts]) if parent not in closed)
        for number, own in ancestors.said.items()
        if number not in choices.excluded_classes
    }


def _unique(statements: Sequence[Said]) -> tuple[int, ...]:
    """Give the values of statements, once each, in ascending order."""
    return tuple(sorted({s.value for s in statements if s.value is not None}))
