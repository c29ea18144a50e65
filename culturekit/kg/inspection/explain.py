"""Explain why an item is an artifact of a concept, or why not: every path, every statement, every line of the dump."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from culturekit.core.errors import counted
from culturekit.kg.concepts import COUNTRY_PROPERTIES, Concept
from culturekit.kg.countries import number_of_item
from culturekit.kg.store import DumpPosition, Graph, GraphTables, StatementFacts, load_graph, titled
from culturekit.kg.walk import artifacts_among

# What is answered; the fields are those of `--json`.


@dataclass(frozen=True, slots=True)
class StepStatement:
    """A statement that makes a step; `counts` is false for one that a walk does not follow."""

    property: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool

    def __str__(self) -> str:
        """Write property, rank, and what is special about it."""
        marks = [self.rank, *["qualified"] * self.qualified, *["ended"] * self.ended]
        return f"{self.property} ({', '.join([*marks, *['does not count'] * (not self.counts)])})"


@dataclass(frozen=True, slots=True)
class PathStep:
    """An item on a path: what it says of the one before it, where the dump says so, and what closes the step."""

    qid: str
    label: str | None
    said: tuple[StepStatement, ...]
    place: DumpPosition | None
    cut: str | None

    def __str__(self) -> str:
        """Write the item, its statements and its line."""
        stated = f"  by {'; '.join(map(str, self.said))}" if self.said else ""
        position = f"  [{self.place or 'only mentioned in the dump'}]"
        return f"{titled(self.qid, self.label)}{stated}{position}{f'  CUT: {self.cut}' if self.cut else ''}"


@dataclass(frozen=True, slots=True)
class ExplainedPath:
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
class CountryStatement:
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

    def __str__(self) -> str:
        """Write the country, how it is stated, and whether it is in scope."""
        value = titled(self.value, self.label) if self.value else self.snak
        stated = StepStatement(self.property, self.rank, self.qualified, self.ended, self.counts)
        return f"{value} by {stated}{'' if self.in_scope or self.value is None else ', out of scope'}"


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
    place: DumpPosition | None
    concept: str
    verdict: Literal["in", "out"]
    reasons: tuple[Reason, ...]
    roots: tuple[RootHop, ...]
    countries: tuple[CountryStatement, ...]
    open_paths: int
    more_open_paths: bool
    cut_paths: int
    more_cut_paths: bool
    paths: tuple[ExplainedPath, ...]

    def headline(self, name: str) -> str:
        """Write the verdict in a sentence."""
        return f"{name} is {'' if self.verdict == 'in' else 'not '}an artifact of {self.concept}"


def explain_lines(found: Explanation) -> Iterator[str]:
    """Write an explanation in lines: the verdict and its reasons first, then roots, countries and paths."""
    yield found.headline(titled(found.qid, found.label))
    yield from (f"  because {reason.text}" for reason in found.reasons)
    if found.description:
        yield f"described as  {found.description}"
    if found.place:
        yield f"in the dump   {found.place}"
    for root in found.roots:
        yield f"root          {titled(root.qid, root.label)} at hop {root.hop} of {root.limit}"
    yield from (f"country       {country}" for country in found.countries)
    opened, cut = (
        f"{'at least ' * more}{count:,}"
        for count, more in ((found.open_paths, found.more_open_paths), (found.cut_paths, found.more_cut_paths))
    )
    shown = len(found.paths)
    rest = "" if shown == found.open_paths + found.cut_paths else f", of which {shown} are shown"
    yield f"paths         {opened} open and {cut} cut within the limits of their roots{rest}"
    for number, path in enumerate(found.paths, 1):
        yield f"path {number}: {counted(path.hop, 'hops')}, {'open' if path.open else 'cut'}"
        yield from (f"  {step}" for step in path.steps)


def explain(
    folder: Path, qid: str, concept: Concept, *, successors: Mapping[int, int] = MappingProxyType({}), show: int = 20
) -> Explanation:
    """Explain what Algorithm 1 makes of an item; at most `show` paths are written out, open ones first.

    `successors` says by QID number which country has taken the place of which.
    """
    number, tables = number_of_item(qid), GraphTables(folder)
    asked = _Question(load_graph(folder), tables, number, concept)
    near = asked.climb(levels=max(concept.limits.values()))
    opened, stated = asked.open_parents(near), asked.stated_parents(near)

    def is_cut(path: tuple[int, ...]) -> bool:
        return any(parent not in opened.get(child, ()) for parent, child in pairwise(path))

    free = _paths_to(number, opened, concept.limits, show=show)
    cut = _paths_to(number, stated, concept.limits, show=show, wanted=is_cut)
    cut_paths, facts = asked.written_out(cut.paths, near), tables.facts([number]).get(number)
    roots = asked.root_hops(opened)
    countries = asked.countries(successors)
    reasons: tuple[Reason, ...] = tuple(_reasons_out(asked, countries, described=facts is not None))
    if not roots and number not in concept.limits:
        reasons += tuple(_path_reasons(asked, cut_paths, near.stated.get(number, ()), described=facts is not None))
    if not reasons:
        wanted = sorted({c.label or str(c.value) for c in countries if c.counts and c.in_scope})
        hops = counted(roots[0].hop, "hops")
        reasons = (Reason("artifact", f"it states {' and '.join(wanted)}, and a root reaches it in {hops}"),)
    return Explanation(
        qid=qid, label=facts.label if facts else None, description=facts.description if facts else None,
        place=facts.place if facts else None, concept=concept.concept,
        verdict="in" if reasons[0].code == "artifact" else "out", reasons=reasons, roots=roots,
        countries=countries, open_paths=free.counted, more_open_paths=free.more, cut_paths=cut.counted,
        more_cut_paths=cut.more, paths=(*asked.written_out(free.paths, near), *cut_paths[: show - len(free.paths)]),
    )  # fmt: skip


_Parents: TypeAlias = Mapping[int, Sequence[int]]

_ITEMS_AT_MOST = 300_000  # above so many items a climb stops and says so; classes of a class in Wikidata are far fewer


class _Ancestors(NamedTuple):
    """The statements of an item and of what is above it, by item; `complete` when all levels were climbed."""

    stated: Mapping[int, tuple[StatementFacts, ...]]
    complete: bool


@dataclass(frozen=True, slots=True)
class _Question:
    """An item, a concept, and the graph to look at."""

    graph: Graph
    tables: GraphTables
    number: int
    concept: Concept

    def climb(self, *, levels: int | None) -> _Ancestors:
        """Collect statements level by level upward, also those that do not count; None climbs to the top."""
        concept = self.concept
        stated: dict[int, tuple[StatementFacts, ...]] = {}
        frontier = [self.number]
        level = 0
        while frontier and level != levels and len(stated) <= _ITEMS_AT_MOST:
            fresh: dict[int, list[StatementFacts]] = {number: [] for number in frontier}
            for statement in self.tables.stated(frontier, concept.follow, concept.edge_mask):
                fresh[statement.number].append(statement)
            stated |= {number: tuple(statements) for number, statements in fresh.items()}
            frontier = sorted({value for each in fresh.values() for value in _values(each)} - stated.keys())
            level += 1
        return _Ancestors(stated, not frontier)

    def stated_parents(self, ancestors: _Ancestors) -> _Parents:
        """Give the items that each one points to with a value, whether a walk may take the step or not."""
        return {number: _values(each) for number, each in ancestors.stated.items()}

    def open_parents(self, ancestors: _Ancestors) -> _Parents:
        """Keep the steps a walk takes: by statements that count, not into an excluded class, not below an artifact.

        Below artifacts a walk goes on where the concept expands them. A root that is itself excluded is still walked
        from, and not through.
        """
        concept = self.concept
        above = {value for each in ancestors.stated.values() for value in _values(each)}
        closed = set() if concept.expand_artifacts else artifacts_among(self.graph, concept, above)
        closed |= concept.excluded_classes - concept.limits.keys()
        return {
            number: [parent for parent in _values(s for s in each if s.counts) if parent not in closed]
            for number, each in ancestors.stated.items()
            if number not in concept.excluded_classes
        }

    def root_hops(self, opened: _Parents) -> tuple[RootHop, ...]:
        """Say from which roots an open path leads to the item, and how long the shortest is."""
        labels = self.tables.labels(self.concept.limits)
        hops = {root: _distances_below(opened, root).get(self.number) for root in self.concept.limits}
        found = sorted((hop, root) for root, hop in hops.items() if hop and hop <= self.concept.limits[root])
        return tuple(RootHop(f"Q{root}", labels[root], hop, self.concept.limits[root]) for hop, root in found)

    def nearest(self, parents: _Parents) -> tuple[int, int | None]:
        """Give the smallest hop from a root, without a limit, and the root; 0 and None where none leads here."""
        hops = ((_distances_below(parents, root).get(self.number), root) for root in self.concept.limits)
        return min(((hop, root) for hop, root in hops if hop), default=(0, None))

    def countries(self, successors: Mapping[int, int]) -> tuple[CountryStatement, ...]:
        """List the countries that the item states."""
        concept = self.concept
        stated = self.tables.stated([self.number], concept.country_properties, concept.country_mask)
        labels = self.tables.labels(_values(stated))
        first = "P495" if concept.country_choice == "P495-first" else None
        first_only = any(s.counts and s.property == first for s in stated)
        named: dict[int | None, tuple[str | None, str | None]] = {n: (f"Q{n}", label) for n, label in labels.items()}
        wanted = {value for value in labels if concept.scope is None or successors.get(value, value) in concept.scope}
        return tuple(
            CountryStatement(
                s.property, *named.get(s.value, (None, None)), s.snak, s.rank, s.qualified, s.ended,
                counts=s.counts and (s.property == first or not first_only), in_scope=s.value in wanted,
            )
            for s in stated
        )  # fmt: skip

    def written_out(self, paths: Sequence[tuple[int, ...]], near: _Ancestors) -> tuple[ExplainedPath, ...]:
        """Write out paths, each a tuple of item numbers, root first, with their statements."""
        numbers = {number for path in paths for number in path}
        artifacts = set() if self.concept.expand_artifacts else artifacts_among(self.graph, self.concept, numbers)
        facts, labels = self.tables.facts(numbers), self.tables.labels(numbers)

        def step_of(number: int, before: int | None, last: int) -> PathStep:
            stated = [s for s in near.stated.get(number, ()) if before is not None and s.value == before]
            shown = tuple(StepStatement(s.property, s.rank, s.qualified, s.ended, s.counts) for s in stated)
            on_way = number in artifacts and number != last
            cut = None if before is None else self._what_cuts(number, stated, artifact=on_way)
            position = facts[number].place if number in facts else None
            return PathStep(f"Q{number}", labels[number], shown, position, cut)

        written = []
        for path in paths:
            steps = tuple(step_of(number, before, path[-1]) for before, number in pairwise((None, *path)) if number)
            written.append(ExplainedPath(f"Q{path[0]}", len(path) - 1, all(step.cut is None for step in steps), steps))
        return tuple(written)

    def _what_cuts(self, number: int, stated: Sequence[StatementFacts], *, artifact: bool) -> str | None:
        """Say what keeps a walk from coming to an item, or from going on below it."""
        if not any(s.counts for s in stated):
            ranks = sorted({f"{s.rank}{', ended' if s.ended else ''}" for s in stated})
            return f"only statements that do not count ({'; '.join(ranks)})"
        if number in self.concept.excluded_classes:
            return "excluded class"
        if artifact:
            countries = self.tables.stated([number], COUNTRY_PROPERTIES, self.concept.country_mask)
            labels = self.tables.labels(_values(s for s in countries if s.counts))
            return f"an artifact itself (country {', '.join(titled(f'Q{n}', label) for n, label in labels.items())})"
        return None


def _values(statements: Iterable[StatementFacts]) -> tuple[int, ...]:
    """Give the values of statements, once each, in ascending order."""
    return tuple(sorted({s.value for s in statements if s.value is not None}))


_PATHS_AT_MOST = 10_000  # how many paths are counted before it says `more`
_STEPS_AT_MOST = 400_000  # how many steps a search takes before it says `more`: about a second


class _PathCount(NamedTuple):
    """The first paths, root first, and how many were counted; `more` says that counting was stopped."""

    paths: tuple[tuple[int, ...], ...]
    counted: int
    more: bool


def _distances_below(parents: _Parents, root: int) -> dict[int, int]:
    """Give the smallest number of steps from a root down to each item that has it above."""
    children: dict[int, list[int]] = {}
    for child, above in parents.items():
        for parent in above:
            children.setdefault(parent, []).append(child)
    distances = {root: 0}
    queue = [root]
    for parent in queue:
        for child in children.get(parent, ()):
            if child not in distances:
                distances[child] = distances[parent] + 1
                queue.append(child)
    return distances


def _paths_to(
    item: int,
    parents: _Parents,
    limits: Mapping[int, int],
    *,
    show: int,
    wanted: Callable[[tuple[int, ...]], bool] = lambda path: True,
) -> _PathCount:
    """Count the wanted paths from roots to an item, each within the limit of its root, and keep the first `show`.

    No item stands twice on a path. Shorter paths come first, on ties the smaller numbers from the root on.
    """
    nearest: dict[int, int] = {}  # how far each item is from the nearest root
    for root in limits:
        for node, distance in _distances_below(parents, root).items():
            nearest[node] = min(distance, nearest.get(node, distance))
    shown: list[tuple[int, ...]] = []
    counted = steps = 0

    def upward(path: tuple[int, ...], length: int) -> Iterator[tuple[int, ...]]:
        """Yield the paths of exactly so many steps that end in this one, in no order that matters."""
        nonlocal steps
        if len(path) > length:
            if length <= limits.get(path[0], 0):
                yield path
            return
        for parent in parents.get(path[0], ()):
            steps += 1
            if steps > _STEPS_AT_MOST or counted >= _PATHS_AT_MOST:
                return
            if parent not in path and len(path) + nearest.get(parent, length) <= length:
                yield from upward((parent, *path), length)

    for length in range(1, max(limits.values(), default=0) + 1):
        found = []
        for path in filter(wanted, upward((item,), length)):
            counted += 1
            found.append(path)
        shown += sorted(found)[: show - len(shown)]
        if steps > _STEPS_AT_MOST or counted >= _PATHS_AT_MOST:
            return _PathCount(tuple(shown), counted, more=True)
    return _PathCount(tuple(shown), counted, more=False)


def _reasons_out(asked: _Question, countries: Sequence[CountryStatement], *, described: bool) -> Iterator[Reason]:
    """Give the reasons that lie in the item why it is no artifact; paths may be more."""
    number, concept = asked.number, asked.concept
    if asked.graph.find(number) is None:
        yield Reason("not-in-the-dump", "the dump neither describes nor mentions it")
    elif not described:
        yield Reason("only-mentioned", "the dump only mentions it, so it states neither a class nor a country")
    if number in concept.limits:
        yield Reason("is-a-root", f"it is a root of {concept.concept}, and roots are never artifacts themselves")
    if number in concept.excluded_items:
        yield Reason("excluded-item", f"{concept.concept} excludes it by name")
    if number in concept.excluded_classes:
        yield Reason("excluded-class", f"it is an excluded class of {concept.concept}")
    if described:
        yield from _country_reasons(countries, concept)


def _country_reasons(stated: Sequence[CountryStatement], concept: Concept) -> Iterator[Reason]:
    """Say what is wrong with the countries."""
    names = " or ".join(concept.country_properties)
    valued = [country for country in stated if country.value is not None]
    if not stated:
        yield Reason("no-country", f"it has no statement of {names}: it is walked through, like a class")
    elif not valued:
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


# The code of a reason by the first word of what cuts a step.
_CODES = {"excluded": "cut-by-exclusion", "an": "below-an-artifact", "only": "statement-does-not-count"}


def _path_reasons(
    asked: _Question, cut: Sequence[ExplainedPath], classes: Sequence[StatementFacts], *, described: bool
) -> Iterator[Reason]:
    """Say why no root reaches the item: what cuts first, once for each step with the first path it cuts."""
    first: dict[tuple[str, str], Reason] = {}
    for path in cut:
        for step in path.steps:
            if step.cut is not None:
                way = " > ".join(each.qid for each in path.steps)
                text = f"{titled(step.qid, step.label)} cuts {way}: {step.cut}"
                first.setdefault((step.qid, step.cut), Reason(_CODES[step.cut.split()[0]], text))
    yield from first.values()
    limits = sorted(set(asked.concept.limits.values()))
    within = f"{limits[0]}" if len(limits) == 1 else f"{limits[0]} to {limits[-1]}"
    every = asked.climb(levels=None)
    (hop, root), (any_hop, _) = map(asked.nearest, (asked.open_parents(every), asked.stated_parents(every)))
    if root is not None:
        name = titled(f"Q{root}", asked.tables.labels([root])[root])
        text = f"no open path within {within} hops; the nearest root, {name}, needs {counted(hop, 'hops')}"
        yield Reason("beyond-the-limit", text)
    elif any_hop and not cut:
        text = f"no path within {within} hops; the shortest without a limit has {any_hop}, and all are cut"
        yield Reason("beyond-the-limit", text)
    elif not any_hop:
        where = "at any distance" if every.complete else "as far as was looked; above it is too much to look at all"
        note = ""
        if described and not classes:
            note = ": it states no class"
        elif described and all(s.value is None for s in classes):
            note = f": its classes are only {' and '.join(sorted({s.snak for s in classes}))}"
        yield Reason("no-path", f"no path from any root leads to it, {where}{note}")
