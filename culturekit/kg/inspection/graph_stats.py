"""Count what a graph holds: statements, labels, dangling targets, extremes, and cycles among classes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.errors import UsageError
from culturekit.core.schemas import CANDIDATES, DIFF
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of
from culturekit.kg.store import Graph, GraphTables, load_graph, qid_of, titled
from culturekit.kg.walk import groups_of

_EXTREMES = 10  # items named on each list of extremes
_EXAMPLES, _MEMBERS = 10, 8  # cycles named, and classes of each
_EDGES_AT_ONCE = 16_000_000


@dataclass(frozen=True, slots=True)
class GraphStats:
    """The numbers of a graph, as `--json` gives them; `edges` join two items once, whatever the number of statements.

    Attributes:
        dangling_targets: items that statements point to and the dump does not describe.
        properties: statements of each property, by rank and kind; `dangling` ones point to such items.
        languages: items by the language of their label, None where they have none.
        most_children: items of the highest degree.
        most_parents: see `most_children`.
        cycles: of P279 statements that are not deprecated: components of more than one class, the `largest` with their
            first `members`; a class that is its own subclass is counted apart, in `self_loops`.
    """

    items: int
    nodes: int
    statements: int
    edges: int
    dangling_targets: int
    properties: list[dict[str, Any]]
    languages: list[dict[str, Any]]
    mul_share: float
    most_children: list[dict[str, Any]]
    most_parents: list[dict[str, Any]]
    cycles: dict[str, Any]


def stats_lines(stats: GraphStats) -> Iterator[str]:
    """Write the numbers in lines."""
    yield f"{stats.items:,} items, {stats.statements:,} statements, {stats.nodes:,} nodes, {stats.edges:,} edges"
    yield f"{stats.dangling_targets:,} targets of statements that the dump does not describe"
    names = [name.replace("_", " ") for name in ("property", *_PROPERTY_COUNTS)]
    yield from aligned(names, [list(map(str, each.values())) for each in stats.properties])
    for each in stats.languages:
        yield f"label in {each['language'] or 'none'}: {each['items']:,} items ({each['share']:.1%})"
    yield f"labels that fall back to mul: {stats.mul_share:.1%}"
    for name, extremes in (("children", stats.most_children), ("parents", stats.most_parents)):
        shown = (f"{titled(each['qid'], each['label'])} {each['degree']:,}" for each in extremes)
        yield f"most {name}: {'; '.join(shown)}"
    cycles = stats.cycles
    yield (
        f"cycles by P279: {cycles['classes']:,} classes in {cycles['components']:,} components, "
        f"and {cycles['self_loops']:,} classes below themselves"
    )
    for cycle in cycles["largest"]:
        members = ", ".join(titled(qid, label) for qid, label in cycle["members"])
        more = cycle["classes"] - len(cycle["members"])
        yield f"  {cycle['classes']} classes: {members}{f' and {more:,} more' if more else ''}"


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))


def graph_stats(folder: Path) -> GraphStats:
    """Count what is in a graph folder."""
    tables, graph = GraphTables(folder), load_graph(folder)
    described = np.zeros(len(graph.nodes), np.bool_)
    described[np.searchsorted(graph.nodes, tables.items.select("number").collect()["number"].to_numpy())] = True
    undescribed = pl.LazyFrame({"value": np.asarray(graph.nodes[~described], np.uint32)}).with_columns(dangling=True)
    statements = tables.statements.join(undescribed, on="value", how="left").group_by("property")
    properties = statements.agg(**_PROPERTY_COUNTS).sort("property").collect().to_dicts()
    labels = tables.items.group_by(language="label_language").agg(items=pl.len()).collect()
    labels = labels.sort(["items", "language"], descending=[True, False], nulls_last=True)
    languages = labels.with_columns(share=pl.col("items") / pl.col("items").sum()).to_dicts()
    return GraphStats(
        items=int(labels["items"].sum()),
        nodes=len(graph.nodes),
        statements=sum(each["statements"] for each in properties),
        edges=len(graph.children),
        dangling_targets=int((~described).sum()),
        properties=properties,
        languages=languages,
        mul_share=next((each["share"] for each in languages if each["language"] == "mul"), 0.0),
        most_children=_extremes(tables, graph, np.diff(graph.children_offsets)),
        most_parents=_extremes(tables, graph, np.bincount(graph.children, minlength=len(graph.nodes))),
        cycles=_class_cycles(graph, tables),
    )


_PROPERTY_COUNTS = {
    "statements": pl.len(),
    **{name: pl.col("rank").eq(name).sum() for name in ("preferred", "normal", "deprecated")},
    **{name: pl.col("snak").eq(name).sum() for name in ("somevalue", "novalue")},
    "without_item": (pl.col("snak").eq("value") & pl.col("value").is_null()).sum(),
    "qualified": pl.col("qualified").sum(),
    "ended": pl.col("ended").sum(),
    "dangling": pl.col("dangling").sum(),
}


def _extremes(tables: GraphTables, graph: Graph, degrees: NDArray[np.int64]) -> list[dict[str, Any]]:
    """Name the items of the highest degree, on ties the smaller numbers."""
    size = min(_EXTREMES, len(degrees))
    least = int(np.partition(degrees, -size)[-size]) if size else 0
    high = np.flatnonzero(degrees >= max(least, 1))
    first = high[np.lexsort((high, -degrees[high]))][:size]
    numbers = graph.nodes[first].tolist()
    labels = tables.labels(numbers)
    pairs = zip(numbers, degrees[first].tolist(), strict=True)
    return [{"qid": f"Q{number}", "label": labels[number], "degree": degree} for number, degree in pairs]


def _class_cycles(graph: Graph, tables: GraphTables) -> dict[str, Any]:
    """Find the components of more than one class, reading the edges of P279 piece by piece."""
    mask = mask_of(("P279",), EDGE_PROPERTIES)
    places = [
        start + np.flatnonzero(graph.edge_flags[start : start + _EDGES_AT_ONCE] & mask)
        for start in range(0, len(graph.children), _EDGES_AT_ONCE)
    ]
    edges = np.concatenate([np.empty(0, np.int64), *places])
    parents = np.searchsorted(graph.children_offsets, edges, side="right") - 1
    children = graph.children[edges].astype(np.int64)
    loops = parents == children
    nodes, component = groups_of(parents[~loops], children[~loops])
    sizes = np.bincount(component)
    large = np.flatnonzero(sizes > 1)
    first = large[np.argsort(-sizes[large], kind="stable")][:_EXAMPLES]
    members = [graph.nodes[nodes[np.flatnonzero(component == each)[:_MEMBERS]]].tolist() for each in first]
    labels = tables.labels(number for numbers in members for number in numbers)
    largest = [
        {"classes": int(sizes[each]), "members": [(f"Q{number}", labels[number]) for number in numbers]}
        for each, numbers in zip(first, members, strict=True)
    ]
    counts = {"components": len(large), "classes": int(sizes[large].sum()), "self_loops": int(loops.sum())}
    return {**counts, "largest": largest}


# Compare two graphs, or two extractions: items, statements, candidates, and what stands beside them.


_KEY = ("concept", "qid")
# The part of the comparison that a column is; other columns are `field`.
_PARTS = {"label": "label", "country_qids": "country", "roots": "root", "hop": "hop", "path": "path"}
# How many item numbers are compared at once: below a gigabyte for a dump of 100 million items.
_NUMBERS_PER_SLICE = 8_000_000
_STATEMENT = ("number", "property", "value", "snak")
_ROW = (*_STATEMENT, "rank", "qualified", "ended")


def compare(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from `a` to `b`: two graph folders, or two folders or files of candidates."""
    (kind_a, path_a), (kind_b, path_b) = _kind_of(a), _kind_of(b)
    if kind_a != kind_b:
        raise UsageError(
            "two things of different kinds cannot be compared", expected=kind_a, found=f"{kind_b} in {b}", where=str(a)
        )
    differences = diff_graphs if kind_a == "a graph" else _diff_candidates
    return differences(path_a, path_b).sort(DIFF.key, nulls_last=False)


