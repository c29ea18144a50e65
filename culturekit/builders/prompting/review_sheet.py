"""The sheet on which a person accepts, rejects or renames what was drawn, and what that person decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import polars as pl

from culturekit.builders.space.public_cube import Key, key_of
from culturekit.builders.space.spreadsheet_rows import SheetRow, read_sheet_rows, sheet_bytes
from culturekit.errors import ConfigError, Problem

__all__ = ["REVIEW_COLUMNS", "Decision", "Decisions", "Mistakes", "decided_rows", "read_decisions", "review_sheet"]

REVIEW_COLUMNS = ("artifact_id", "concept", "country", "place", "name", "prompt", "decision", "new_name", "link")
NEEDED = ("artifact_id", "concept", "country", "decision")

Verdict: TypeAlias = Literal["accept", "reject", "edit"]
VERDICTS: Mapping[str, Verdict] = {"accept": "accept", "reject": "reject", "edit": "edit", "edit name": "edit"}

Mistakes: TypeAlias = list[tuple[str, str]]
"""What is wrong with a row, each by its column."""

Named = TypeVar("Named")
Decided = TypeVar("Decided")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about an artifact of a country; with `edit`, what it is called."""

    verdict: Verdict
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Decisions:
    """All decisions, by concept, country and artifact; of several sheets the later one counts."""

    by_key: Mapping[Key, Decision]

    def decision_about(self, row: Mapping[str, Any]) -> Decision | None:
        """Find the decision about a row of the space."""
        return self.by_key.get(key_of(row))


def read_decisions(paths: Sequence[Path], space: pl.DataFrame) -> Decisions:
    """Read a chain of sheets."""
    known = set(space.select("concept", "country", "artifact_id").iter_rows())
    decided: dict[Key, Decision] = {}
    for path in paths:
        rows = decided_rows(path, NEEDED, lambda row: key_of(row.cells), partial(row_mistakes, known), decision_of)
        decided.update({key: decision for key, decision in rows.items() if decision is not None})
    return Decisions(decided)


def decided_rows(
    path: Path,
    needed: Sequence[str],
    key_of: Callable[[SheetRow], Named],
    mistakes_of: Callable[[SheetRow], Mistakes],
    decision_of: Callable[[SheetRow], Decided | None],
) -> dict[Named, Decided | None]:
    """Read what a sheet decides of each thing it names; every mistake is said at once, with its row and column."""
    problems: list[Problem] = []
    found: dict[Named, tuple[int, Decided | None]] = {}
    for row in read_sheet_rows(path, needed):
        mistakes = mistakes_of(row)
        key, decision = key_of(row), None if mistakes else decision_of(row)
        if not mistakes and key in found and found[key][1] != decision:
            mistakes = [("decision", f"{row.cells[needed[0]]} is decided otherwise in row {found[key][0]}")]
        problems += [Problem(message, str(path), row.line, column) for column, message in mistakes]
        found.setdefault(key, (row.line, decision))
    if problems:
        raise ConfigError(problems)
    return {key: decision for key, (_, decision) in found.items()}


def row_mistakes(known: set[Key], row: SheetRow) -> Mistakes:
    """Say what is wrong with a row."""
    return [*key_mistakes(key_of(row.cells), known), *cell_mistakes(row)]


def key_mistakes(key: Key, known: set[Key]) -> Mistakes:
    """Say where a row names something that is not in the space, column by column."""
    if key in known:
        return []
    concept, country, artifact_id = key
    if artifact_id not in {name for _, _, name in known}:
        return [("artifact_id", f"there is no artifact {artifact_id!r} in the cultural space")]
    if not any((concept, artifact_id) == (of, name) for of, _, name in known):
        return [("concept", f"{artifact_id} is not there under {concept!r}")]
    return [("country", f"{artifact_id} is not there under {country!r}")]


def cell_mistakes(row: SheetRow) -> Mistakes:
    """Say what is wrong with the decision of a row."""
    stated = row.cells["decision"].lower()
    new_name = row.cells.get("new_name", "")
    if stated and stated not in VERDICTS:
        return [("decision", f"{row.cells['decision']!r} is no decision; expected accept, reject, edit or nothing")]
    verdict = VERDICTS.get(stated)
    if verdict == "edit" and not new_name:
        return [("new_name", "an edit needs the new name")]
    if new_name and verdict != "edit":
        return [("new_name", f"a new name needs the decision edit, found {row.cells['decision'] or 'none'}")]
    if any(not letter.isprintable() for letter in new_name):
        return [("new_name", f"a name is one line of text, found {new_name!r}")]
    return []


def decision_of(row: SheetRow) -> Decision | None:
    """Read the decision of a row; None where there is none yet."""
    verdict = VERDICTS.get(row.cells["decision"].lower())
    if verdict is None:
        return None
    return Decision(verdict, row.cells["new_name"] if verdict == "edit" else None)


def review_sheet(seen: Sequence[Mapping[str, Any]], prompts: Sequence[str | None], decisions: Decisions) -> bytes:
    """Write the sheet of all that was drawn so far, with what is decided already: it holds its whole history."""
    rows = []
    for row, prompt in zip(seen, prompts, strict=True):
        decision = decisions.decision_about(row)
        rows.append(
            {
                "artifact_id": row["artifact_id"],
                "concept": row["concept"],
                "country": row["country"],
                "place": str(row["draw_place"]),
                "name": row["name"],
                "prompt": prompt or "",
                "decision": decision.verdict if decision else "",
                "new_name": (decision.name or "") if decision else "",
                "link": f"https://www.wikidata.org/wiki/{row['qid']}" if row["qid"] else "",
            }
        )
    return sheet_bytes(REVIEW_COLUMNS, rows)
