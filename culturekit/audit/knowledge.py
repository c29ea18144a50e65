"""What is known besides the file: a cultural space or a graph to hold it against, a tokenizer, vectors."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from culturekit.audit.folding import fold, item_of, tidy
from culturekit.audit.prompt_slips import frames
from culturekit.audit.sheet import Sheet
from culturekit.builders.space.space_files import read_space
from culturekit.kg.concepts import Concept, load_concept, shipped_concepts
from culturekit.kg.countries import by_qid
from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of

__all__ = ["Knowledge", "Source", "known_from_graph", "known_from_space"]

NUMBERS = 2**32


@dataclass(frozen=True, slots=True)
class Source:
    """What one source says of items and names: the concepts they belong to, and the countries."""

    name: str
    concepts_of_item: Mapping[str, frozenset[str]] = field(default_factory=dict)
    countries_of_item: Mapping[str, frozenset[str]] = field(default_factory=dict)
    concepts_of_name: Mapping[str, frozenset[str]] = field(default_factory=dict)
    name_of_item: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything that checks may ask besides the file.

    `count_tokens` is exact where `tokens_are_exact`; `near_artifacts` are pairs whose vectors nearly agree.
    """

    sources: Sequence[Source]
    count_tokens: Callable[[str], int]
    tokens_are_exact: bool
    near_artifacts: Mapping[tuple[str, str], float] = field(default_factory=dict)


def known_from_space(path: Path) -> Source:
    """Read what a cultural space says."""
    space, _ = read_space(path)
    concepts: dict[str, set[str]] = {}
    places: dict[str, set[str]] = {}
    named: dict[str, set[str]] = {}
    names: dict[str, str] = {}
    for artifact, name, concept, country in space.select("artifact_id", "name", "concept", "country").iter_rows():
        concepts.setdefault(artifact, set()).add(concept)
        places.setdefault(artifact, set()).add(country)
        named.setdefault(fold(name), set()).add(concept)
        names.setdefault(artifact, name)
    return Source(str(path), frozen(concepts), frozen(places), frozen(named), names)


def frozen(sets: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """Close sets that have been filled."""
    return {key: frozenset(values) for key, values in sets.items()}


def known_from_graph(folder: Path, sheet: Sheet) -> Source:
    """Look up what a graph says of the items of a file, and of items that are called as its names are."""
    tables = GraphTables(folder)
    items = {int(item[1:]) for row in sheet.rows if (item := item_of(sheet, row)) and int(item[1:]) < NUMBERS}
    called = items_called(tables, names_in(sheet))
    numbers = items | {number for numbers in called.values() for number in numbers}
    parents = parents_of(tables, numbers, levels=max(most_hops(concept) for concept in shipped()))
    concepts: dict[str, set[str]] = {}
    for concept in shipped():
        for number in reached(concept, parents) & numbers:
            concepts.setdefault(f"Q{number}", set()).add(concept.concept)
    by_name = {
        name: {each for number in numbers for each in concepts.get(f"Q{number}", ())}
        for name, numbers in called.items()
    }
    labels = {number: label for number, label in tables.labels(items).items() if label}
    return Source(
        str(folder),
        frozen(concepts),
        frozen(countries_of(tables, items)),
        frozen({name: found for name, found in by_name.items() if found}),
        {f"Q{number}": label for number, label in labels.items()} if not sheet.has("name") else {},
    )


def shipped() -> Iterator[Concept]:
    """Load the shipped concepts."""
    return map(load_concept, shipped_concepts())


def most_hops(concept: Concept) -> int:
    """Give the longest way from any root of a concept."""
    return max(concept.hops_of(root) for root in concept.roots)


def names_in(sheet: Sheet) -> set[str]:
    """List the names of a file, also those that only its prompts say, folded."""
    names = {fold(sheet.text(row, "name")) for row in sheet.rows}
    for row in sheet.rows:
        text = tidy(sheet.text(row, "prompt"))
        names |= {fold(slots.name) for frame in frames() if text and (slots := frame.read(text))}
    return names - {""}


def items_called(tables: GraphTables, names: Iterable[str]) -> dict[str, set[int]]:
    """Find the items whose labels are among names; case aside."""
    wanted = pl.Series("folded", sorted(set(names)), dtype=pl.String)
    rows = (
        tables.items.select("number", "label", folded=pl.col("label").str.to_lowercase())
        .filter(pl.col("folded").is_in(wanted.implode()))
        .collect(engine="streaming")
    )
    found: dict[str, set[int]] = {}
    for number, label in rows.select("number", "label").iter_rows():
        found.setdefault(fold(label), set()).add(number)
    return found


def parents_of(tables: GraphTables, numbers: set[int], *, levels: int) -> dict[int, set[int]]:
    """Collect the classes above items, so many levels of them."""
    mask = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
    parents: dict[int, set[int]] = {}
    frontier = set(numbers)
    for _ in range(levels):
        if not frontier:
            break
        parents |= {number: set() for number in frontier}
        for said in tables.stated(sorted(frontier), EDGE_PROPERTIES, mask):
            if said.counts and said.value is not None:
                parents[said.number].add(said.value)
        frontier = {parent for number in frontier for parent in parents[number]} - parents.keys()
    return parents


def reached(concept: Concept, parents: Mapping[int, set[int]]) -> set[int]:
    """Walk from the roots of a concept to what lies below them, through no class that it excludes."""
    children: dict[int, set[int]] = {}
    for number, above in parents.items():
        for parent in above:
            children.setdefault(parent, set()).add(number)
    closed = {int(qid[1:]) for qid in concept.exclude.classes}
    found: set[int] = set()
    for root in concept.roots:
        frontier, seen = {int(root.qid[1:])}, {int(root.qid[1:])}
        for _ in range(concept.hops_of(root)):
            frontier = {child for number in frontier for child in children.get(number, ())} - seen - closed
            seen |= frontier
        found |= seen - {int(root.qid[1:])}
    return found - {int(qid[1:]) for qid in concept.exclude.items}


def countries_of(tables: GraphTables, items: set[int]) -> dict[str, set[str]]:
    """Look up the countries that items state, as ISO codes; countries that are not known say nothing."""
    known = by_qid()
    found: dict[str, set[str]] = {}
    for said in tables.stated(sorted(items), COUNTRY_PROPERTIES, mask_of(COUNTRY_PROPERTIES, COUNTRY_PROPERTIES)):
        if said.counts and (country := known.get(f"Q{said.value}")) is not None:
            found.setdefault(f"Q{said.number}", set()).add(country.iso)
    return found
