"""Hops at which a root suddenly reaches far more, and the classes through which most of it comes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.store import Graph
from culturekit.kg.walk.levels import Level, through

__all__ = ["Explosion", "Share", "explosions"]

MOST = 0.5
"""A class is named while at least this share of the new artifacts comes through it."""


@dataclass(frozen=True, slots=True)
class Share:
    """A class on the way, and how many of the new artifacts come through it."""

    qid: str
    label: str | None
    artifacts: int


@dataclass(frozen=True, slots=True)
class Explosion:
    """A hop that multiplies the artifacts of a root; `by` are the classes on the way of most of them, from above."""

    hop: int
    before: int
    artifacts: int
    by: tuple[Share, ...]


def explosions(
    graph: Graph, tables: GraphTables, levels: Sequence[Level], *, factor: float, least: int
) -> tuple[Explosion, ...]:
    """Find the hops after which there are more than `factor` times as many artifacts, and at least `least` new ones.

    Artifacts of all countries are counted: a scope hides an explosion, and does not undo it. The first hop grows from
    nothing and is never one.
    """
    found = []
    before = 0
    for hop, level in enumerate(levels[1:], 1):
        new = len(level.artifacts)
        if hop > 1 and new >= least and before + new > factor * max(before, 1):
            found.append(Explosion(hop, before, new, heaviest_way(graph, tables, levels, hop)))
        before += new
    return tuple(found)


def heaviest_way(graph: Graph, tables: GraphTables, levels: Sequence[Level], hop: int) -> tuple[Share, ...]:
    """Follow the heaviest class from level to level, below the root, while most artifacts come through it."""
    counts = through(levels, hop)
    total = len(levels[hop].artifacts)
    way: list[tuple[int, int]] = []
    place = 0
    for level in range(1, hop):
        below = levels[level].walked_above == place
        own = np.where(below, counts[level], 0)
        place = int(own.argmax()) if len(own) else 0
        if len(own) == 0 or own[place] < MOST * total:
            break
        way.append((int(graph.nodes[levels[level].walked[place]]), int(own[place])))
    labels = tables.labels(number for number, _ in way)
    return tuple(Share(f"Q{number}", labels[number], count) for number, count in way)
