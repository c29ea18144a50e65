"""The evidence for a cause, in lines: statements with their place in the dump, keys with both values, both verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from culturekit.storage.digests import canonical_json
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.dump_evidence import DumpDifferences
from culturekit.trail.space.factors import WITH_CONCEPTS, Factor, judge_of
from culturekit.trail.space.journals import JournalEntries
from culturekit.trail.space.replay import Change, Replay

__all__ = ["Evidence"]

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
