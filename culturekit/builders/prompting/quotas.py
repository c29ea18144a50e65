"""How many artifacts to draw per country and concept: one number, or a table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import Field

from culturekit.builders.space.spreadsheet_rows import SheetRow, read_sheet_rows
from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.countries import countries
from culturekit.storage.yaml_model import StrictModel, validate
from culturekit.storage.yaml_source import read_yaml

__all__ = ["MOST", "Group", "Quotas", "as_number", "load_quotas", "read_quotas"]

Group: TypeAlias = tuple[str, str]
"""A concept and the ISO code of a country."""

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

    def concepts(self) -> list[str]:
        """List the concepts that are named for all countries."""
        return [concept for concept, country in self.table if concept and country is None]


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
        rows = read_sheet_rows(path, ("concept", "country", "quota"))
        return gathered(path, ((row.line, "", *cells_of(path, row)) for row in rows))
    source = read_yaml(path)
    stated = validate(source, QuotaFile).quotas
    lines = [source.place(("quotas", index)).line for index in range(len(stated))]
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