def diff_totals(rows: pl.DataFrame) -> dict[str, int]:
    """Count the differences: `edge added` and so on, in alphabetical order."""
    counted = rows.group_by("part", "change").len().sort("part", "change")
    return {f"{part} {change}": count for part, change, count in counted.iter_rows()}


def _kind_of(path: Path) -> tuple[str, Path]:
    """Say what a path holds, and name what to read."""
    if (path / "statements.parquet").is_file():
        return "a graph", path
    if path.is_file():
        return "candidates", path
    if (path / "candidates.parquet").is_file():
        return "candidates", path / "candidates.parquet"
    what = "a folder that is neither" if path.is_dir() else "nothing"
    raise UsageError("cannot be compared", where=str(path), expected="a graph store or candidates", found=what)


def _diff_rows(rows: pl.DataFrame, part: pl.Expr | str, change: pl.Expr | str, **columns: pl.Expr) -> pl.DataFrame:
    """Give rows the columns of the table `diff`; those that are not given, and not there, are null."""
    fixed = {
        name: pl.lit(word) if isinstance(word, str) else word for name, word in (("part", part), ("change", change))
    }
    known = {**{name: pl.col(name) for name in rows.columns}, **fixed, **columns}
    return rows.select(known.get(name, pl.lit(None)).cast(dtype).alias(name) for name, dtype in DIFF.schema.items())


