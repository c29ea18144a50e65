"""Preview what a concept would find, before it is extracted: counts, samples, explosions, and the cost of filtering."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from culturekit.core.declared import Seed, Typed
from culturekit.core.errors import UsageError
from culturekit.kg.concepts import COUNTRY_PROPERTIES, Concept
from culturekit.kg.countries import by_qid
from culturekit.kg.inspection.graph_stats import aligned
from culturekit.kg.store import Graph, GraphTables, counted_values, load_graph, titled
from culturekit.kg.walk import Level, through, walk_levels
from culturekit.llm.cost_plan import amount

_OUT_OF_SCOPE = "out of scope"
_LEAST_SHARE = 0.5  # a class is named while at least this share of the new artifacts comes through it
_COUNTRY_COLUMNS = 10  # how many countries get a column; the others stand together


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


# What is answered; the fields are those of `--json`.


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

    def __str__(self) -> str:
        """Write what grows, and through which classes."""
        way = " > ".join(
            f"{each.qid} ({each.label or 'no label'}) {each.artifacts / self.artifacts:.0%}" for each in self.by
        )
        total = self.before + self.artifacts
        return (
            f"EXPLODES at hop {self.hop}: from {self.before:,} to {total:,} artifacts, through "
            f"{way or 'no class in particular'}"
        )


@dataclass(frozen=True, slots=True)
class FilterCost:
    """An estimate of `cspace filter`; `price` is None where no prices were given."""

    requests: int
    input_tokens: int
    output_tokens: int
    basis: str
    price: float | None

    def __str__(self) -> str:
        """Write the cost; money only where prices were given."""
        price = "no price given, so none is said" if self.price is None else f"{amount(self.price)} at the prices given"
        tokens = f"about {self.input_tokens:,} tokens in, {self.output_tokens:,} out"
        return f"filtering by a language model: {self.requests:,} requests, {tokens}; {price} ({self.basis})"


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


def preview_lines(found: Preview) -> Iterator[str]:
    """Write a preview in lines."""
    yield f"{found.concept}: {found.candidates:,} candidates, {found.out_of_scope:,} more out of scope"
    for root in found.roots:
        yield from ("", *_root_lines(root))
    for root in found.roots:
        for hop in root.hops:
            for cell in hop.cells:
                if cell.sample:
                    names = "; ".join(f"{label or '(no label)'} {qid}" for qid, label in cell.sample)
                    drawn = f"{root.qid} hop {hop.hop} {cell.country}, {len(cell.sample)} of {cell.count:,}"
                    yield f"sample of {drawn}, seed {found.seed}: {names}"
    yield from ("", str(found.cost))


def _root_lines(root: RootPreview) -> Iterator[str]:
    """Write a root: a row per hop, a column per country, and its explosions."""
    name = titled(root.qid, root.label)
    if not root.found:
        yield f"{name}: the graph never mentions it"
        return
    yield f"{name}, {root.limit} hops"
    totals: dict[str, int] = {}
    for hop in root.hops:
        for cell in hop.cells:
            totals[cell.country] = totals.get(cell.country, 0) + cell.count
    # The largest countries have columns, in alphabetical order; then out of scope, then others.
    outside = [_OUT_OF_SCOPE] if totals.pop(_OUT_OF_SCOPE, 0) else []
    largest = sorted(totals, key=lambda country: (-totals[country], country))
    columns = [*sorted(largest[:_COUNTRY_COLUMNS]), *outside]
    others = ["others"] if len(largest) > _COUNTRY_COLUMNS else []
    rows = []
    for hop in root.hops:
        counts = {cell.country: cell.count for cell in hop.cells}
        listed = [counts.pop(column, 0) for column in columns] + [sum(counts.values()) for _ in others]
        rows.append([str(hop.hop), *(f"{n:,}" for n in (hop.walked, hop.artifacts, hop.in_scope, *listed))])
    yield from map(str.rstrip, aligned(["hop", "walked", "artifacts", "in scope", *columns, *others], rows))
    yield from map(str, root.explosions)


def preview(
    folder: Path,
    concept: Concept,
    *,
    wording: str,
    options: PreviewOptions = PreviewOptions(),
    prices: tuple[float, float] | None = None,
    successors: Mapping[int, int] = MappingProxyType({}),
) -> Preview:
    """Walk a concept through a graph, and count; `wording` is what the filter sends besides the candidates.

    `prices` of the filter are per million tokens, in and out. `successors` says by QID number which country has taken
    the place of which.
    """
    tables, graph = GraphTables(folder), load_graph(folder)
    levels = _levels_of(graph, concept)
    if not any(levels.values()):
        raise UsageError(
            f"the graph mentions no root of {concept.concept}",
            where=str(folder),
            found=" ".join(f"Q{number}" for number in levels),
        )
    reached = np.zeros(len(graph.nodes), np.bool_)
    for level in (level for below in levels.values() for level in below):
        reached[level.artifacts] = True
    artifacts = _numbers_of(graph, np.flatnonzero(reached), concept)
    countries = _countries_of(tables, concept, artifacts, successors)
    hops: dict[int, list[tuple[int, dict[str, NDArray[np.uint32]]]]] = {number: [] for number in levels}
    drawn: dict[tuple[int, int, str], list[int]] = {}
    for number, below in levels.items():
        for hop, level in enumerate(below[1:], 1):
            numbers = _numbers_of(graph, level.artifacts, concept)
            hops[number].append((len(numbers), _by_country(numbers, countries, concept.scope)))
            for key, members in hops[number][-1][1].items():
                # By the seed of the cell, so that no other cell changes what is drawn.
                chance = np.random.default_rng([options.seed, number, hop, *key.encode()])
                sample = chance.choice(members, min(options.samples, len(members)), replace=False)
                drawn[number, hop, key] = np.sort(sample).tolist()
    labels = tables.labels({*concept.limits, *(number for sample in drawn.values() for number in sample)})

    def hop_preview(number: int, hop: int) -> HopPreview:
        artifacts, by_country = hops[number][hop - 1]
        cells = tuple(
            Cell(key, len(members), tuple((f"Q{each}", labels[each]) for each in drawn[number, hop, key]))
            for key, members in by_country.items()
        )
        in_scope = artifacts - len(by_country.get(_OUT_OF_SCOPE, ()))
        return HopPreview(hop, len(levels[number][hop].walked), artifacts, in_scope, cells)

    roots = tuple(
        RootPreview(
            f"Q{number}", labels[number], limit, bool(levels[number]),
            tuple(hop_preview(number, hop) for hop in range(1, len(levels[number]))),
            _explosions(graph, tables, levels[number], factor=options.factor, least=options.least),
        )
        for number, limit in concept.limits.items()
    )  # fmt: skip
    inside = _in_scope(countries, concept.scope)
    numbers = inside["number"].unique().sort().to_numpy()
    cost = _filter_cost(tables, concept.concept, numbers, inside.height, wording=wording, prices=prices)
    return Preview(concept.concept, options.seed, len(numbers), len(artifacts) - len(numbers), roots, cost)


def _levels_of(graph: Graph, concept: Concept) -> dict[int, list[Level]]:
    """Walk from each root; nothing is below one that the graph never mentions."""
    blocked, roots = graph.marked(concept.excluded_classes), graph.find_all(concept.limits)
    nodes = {number: graph.find(number) for number in concept.limits}
    return {
        number: [] if node is None else walk_levels(
            graph, node, concept.limits[number], edge_mask=concept.edge_mask, blocked=blocked,
            country_mask=concept.country_mask, roots=roots, expand=concept.expand_artifacts,
        )
        for number, node in nodes.items()
    }  # fmt: skip


def _numbers_of(graph: Graph, nodes: NDArray[np.signedinteger], concept: Concept) -> NDArray[np.uint32]:
    """Give the item numbers of nodes, without the excluded items."""
    numbers = np.asarray(graph.nodes[nodes], np.uint32)
    return numbers[~np.isin(numbers, np.array(sorted(concept.excluded_items), np.uint32))]


def _countries_of(
    tables: GraphTables, concept: Concept, numbers: NDArray[np.uint32], successors: Mapping[int, int]
) -> pl.DataFrame:
    """Look up the countries of items: number and country, once each, successors for those that are gone.

    With the choice `P495-first`, P17 counts only where P495 says nothing.
    """
    wanted = pl.LazyFrame({"number": numbers}, schema={"number": pl.UInt32})
    rows = tables.statements.filter(pl.col("property").is_in(list(COUNTRY_PROPERTIES)))
    rows = rows.select("number", "property", "value", "rank", "ended").join(wanted, on="number", how="semi")
    stated = counted_values(rows.collect(engine="streaming"), COUNTRY_PROPERTIES, concept.country_mask)
    if concept.country_choice == "P495-first":
        first = pl.col("property") == "P495"
        stated = stated.filter(first | ~first.any().over("number"))
    return stated.select("number", country=pl.col("value").replace(dict(successors))).unique().sort("number", "country")


def _in_scope(rows: pl.DataFrame, scope: frozenset[int] | None) -> pl.DataFrame:
    """Keep the countries in scope; None keeps all."""
    return rows if scope is None else rows.filter(pl.col("country").is_in(sorted(scope)))


def _by_country(
    numbers: NDArray[np.uint32], countries: pl.DataFrame, scope: frozenset[int] | None
) -> dict[str, NDArray[np.uint32]]:
    """Part artifacts by country: ISO code, QID where culturekit does not know it; those of no wanted one come last."""
    rows = countries.join(pl.DataFrame({"number": numbers}), on="number", how="semi")
    inside, known = _in_scope(rows, scope), by_qid()
    keys = {n: known[f"Q{n}"].iso if f"Q{n}" in known else f"Q{n}" for n in inside["country"].unique().to_list()}
    named = inside.select("number", key=pl.col("country").replace_strict(keys, return_dtype=pl.String))
    grouped = named.unique().sort("key", "number").group_by("key", maintain_order=True)
    cells = {str(key): group["number"].to_numpy() for (key,), group in grouped}
    outside = rows.join(inside, on="number", how="anti")["number"].unique().sort()
    return {**cells, _OUT_OF_SCOPE: outside.to_numpy()} if len(outside) else cells


def _explosions(
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
            found.append(Explosion(hop, before, new, _heaviest_way(graph, tables, levels, hop)))
        before += new
    return tuple(found)


def _heaviest_way(graph: Graph, tables: GraphTables, levels: Sequence[Level], hop: int) -> tuple[Share, ...]:
    """Follow the heaviest class from level to level, below the root, while most artifacts come through it."""
    counts = through(levels, hop)
    total = len(levels[hop].artifacts)
    way: list[tuple[int, int]] = []
    parent = 0
    for level in range(1, hop):
        below = np.where(levels[level].walked_above == parent, counts[level], 0)
        if len(below) == 0 or below.max() < _LEAST_SHARE * total:
            break
        parent = int(below.argmax())
        way.append((int(graph.nodes[levels[level].walked[parent]]), int(below[parent])))
    labels = tables.labels(number for number, _ in way)
    return tuple(Share(f"Q{number}", labels[number], count) for number, count in way)


_BYTES_PER_TOKEN = 4  # of UTF-8, roughly, for English text and JSON; scripts beyond Latin come closer to 3
_BASIS = (
    "1 request per candidate and country in scope, 4 UTF-8 bytes per token, nothing for what a provider adds; rules "
    "may drop some before"
)
_EMPTY_DATA = '{"id":"","label":"","description":"","concept":"","roots":[],"classes":[],"country":""}'
_QID_MARKS = 4  # the letter Q, two quotes and a comma around the digits
_REPLY = '{"id":"Q","verdict":"remove"}'


def _filter_cost(
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
    per million tokens, in and out. What is sent of a candidate counts once a country, at the mean of all candidates.
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
    qid_digits = int(np.char.str_len(candidates.astype(str)).sum()) if len(candidates) else 0
    varying = qid_digits + class_digits + _QID_MARKS * n_classes + label_bytes + description_bytes
    constant = len(wording.encode()) + len(_EMPTY_DATA) + len(concept) + _QID_MARKS + 3
    share = countries / max(1, len(candidates))
    sent = constant * countries + int(varying * share)
    answered = len(_REPLY) * countries + int(qid_digits * share)
    tokens = (-(-sent // _BYTES_PER_TOKEN), -(-answered // _BYTES_PER_TOKEN))
    price = sum(count * each / 1e6 for count, each in zip(tokens, prices, strict=True)) if prices else None
    return FilterCost(countries, *tokens, _BASIS, price)
