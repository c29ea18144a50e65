"""Two cultural spaces compared: every row that is another, and why."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.builders.filtering.candidate_verdicts import COLUMNS
from culturekit.builders.space.space_diff import space_changes, untold_changes
from culturekit.records.schemas import DIFF
from culturekit.records.work import Work
from culturekit.trail.space.behind import SpaceBehind
from culturekit.trail.space.candidates import MixedCandidates
from culturekit.trail.space.completions import KIND, Attribution, Completions, attribute
from culturekit.trail.space.evidence import DumpDifferences, Evidence
from culturekit.trail.space.factors import CAUSES, REVIEW, Factor, factors_between
from culturekit.trail.space.journals import JournalEntries
from culturekit.trail.space.replay import Change, Replay
from culturekit.trail.space.verdicts import MixedVerdicts

__all__ = ["Explained", "SpaceDiff", "compare_spaces"]

OPTIONAL = ("stage", "causes", "undecided", "because")


@dataclass(frozen=True, slots=True)
class Explained:
    """A change, the stage that first made the row another, why, and the evidence."""

    change: Change
    stage: str | None
    causes: tuple[str, ...]
    undecided: tuple[str, ...]
    because: str

    def as_row(self) -> dict[str, Any]:
        """Give it as a row of the table `diff`."""
        concept, country, artifact_id = self.change.keys[0]
        return {
            "part": self.change.part,
            "qid": artifact_id,
            "concept": concept,
            "property": None if self.change.part == "artifact" else self.change.part,
            "value": country,
            "change": self.change.change,
            "before": self.change.before,
            "after": self.change.after,
            "stage": self.stage,
            "causes": list(self.causes),
            "undecided": list(self.undecided),
            "because": self.because,
        }


@dataclass(frozen=True, slots=True)
class SpaceDiff:
    """All changes as a table; `untold` counts rows that differ in other columns; `factors` say what differs at all."""

    rows: pl.DataFrame
    untold: Mapping[str, int]
    factors: tuple[str, ...]
    missing: tuple[str, ...]


def compare_spaces(before: SpaceBehind, after: SpaceBehind, work: Work) -> SpaceDiff:
    """Compare two spaces, and walk every row that is another back to what made it so."""
    spaces = [before.space, after.space]
    changes = [change_of(row) for row in space_changes(*spaces).iter_rows(named=True)]
    work.progress.begin(len(changes), "changes")
    missing = tuple(f"{word}: {text}" for word, side in (("first", before), ("second", after)) for text in side.missing)
    if missing:
        factors: Sequence[Factor] = ()
        explained = [Explained(change, None, (), CAUSES, "; ".join(missing)) for change in changes]
    else:
        factors = factors_between(before, after)
        explained = list(Walk([before, after], spaces, changes, factors, work).all()) if changes else []
        concepts = {*before.concepts("release"), *after.concepts("release")}
        factors = [*factors, *Completions([before, after], ()).differences(concepts)]
    schema = {**DIFF.schema, **{name: DIFF.optional[name].dtype for name in OPTIONAL}}
    rows = pl.DataFrame([each.as_row() for each in explained], schema=schema)
    return SpaceDiff(rows, untold_changes(*spaces), tuple(dict.fromkeys(map(str, factors))), missing)


def change_of(row: Mapping[str, Any]) -> Change:
    """Read a change."""
    keys = dict.fromkeys(
        (row[f"concept{end}"], row[f"country{end}"], row[f"artifact_id{end}"]) for end in ("", "_after")
    )
    return Change(tuple(keys), row["part"], row["change"], row["before"], row["after"])


class Walk:
    """The changed rows of two spaces on their way back."""

    def __init__(
        self,
        sides: Sequence[SpaceBehind],
        spaces: Sequence[pl.DataFrame],
        changes: Sequence[Change],
        factors: Sequence[Factor],
        work: Work,
    ) -> None:
        """Read what the changed rows were made from."""
        self.changes, self.factors, self.work = changes, factors, work
        qids = {key[2] for change in changes for key in change.keys}
        self.candidates = MixedCandidates(sides, qids, work)
        self.verdicts = MixedVerdicts(sides, self.candidates)
        self.replay = Replay(sides, self.candidates, self.verdicts)
        self.completions = Completions(sides, changes)
        dumps = None
        if any(factor.cause == "dump" for factor in factors):
            rows = [row for table in self.candidates.tables for row in table.values()]
            near = {qid for row in rows for qid in (*row["path"], *row["p31"], *row["p279"])}
            dumps = DumpDifferences([side.graph for side in sides], qids | near)
        self.evidence = Evidence(sides, self.replay, dumps, JournalEntries(sides, frozenset(qids)))
        ids = pl.Series(sorted(qids), dtype=pl.String).implode()
        self.actual = [
            {(row["concept"], row["country"], row["artifact_id"]): row for row in rows.iter_rows(named=True)}
            for rows in (space.filter(pl.col("artifact_id").is_in(ids)) for space in spaces)
        ]

    def all(self) -> Iterator[Explained]:
        """Explain each change."""
        for change in self.changes:
            yield self.completed(change) if self.completions.concern(change) else self.extracted(change)
            self.work.progress.advance(1)

    def completed(self, change: Change) -> Explained:
        """Explain a row that a model completed."""
        found = self.completions.attribute(change, self.factors)
        lines = [
            *self.completions.lines(change),
            *(f"{factor.cause}: {factor.key}" for factor in (*found.causes, *found.undecided)),
        ]
        return Explained(change, KIND, causes_of(found.causes), causes_of(found.undecided), "\n".join(lines))

    def extracted(self, change: Change) -> Explained:
        """Explain a row that comes from the graph."""
        found = attribute(change, self.factors, self.replay, self.actual)
        lines = [line for factor in (*found.causes, *found.undecided) for line in self.evidence.lines(change, factor)]
        if not found.causes and not found.undecided:
            lines = ["nothing that is recorded differs between the two runs"]
        return Explained(
            change,
            self.stage_of(change, found),
            causes_of(found.causes),
            tuple(name for name in causes_of(found.undecided) if name not in causes_of(found.causes)),
            "\n".join(dict.fromkeys(lines)),
        )

    def stage_of(self, change: Change, found: Attribution) -> str:
        """Name the first stage in which the item is another one: its record, the candidate, the verdict, or the row."""
        pairs = [(key[2], key[0]) for key in change.keys]
        columns = (*COLUMNS, "path", "label")
        if any(differ([table.get(pair) for table in self.candidates.tables], columns) for pair in pairs):
            return "ingest" if any(factor.cause == "dump" for factor in found.causes) else "extract"
        if any(factor.key == REVIEW for factor in found.causes):
            return REVIEW
        verdicts = [[table.get(pair) for pair in pairs] for table in self.verdicts.tables]
        return "filter" if verdicts[0] != verdicts[1] else "release"


def differ(rows: Sequence[Mapping[str, Any] | None], columns: Sequence[str]) -> bool:
    """Tell whether candidates differ in what decides over them."""
    a, b = ({name: row[name] for name in columns} if row else None for row in rows)
    return a != b


def causes_of(factors: Sequence[Factor]) -> tuple[str, ...]:
    """Name causes, each once."""
    return tuple(dict.fromkeys(factor.cause for factor in factors))
