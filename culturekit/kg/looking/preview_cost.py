"""What would explode in a preview, and what it would cost to have a language model filter the candidates."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.kg.graph_tables import GraphTables
from culturekit.kg.store import Graph
from culturekit.kg.walk.levels import Level, through

__all__ = ["Explosion", "FilterCost", "explosions", "filter_cost"]

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


BYTES_PER_TOKEN = 4
"""UTF-8 bytes per token, roughly, for English text and JSON; scripts beyond Latin come closer to 3."""

BASIS = (
    "1 request per candidate and country in scope, 4 UTF-8 bytes per token, nothing for what a provider adds; rules "
    "may drop some before"
)
EMPTY_DATA = '{"id":"","label":"","description":"","concept":"","roots":[],"classes":[],"country":""}'
QID_MARKS = 4
"""The letter Q, two quotes and a comma around the digits."""
REPLY = '{"id":"Q","verdict":"remove"}'


@dataclass(frozen=True, slots=True)
class FilterCost:
    """An estimate of `cspace filter`; `price` is None where no prices were given."""

    requests: int
    input_tokens: int
    output_tokens: int
    basis: str
    price: float | None


def filter_cost(
    tables: GraphTables,
    concept: str,
    candidates: NDArray[np.uint32],
    countries: int,
    *,
    wording: str,
    prices: tuple[float, float] | None = None,
) -> FilterCost:
    """Estimate tokens from the wording, the labels and descriptions, and the QIDs that go with each candidate.

    `countries` is how many countries in scope the candidates state together, each of which is asked about; `prices` are
    per million tokens, in and out. What is told of a candidate counts once a country, at the mean of all candidates.
    """
    wanted = pl.LazyFrame({"number": candidates}, schema={"number": pl.UInt32})
    texts = tables.items.join(wanted, on="number", how="semi").select(
        pl.col("label", "description").str.len_bytes().fill_null(0).cast(pl.UInt64).sum()
    )
    classes = tables.statements.filter(
        pl.col("property") == "P31", pl.col("rank") != "deprecated", pl.col("value").is_not_null()
    ).join(wanted, on="number", how="semi")
    digits = classes.select(pl.col("value").cast(pl.String).str.len_bytes().cast(pl.UInt64).sum(), n=pl.len())
    (label_bytes, description_bytes), (class_digits, n_classes) = (
        each.collect(engine="streaming").row(0) for each in (texts, digits)
    )
    own_digits = int(np.char.str_len(candidates.astype(str)).sum()) if len(candidates) else 0
    own = own_digits + class_digits + QID_MARKS * n_classes + label_bytes + description_bytes
    constant = len(wording.encode()) + len(EMPTY_DATA) + len(concept) + QID_MARKS + 3
    share = countries / max(1, len(candidates))
    sent = constant * countries + int(own * share)
    answered = len(REPLY) * countries + int(own_digits * share)
    tokens = (-(-sent // BYTES_PER_TOKEN), -(-answered // BYTES_PER_TOKEN))
    price = sum(count * each / 1e6 for count, each in zip(tokens, prices, strict=True)) if prices else None
    return FilterCost(countries, *tokens, BASIS, price)