def _diff_candidates(a: Path, b: Path) -> pl.DataFrame:
    """List the differences from candidates `a` to candidates `b`, two files."""
    before, after = read_table(a, CANDIDATES), read_table(b, CANDIDATES)
    added, removed = after.join(before, on=_KEY, how="anti"), before.join(after, on=_KEY, how="anti")
    parts = [
        _diff_rows(added.select(*_KEY, after="label"), "candidate", "added"),
        _diff_rows(removed.select(*_KEY, before="label"), "candidate", "removed"),
    ]
    both = before.join(after, on=_KEY, suffix=" after")
    for name, column in CANDIDATES.columns.items():
        if name in _KEY:
            continue
        part, there = _PARTS.get(name, "field"), f"{name} after"
        if not isinstance(column.dtype, pl.List) or name == "path":  # paths are compared as a whole
            changed = both.filter(pl.col(name).ne_missing(pl.col(there)))
            sides = {"before": text_of(both, name), "after": text_of(both, there)}
            parts.append(_diff_rows(changed.select(*_KEY, **sides), part, "changed", property=pl.lit(name)))
            continue
        for change, one, other in (("added", there, name), ("removed", name, there)):
            values = both.select(*_KEY, value=pl.col(one).list.set_difference(pl.col(other)))
            elements = values.explode("value", empty_as_null=False).unique()
            parts.append(_diff_rows(elements, part, change, property=pl.lit(name)))
    return pl.concat(parts)


def text_of(frame: pl.DataFrame, name: str) -> pl.Expr:
    """Write a value; a path as QIDs with spaces between."""
    column = pl.col(name)
    return column.list.join(" ") if isinstance(frame.schema[name], pl.List) else column.cast(pl.String)


