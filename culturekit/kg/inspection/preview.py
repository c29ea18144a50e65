"""What a concept would find, before it is extracted: counts, samples, explosions, and the cost of filtering."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.errors import UsageError
from culturekit.core.stage_command import Seed, Typed
from culturekit.kg.concepts import COUNTRY_PROPERTIES, Concept
from culturekit.kg.store import Graph, GraphTables, counted_values, load_graph
from culturekit.kg.walk.walk import Level, Marks, WalkChoices, choices_of, country_key, through, walk_levels

# What would explode in a preview, and what it would cost to have a language model filter the candidates.

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


OUT_OF_SCOPE = "out of scope"


@dataclass(frozen=True, slots=True)
class PreviewOptions:
    """How to walk and how much to show; `factor` and `least` say what an explosion is."""

    samples: Annotated[int, Field(ge=0, description="Artifacts to draw for each root, hop and country.")] = 20
    seed: Seed = 0
    factor: Annotated[
        float,
        Field(ge=1, description="A hop explodes when it leaves more than so many times the artifacts before it."),
        Typed("explosion-factor"),
    ] = 5.0
    least: Annotated[int, Field(ge=1, description="And when it brings at least so many."), Typed("explosion-least")] = (
        100
    )


@dataclass(frozen=True, slots=True)
class Cell:
    """The artifacts of one root, hop and country; an artifact of several countries is in the cell of each."""

    country: str
    count: int
    sample: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class HopPreview:
    """What one hop reaches: classes walked through, artifacts, and of these those of wanted countries."""

    hop: int
    walked: int
    artifacts: int
    in_scope: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class RootPreview:
    """What one root reaches; `found` is false where the graph never mentions it."""

    qid: str
    label: str | None
    limit: int
    found: bool
    hops: tuple[HopPreview, ...]
    explosions: tuple[Explosion, ...]


@dataclass(frozen=True, slots=True)
class Preview:
    """What a concept would find: candidates are counted once each, however many roots reach them."""

    concept: str
    seed: int
    candidates: int
    out_of_scope: int
    roots: tuple[RootPreview, ...]
    cost: FilterCost


def preview(
    folder: Path,
    concept: Concept,
    *,
    wording: str,
    options: PreviewOptions = PreviewOptions(),
    prices: tuple[float, float] | None = None,
    successors: Mapping[int, int] = MappingProxyType({}),
) -> Preview:
    """Walk from every root; `wording` is what a judge would be told, `prices` are per million tokens in and out."""
    tables, graph = GraphTables(folder), load_graph(folder)
    choices = choices_of(concept)
    marks = Marks.of_graph(graph, choices)
    levels: dict[int, list[Level]] = {}
    for number, limit in choices.limits.items():
        node = graph.find(number)
        levels[number] = [] if node is None else walk_levels(graph, node, limit, choices, marks)
    if not any(levels.values()):
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            where=str(folder),
            found=" ".join(f"Q{number}" for number in levels),
        )
    countries = Countries.look_up(
        tables, graph, choices, [level for own in levels.values() for level in own], successors
    )
    labels = tables.labels(choices.limits)
    roots = [
        RootPreview(
            f"Q{number}",
            labels[number],
            limit,
            bool(levels[number]),
            hop_previews(graph, number, levels[number], countries, options),
            explosions(graph, tables, levels[number], factor=options.factor, least=options.least),
        )
        for number, limit in choices.limits.items()
    ]
    numbers, stated = countries.in_scope()
    return Preview(
        concept.concept,
        options.seed,
        len(numbers),
        countries.artifacts - len(numbers),
        labelled(roots, tables),
        filter_cost(tables, concept.concept, numbers, stated, wording=wording, prices=prices),
    )


@dataclass(frozen=True, slots=True)
class Countries:
    """The countries that artifacts state: `rows` has number and country, once each; `scope` None takes all."""

    rows: pl.DataFrame
    scope: frozenset[int] | None
    excluded: frozenset[int]
    artifacts: int

    @classmethod
    def look_up(
        cls,
        tables: GraphTables,
        graph: Graph,
        choices: WalkChoices,
        levels: Sequence[Level],
        successors: Mapping[int, int],
    ) -> "Countries":
        """Look up the countries of everything that was reached."""
        reached = np.zeros(len(graph.nodes), np.bool_)
        for level in levels:
            reached[level.artifacts] = True
        numbers = numbers_of(graph, np.flatnonzero(reached), choices.excluded_items)
        wanted = pl.LazyFrame({"number": numbers}, schema={"number": pl.UInt32})
        said = tables.statements.filter(pl.col("property").is_in(list(COUNTRY_PROPERTIES))).select(
            "number", "property", "value", "rank", "ended"
        )
        near = said.join(wanted, on="number", how="semi").collect(engine="streaming")
        rows = chosen_countries(counted_values(near, COUNTRY_PROPERTIES, choices.country_mask), choices, successors)
        return cls(rows, choices.countries, choices.excluded_items, len(numbers))

    def in_scope(self) -> tuple[NDArray[np.uint32], int]:
        """Give the artifacts of wanted countries, and how many of these countries they state together."""
        inside = self.rows if self.scope is None else self.rows.filter(pl.col("country").is_in(sorted(self.scope)))
        numbers = inside["number"].unique().sort()
        return numbers.to_numpy(), inside.height


def chosen_countries(stated: pl.DataFrame, choices: WalkChoices, successors: Mapping[int, int]) -> pl.DataFrame:
    """Give number and country, once each: of the first property where it has one, successors for those gone."""
    first = choices.first_country_property
    if first is not None:
        own = pl.col("property") == first
        stated = stated.filter(own | ~own.any().over("number"))
    rows = stated.select("number", country=pl.col("value").replace(dict(successors)))
    ordered = rows.sort("number", "country")
    repeated = (pl.col("number") == pl.col("number").shift()) & (pl.col("country") == pl.col("country").shift())
    return ordered.filter(~repeated.fill_null(value=False))


def numbers_of(graph: Graph, nodes: NDArray[np.signedinteger], excluded: frozenset[int]) -> NDArray[np.uint32]:
    """Give the item numbers of nodes, without the excluded items."""
    numbers = np.asarray(graph.nodes[nodes], np.uint32)
    return numbers[~np.isin(numbers, np.array(sorted(excluded), np.uint32))]


def hop_previews(
    graph: Graph, root: int, levels: Sequence[Level], countries: Countries, options: PreviewOptions
) -> tuple[HopPreview, ...]:
    """Count one root hop by hop."""
    previews = []
    for hop, level in enumerate(levels[1:], 1):
        numbers = numbers_of(graph, level.artifacts, countries.excluded)
        rows = countries.rows.join(pl.DataFrame({"number": numbers}), on="number", how="semi")
        cells = country_cells(rows, countries.scope)
        told = tuple(
            Cell(key, len(members), sample_of(members, [options.seed, root, hop, *key.encode()], options.samples))
            for key, members in cells.items()
        )
        in_scope = len(numbers) - len(cells.get(OUT_OF_SCOPE, ()))
        previews.append(HopPreview(hop, len(level.walked), len(numbers), in_scope, told))
    return tuple(previews)


def country_cells(rows: pl.DataFrame, scope: frozenset[int] | None) -> Mapping[str, NDArray[np.uint32]]:
    """Group artifacts by country key; those of no wanted country stand together, last."""
    inside = rows if scope is None else rows.filter(pl.col("country").is_in(sorted(scope)))
    values = inside["country"].unique().to_list()
    named = inside.with_columns(
        key=pl.col("country").replace_strict({value: country_key(value) for value in values}, return_dtype=pl.String)
    )
    grouped = named.select("key", "number").unique().sort("key", "number").group_by("key", maintain_order=True)
    cells = {str(key): group["number"].to_numpy() for (key,), group in grouped}
    outside = rows["number"].unique().sort()
    outside = outside.filter(~outside.is_in(inside["number"].implode()))
    return cells | ({OUT_OF_SCOPE: outside.to_numpy()} if len(outside) else {})


def sample_of(members: NDArray[np.uint32], seed: Sequence[int], size: int) -> tuple[tuple[str, str | None], ...]:
    """Draw from a cell, by a seed of its own so that no other cell changes what is drawn."""
    drawn = np.random.default_rng(list(seed)).choice(members, min(size, len(members)), replace=False)
    return tuple((f"Q{number}", None) for number in np.sort(drawn))


def labelled(roots: Sequence[RootPreview], tables: GraphTables) -> tuple[RootPreview, ...]:
    """Look up the labels of all samples at once."""
    drawn = {int(qid[1:]) for root in roots for hop in root.hops for cell in hop.cells for qid, _ in cell.sample}
    labels = tables.labels(drawn)

    def hop_with(hop: HopPreview) -> HopPreview:
        cells = (
            replace(cell, sample=tuple((qid, labels[int(qid[1:])]) for qid, _ in cell.sample)) for cell in hop.cells
        )
        return replace(hop, cells=tuple(cells))

    return tuple(replace(root, hops=tuple(map(hop_with, root.hops))) for root in roots)
