"""The evidence for a cause, in lines: statements with their place in the dump, keys with both values, both verdicts."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culturekit.kg.graph_tables import GraphTables, Place, among
from culturekit.storage.digests import canonical_json
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.factors import WITH_CONCEPTS, Factor, judge_of
from culturekit.trail.space.journals import JournalEntries
from culturekit.trail.space.replay import Change, Replay

__all__ = ["DumpDifferences", "Evidence"]

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


SHOWN = 160
HASH = 12


class Evidence:
    """Says for a change what is behind a cause."""

    def __init__(
        self, sides: Sequence[SpaceBehind], replay: Replay, dumps: DumpDifferences | None, journals: JournalEntries
    ) -> None:
        """Take where evidence lies."""
        self.sides = sides
        self.replay = replay
        self.dumps = dumps
        self.journals = journals

    def lines(self, change: Change, factor: Factor) -> Iterator[str]:
        """Give the lines for a cause."""
        if factor.cause == "dump":
            yield from self.dump_lines(change)
        elif factor.cause == "config":
            yield self.config_line(change, factor)
        elif factor.cause == "wording":
            before, after = (str(side.option("filter", "wording"))[:HASH] for side in self.sides)
            yield f"wording: {factor.key} {before} -> {after}"
            yield from self.verdict_lines(change, "wording")
        elif factor.cause == "model":
            yield f"model: {' -> '.join(self.judges())}"
            yield from self.verdict_lines(change, "model")
        else:
            versions = [str(side.manifests[factor.key].version) for side in self.sides]
            yield f"code: stage {factor.key}, version {' -> '.join(versions)}"

    def dump_lines(self, change: Change) -> Iterator[str]:
        """Say what the dumps say differently of the item, then of what lies on its path, then of its classes."""
        if self.dumps is None:
            return
        told = self.dumps.lines(self.near(change))
        yield from told or ["dump: the item and its path are the same in both; something beside them differs"]

    def near(self, change: Change) -> Iterator[str]:
        """Name the items that decide over a row: itself, its path from either side, its classes."""
        tables = self.replay.candidates.tables
        own = [table.get((key[2], key[0])) for key in change.keys for table in tables]
        yield change.artifact_id
        for row in own:
            yield from reversed(row["path"]) if row else ()
        for row in own:
            yield from (*row["p31"], *row["p279"]) if row else ()

    def config_line(self, change: Change, factor: Factor) -> str:
        """Say which key differs, and how."""
        key = factor.key.partition(".")[2]
        if not factor.concept or not key:
            return f"config: {factor.key} of {factor.concept or 'the run'}"
        values = {kind: [digest_of(side, kind, factor) for side in self.sides] for kind in WITH_CONCEPTS}
        kind = next(kind for kind, both in values.items() if both[0] != both[1])
        before, after = (side.concepts(kind)[factor.concept].get(key) for side in self.sides)
        if key == "roots":
            return f"config: {factor.key}: {roots_text(before or (), after or (), self.roots_of(change))}"
        return f"config: {factor.key}: {shown(before)} -> {shown(after)}"

    def roots_of(self, change: Change) -> set[str]:
        """Name the roots that reach the item on either side."""
        tables = self.replay.candidates.tables
        rows = [table.get((key[2], key[0])) for key in change.keys for table in tables]
        return {root for row in rows if row for root in row["roots"]}

    def verdict_lines(self, change: Change, cause: str) -> Iterator[str]:
        """Give both verdicts with their reasons, and the replies they were read from."""
        for concept, artifact_id in dict.fromkeys((key[0], key[2]) for key in change.keys):
            tables = self.replay.verdicts.tables
            said = [" because ".join(table.get((artifact_id, concept), ("not asked",))) for table in tables]
            yield f"{cause}: verdict on {artifact_id} in {concept}: {said[0]} -> {said[1]}"
            for side in (0, 1):
                for reply in self.journals.replies(side, artifact_id, concept):
                    yield f"{cause}: {('first', 'second')[side]} run, {reply}"

    def judges(self) -> list[str]:
        """Name both judges by what identifies them."""
        return [str(judge_of(side)[1]) for side in self.sides]


def digest_of(side: SpaceBehind, kind: str, factor: Factor) -> bytes:
    """Write a key of a root config so that equal values are equal bytes."""
    return canonical_json(side.concepts(kind).get(factor.concept, {}).get(factor.key.partition(".")[2]))


def roots_text(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], near: set[str]) -> str:
    """Say which roots came, went or changed; where some of them reach the item, only those."""
    a, b = ({root["qid"]: root for root in roots} for roots in (before, after))
    changed = [qid for qid in dict.fromkeys([*a, *b]) if a.get(qid) != b.get(qid)]
    chosen = [qid for qid in changed if qid in near] or changed
    return "; ".join(root_text(qid, a.get(qid), b.get(qid)) for qid in chosen) or "another order"


def root_text(qid: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> str:
    """Say what became of a root."""
    if before is None or after is None:
        sign, root = ("+", after) if before is None else ("-", before)
        return f"{sign} {qid} ({(root or {}).get('label', '')})"
    keys = [key for key in before if before[key] != after.get(key)]
    return f"{qid} ({after['label']}) " + ", ".join(
        f"{key} {shown(before[key])} -> {shown(after[key])}" for key in keys
    )


def shown(value: object) -> str:
    """Write a value of a config, cut where it is long."""
    text = canonical_json(value).decode()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