def diff_graphs(
    a: Path, b: Path, *, numbers: Iterable[int] | None = None, width: int = _NUMBERS_PER_SLICE
) -> pl.DataFrame:
    """List the differences from graph `a` to graph `b`: of all items, slice by slice, or of some."""
    before, after = GraphTables(a), GraphTables(b)
    number = pl.col("number")
    if numbers is None:
        largest = max(int(side.items.select(number.max().fill_null(0)).collect().item()) for side in (before, after))
        slices = [number.is_between(start, start + width - 1) for start in range(0, largest + 1, width)]
    else:
        slices = [number.is_in(pl.Series(sorted(set(numbers)), dtype=pl.UInt32).implode())]
    parts: list[pl.DataFrame] = []
    for inside in slices:
        parts += _item_rows(before.items.filter(inside), after.items.filter(inside))
        parts.append(_statement_rows(before.statements.filter(inside), after.statements.filter(inside)))
    return pl.concat(parts)


def _item_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Compare items and the labels of those in both."""
    a, b = (side.select("number", "label", "label_language").collect() for side in (before, after))
    qid, label = qid_of("number"), pl.col("label")
    yield _diff_rows(b.join(a, on="number", how="anti"), "item", "added", qid=qid, after=label)
    yield _diff_rows(a.join(b, on="number", how="anti"), "item", "removed", qid=qid, before=label)
    both = a.join(b, on="number", suffix="_after").filter(
        pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_after")) for name in ("label", "label_language"))
    )
    old, new = (pl.format("{} ({})", f"label{side}", f"label_language{side}") for side in ("", "_after"))
    yield _diff_rows(both, "label", "changed", qid=qid, before=old, after=new)


def _statement_rows(before: pl.LazyFrame, after: pl.LazyFrame) -> pl.DataFrame:
    """Compare statements by item, property and value; the manner of each is its rank, qualified, ended."""
    marks = [pl.when(pl.col(name)).then(pl.lit(f", {name}")).otherwise(pl.lit("")) for name in ("qualified", "ended")]
    a, b = (
        rows.select(*_STATEMENT, manner=pl.concat_str("rank", *marks))
        .group_by(*_STATEMENT)
        .agg(pl.col("manner").sort().str.join("; "))
        for rows in _changed_rows(before.select(*_ROW).collect(), after.select(*_ROW).collect())
    )
    joined = a.join(b, on=_STATEMENT, how="full", coalesce=True, nulls_equal=True, suffix="_after").filter(
        pl.col("manner").ne_missing(pl.col("manner_after"))
    )
    families = {**dict.fromkeys(EDGE_PROPERTIES, "edge"), **dict.fromkeys(COUNTRY_PROPERTIES, "country")}
    part = pl.col("property").replace_strict(families, default="statement", return_dtype=pl.String)
    added, removed = pl.col("manner").is_null(), pl.col("manner_after").is_null()
    change = pl.when(added).then(pl.lit("added")).when(removed).then(pl.lit("removed")).otherwise(pl.lit("changed"))
    return _diff_rows(
        joined, part, change, qid=qid_of("number"), value=pl.coalesce(qid_of("value"), "snak"),
        before=pl.col("manner"), after=pl.col("manner_after"),
    )  # fmt: skip


def _changed_rows(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Keep the rows of items that do not have exactly the same rows, in the same order, on both sides.

    Most items are the same in two dumps, and comparing them row by row takes less than half the time of grouping all.
    """
    a, b = (
        side.with_columns(place=pl.int_range(pl.len(), dtype=pl.UInt32).over("number"), size=pl.len().over("number"))
        for side in (before, after)
    )
    key = ["number", "place", "size"]
    pairs = a.join(b, on=key, how="full", coalesce=True, suffix="_after", nulls_equal=True)
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_after")) for name in _ROW if name != "number")
    numbers = pairs.filter(differs).select("number").unique()
    return before.join(numbers, on="number", how="semi"), after.join(numbers, on="number", how="semi")


def compare_stage(a: Path, b: Path) -> Stage:
    """Compare two graphs or two extractions; the totals of the differences are counts."""

    def run(work: Work) -> Outcome:
        rows = compare(a, b)
        write_table(work.out, DIFF, rows)
        return Outcome({"differences": rows.height, **diff_totals(rows)})

    return Stage("diff", "diff", 1, run, {"before": a, "after": b}, {}, packages=("polars",))
