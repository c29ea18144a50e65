"""The numbers of a graph in lines, for people."""

from collections.abc import Iterator, Sequence

from culturekit.kg.looking.graph_stats import Extreme, GraphStats

__all__ = ["stats_lines"]

COLUMNS = (
    "property", "statements", "preferred", "normal", "deprecated", "somevalue", "novalue",
    "without_item", "qualified", "ended", "dangling",
)  # fmt: skip


def stats_lines(stats: GraphStats) -> Iterator[str]:
    """Tell the numbers."""
    yield f"{stats.items:,} items, {stats.statements:,} statements, {stats.nodes:,} nodes, {stats.edges:,} edges"
    yield f"{stats.dangling_targets:,} targets of statements that the dump does not describe"
    rows = [[str(getattr(each, name)) for name in COLUMNS] for each in stats.properties]
    header = [name.replace("_", " ") for name in COLUMNS]
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))
    for language in stats.languages:
        yield f"label in {language.language or 'none'}: {language.items:,} items ({language.share:.1%})"
    yield f"labels that fall back to mul: {stats.mul_share:.1%}"
    yield f"most children: {extremes_text(stats.most_children)}"
    yield f"most parents: {extremes_text(stats.most_parents)}"
    cycles = stats.cycles
    yield (
        f"cycles by P279: {cycles.classes:,} classes in {cycles.components:,} components, "
        f"and {cycles.self_loops:,} classes below themselves"
    )
    for cycle in cycles.largest:
        names = ", ".join(f"{qid} ({label})" if label else qid for qid, label in cycle.members)
        rest = f" and {cycle.classes - len(cycle.members):,} more" if cycle.classes > len(cycle.members) else ""
        yield f"  {cycle.classes} classes: {names}{rest}"


def extremes_text(extremes: Sequence[Extreme]) -> str:
    """Tell the items of the highest degree."""
    return "; ".join(
        f"{each.qid} ({each.label}) {each.degree:,}" if each.label else f"{each.qid} {each.degree:,}"
        for each in extremes
    )
