"""What a verification says: what is wrong, which numbers were worked out again, and how."""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import polars as pl

from culturekit.errors import CultureKitError

__all__ = ["Finding", "Ledger", "ScoreVerdict", "Severity", "Verdict"]

Severity: TypeAlias = Literal["broken", "finding", "note"]
"""`broken`: bytes or numbers are not what they are said to be; `finding`: a person has to look at it; `note`: what
cannot be followed from here, and need not be."""

Verdict: TypeAlias = Literal["verified", "consistent", "not verifiable", "wrong"]
"""Worked out again and equal; in keeping with what stands beside it; out of reach, for a stated reason; not equal."""

UNREADABLE = (
    CultureKitError, OSError, ValueError, KeyError, IndexError, TypeError, AttributeError, ArithmeticError,
    pl.exceptions.PolarsError, sqlite3.Error,
)  # fmt: skip
"""What reading a file that somebody changed can raise."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be: how bad, which check, where, what, and how it should have been."""

    severity: Severity
    check: str
    where: str
    problem: str
    expected: str = ""
    found: str = ""

    def __str__(self) -> str:
        """Say it in one line."""
        text = f"{self.where}: {self.problem}"
        if self.expected:
            text += f"; expected {self.expected}"
        if self.found:
            text += f", found {self.found}" if self.expected else f"; found {self.found}"
        return text


@dataclass(frozen=True, slots=True)
class ScoreVerdict:
    """What became of one row of a `scores` table: which row, what it scores, and how far it was worked out again."""

    folder: str
    row: int
    metric: str
    model: str
    concept: str | None
    country: str | None
    group: str | None
    params: str
    verdict: Verdict
    how: str


@dataclass(slots=True)
class Ledger:
    """Gathers findings and verdicts while the checks go on, and counts what was looked at."""

    findings: list[Finding] = field(default_factory=list)
    verdicts: list[ScoreVerdict] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)

    def broken(self, check: str, where: str, problem: str, *, expected: object = "", found: object = "") -> None:
        """Say that something is not what it is said to be."""
        self.findings.append(Finding("broken", check, where, problem, str(expected), str(found)))

    def finding(self, check: str, where: str, problem: str, *, expected: object = "", found: object = "") -> None:
        """Say that a person has to look at something."""
        self.findings.append(Finding("finding", check, where, problem, str(expected), str(found)))

    def note(self, check: str, where: str, problem: str) -> None:
        """Say what cannot be followed from here."""
        self.findings.append(Finding("note", check, where, problem))

    def judge(self, folder: str, row: Mapping[str, Any], verdict: Verdict, how: str) -> None:
        """Say what became of a score; `row` has its number beside its columns."""
        self.verdicts.append(
            ScoreVerdict(
                folder, row["row"], row["metric"], row["model"], row["concept"], row["country"], row["group"],
                row["params"], verdict, how,
            )
        )  # fmt: skip

    def not_verifiable(self, folder: str, rows: Iterable[Mapping[str, Any]], why: str) -> None:
        """Say of all scores why they are out of reach."""
        for row in rows:
            self.judge(folder, row, "not verifiable", why)

    def count(self, what: str, number: int = 1) -> None:
        """Count what was looked at."""
        self.checked[what] += number

    @contextmanager
    def guarded(self, check: str, where: str) -> Iterator[None]:
        """Turn what a changed file raises into a finding, so that the other checks go on."""
        try:
            yield
        except UNREADABLE as error:
            self.broken(check, where, f"could not be read as it should be ({type(error).__name__}: {error})")
