"""What stands above an item: its classes, their classes, and so on, with the statements that say so."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from culturekit.kg.graph_tables import GraphTables, Said
from culturekit.kg.store import Graph
from culturekit.kg.walk.walk_choices import WalkChoices

__all__ = ["Ancestors", "climb", "open_parents", "stated_parents"]

ITEMS_AT_MOST = 300_000
"""Above so many items a climb stops and says so; all classes of a class in Wikidata are far fewer."""


@dataclass(frozen=True, slots=True)
class Ancestors:
    """The statements of an item and of what is above it, by item; `complete` when all levels were climbed."""

    said: Mapping[int, tuple[Said, ...]]
    complete: bool


def climb(tables: GraphTables, item: int, follow: Sequence[str], mask: int, *, levels: int | None) -> Ancestors:
    """Collect statements level by level upward, also those that do not count; None climbs to the top."""
    said: dict[int, tuple[Said, ...]] = {}
    frontier = [item]
    level = 0
    while frontier and level != levels and len(said) <= ITEMS_AT_MOST:
        fresh: dict[int, list[Said]] = {number: [] for number in frontier}
        for statement in tables.said(frontier, follow, mask):
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
