"""What two dumps say of an item, and where: the statements and names that only one of them has, with their lines."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from culturekit.kg.graph_tables import GraphTables, Place, among

__all__ = ["DumpDifferences", "ItemRecord"]

TERMS = ("label", "description")
MOST_TOLD = 4


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """What a dump says of an item: its names, its statements in words, and where it says so."""

    terms: tuple[str | None, ...]
    statements: frozenset[str]
    place: Place


class DumpDifferences:
    """The records of some items in two graphs."""

    def __init__(self, graphs: Sequence[Path], qids: Iterable[str]) -> None:
        """Read them."""
        numbers = sorted({int(qid[1:]) for qid in qids if qid.startswith("Q")})
        self.sides = [records_of(GraphTables(graph), numbers) for graph in graphs]

    def differ(self, qid: str) -> bool:
        """Tell whether the dumps say something else of an item."""
        a, b = (side.get(int(qid[1:])) for side in self.sides)
        return (a and (a.terms, a.statements)) != (b and (b.terms, b.statements))

    def lines(self, qids: Iterable[str]) -> list[str]:
        """Say of items, each once, what only one dump says of them and where."""
        wanted = [qid for qid in dict.fromkeys(qids) if qid.startswith("Q") and self.differ(qid)]
        told = [self.line(qid) for qid in wanted[:MOST_TOLD]]
        more = len(wanted) - len(told)
        return [*told, f"dump: {more} more items on its path say something else"] if more > 0 else told

    def line(self, qid: str) -> str:
        """Say what differs in an item."""
        a, b = (side.get(int(qid[1:])) for side in self.sides)
        if a is None or b is None:
            here, word = (b, "only the second dump describes it") if a is None else (a, "only the first describes it")
            return f"dump: {qid}: {word}, {here.place if here else ''}"
        parts = [
            f"{name} {before!r} -> {after!r}"
            for name, before, after in zip(TERMS, a.terms, b.terms, strict=True)
            if before != after
        ]
        parts += [f"- {text}" for text in sorted(a.statements - b.statements)]
        parts += [f"+ {text}" for text in sorted(b.statements - a.statements)]
        return f"dump: {qid}: {'; '.join(parts)}; {a.place} -> {b.place}"


def records_of(tables: GraphTables, numbers: Sequence[int]) -> Mapping[int, ItemRecord]:
    """Read the records of items."""
    facts = tables.facts(numbers)
    said = defaultdict(set)
    rows = among(tables.statements, numbers).select("number", "property", "value", "snak", "rank", "ended").collect()
    for number, name, value, snak, rank, ended in rows.iter_rows():
        manner = "".join((f", {rank}" if rank != "normal" else "", ", ended" if ended else ""))
        said[number].add(f"{name} {snak if value is None else f'Q{value}'}{manner}")
    return {
        number: ItemRecord((own.label, own.description), frozenset(said[number]), own.place)
        for number, own in facts.items()
    }
