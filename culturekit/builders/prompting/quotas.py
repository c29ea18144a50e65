"""How many artifacts to draw per country and concept: one number, or a table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import polars as pl
from pydantic import Field

from culturekit.builders.space.public_cube import Key, key_of
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.spreadsheet_cells import SheetRow, read_sheet, sheet_bytes
from culturekit.core.yaml_source import StrictModel, read_yaml, validate
from culturekit.kg.countries import countries

Group: TypeAlias = tuple[str, str]  # a concept and the ISO code of a country

MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class Quotas:
    """Quotas by concept and country; None stands for every one that has no quota of its own."""

    table: Mapping[tuple[str | None, str | None], int] = field(default_factory=dict)

    def quota_of(self, group: Group) -> int:
        """Give the quota of a group, the closest one that is stated; 0 where none is."""
        concept, country = group
        for key in ((concept, country), (concept, None), (None, country), (None, None)):
            if key in self.table:
                return self.table[key]
        return 0

    def named(self) -> list[Group]:
        """List the groups that are named in full, which may be in no space."""
        return [(concept, country) for concept, country in self.table if concept and country]


class QuotaRow(StrictModel):
    """A quota as YAML states it; what is left out stands for all."""

    concept: str | None = None
    country: str | None = None
    quota: Annotated[int, Field(ge=0, le=MOST)]


class QuotaFile(StrictModel):
    """The file as a whole."""

    quotas: tuple[QuotaRow, ...]


def as_number(text: str) -> int | None:
    """Read a quota that is one number; None where the text names a table."""
    plain = text.strip()
    if not plain.lstrip("-").isdecimal():
        return None
    if not 1 <= int(plain) <= MOST:
        raise UsageError("a quota is a number of artifacts", expected=f"1 to {MOST:,}", found=plain)
    return int(plain)


def read_quotas(text: str) -> Quotas:
    """Read what a user gives as a quota: a number for every group, or the path of a table."""
    number = as_number(text)
    return load_quotas(Path(text)) if number is None else Quotas({(None, None): number})


def load_quotas(path: Path) -> Quotas:
    """Read a table of quotas in YAML or CSV; every mistake is said at once."""
    if path.suffix.lower() == ".csv":
        rows = read_sheet(path, ("concept", "country", "quota"))
        return gathered(path, ((row.line, "", *cells_of(path, row)) for row in rows))
    source = read_yaml(path)
    stated = validate(source, QuotaFile).quotas
    lines = [source.position(("quotas", index)).line for index in range(len(stated))]
    return gathered(
        path,
        (
            (line, f"quotas[{index}]", row.concept, row.country, row.quota)
            for index, (line, row) in enumerate(zip(lines, stated, strict=True))
        ),
    )


def cells_of(path: Path, row: SheetRow) -> tuple[str | None, str | None, int]:
    """Read a row of a CSV table; an empty concept or country stands for all."""
    cell = row.cells["quota"]
    if not (cell.isdecimal() and int(cell) <= MOST):
        message = f"expected a whole number up to {MOST:,}, found {cell!r}"
        raise ConfigError([Problem(message, str(path), row.line, "quota")])
    return row.cells["concept"] or None, row.cells["country"] or None, int(cell)


def gathered(path: Path, rows: Iterable[tuple[int, str, str | None, str | None, int]]) -> Quotas:
    """Gather rows into quotas; a country goes by its code or its name, and each group stands once."""
    codes = {country.name: country.iso for country in countries().values()} | {iso: iso for iso in countries()}
    table: dict[tuple[str | None, str | None], int] = {}
    problems = []
    for line, key, concept, country, quota in rows:
        if country is not None and country not in codes:
            problems.append(Problem(f"unknown country {country!r}", str(path), line, key or "country"))
            continue
        group = (concept, None if country is None else codes[country])
        if group in table:
            about = " in ".join(filter(None, group)) or "everything"
            problems.append(Problem(f"a second quota for {about}", str(path), line, key))
        table[group] = quota
    if not table and not problems:
        problems.append(Problem("the table has no quota", str(path)))
    if problems:
        raise ConfigError(problems)
    return Quotas(table)


# The sheet on which a person accepts, rejects or renames what was drawn, and what that person decided.

REVIEW_COLUMNS = ("artifact_id", "concept", "country", "place", "name", "prompt", "decision", "new_name", "link")
NEEDED = ("artifact_id", "concept", "country", "decision")

Verdict: TypeAlias = Literal["accept", "reject", "edit"]
VERDICTS: Mapping[str, Verdict] = {"accept": "accept", "reject": "reject", "edit": "edit", "edit name": "edit"}

Mistakes: TypeAlias = list[tuple[str, str]]  # what is wrong with a row, each by its column

Named = TypeVar("Named")
Decided = TypeVar("Decided")


@dataclass(frozen=True, slots=True)
class Decision:
    """What was decided about an artifact of a country; with `edit`, what it is called."""

    verdict: Verdict
    name: str | None = None


Decisions: TypeAlias = Mapping[Key, Decision]  # by concept, country and artifact


def read_decisions(paths: Sequence[Path], space: pl.DataFrame) -> Decisions:
    """Read a chain of sheets; the later one counts."""
    known = set(space.select("concept", "country", "artifact_id").iter_rows())
    decided: dict[Key, Decision] = {}
    for path in paths:
        rows = decided_rows(
            path, NEEDED, lambda row: key_of(row.cells),
            lambda row: [*key_mistakes(key_of(row.cells), known), *cell_mistakes(row)], decision_of,
        )  # fmt: skip
        decided.update({key: decision for key, decision in rows.items() if decision is not None})
    return decided


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
    for row in read_sheet(path, needed):
        mistakes = mistakes_of(row)
        key, decision = key_of(row), None if mistakes else decision_of(row)
        if not mistakes and key in found and found[key][1] != decision:
            mistakes = [("decision", f"{row.cells[needed[0]]} is decided otherwise in row {found[key][0]}")]
        problems += [Problem(message, str(path), row.line, column) for column, message in mistakes]
        found.setdefault(key, (row.line, decision))
    if problems:
        raise ConfigError(problems)
    return {key: decision for key, (_, decision) in found.items()}


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
        decision = decisions.get(key_of(row))
        rows.append({
            **{name: row[name] for name in ("artifact_id", "concept", "country", "name")},
            "place": str(row["draw_place"]), "prompt": prompt or "", "decision": decision.verdict if decision else "",
            "new_name": (decision.name or "") if decision else "",
            "link": f"https://www.wikidata.org/wiki/{row['qid']}" if row["qid"] else "",
        })  # fmt: skip
    return sheet_bytes(REVIEW_COLUMNS, rows)
