"""The audit of a file: read, held against what is known, told, and mended into a copy."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culturekit.audit.findings import Finding
from culturekit.audit.graph_source import known_from_graph
from culturekit.audit.inspect_sheet import counted, inspect
from culturekit.audit.knowledge import Knowledge, known_from_space
from culturekit.audit.mend import Mended, mend
from culturekit.audit.near_vectors import near_pairs
from culturekit.audit.read_sheet import read_sheet
from culturekit.audit.sheet import Sheet
from culturekit.audit.token_counts import clip_tokens
from culturekit.audit.write_sheet import change_log_path, write_log, write_sheet

__all__ = ["Audit", "audit_file"]


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit found in a file, and what was mended."""

    file: Path
    layout: str
    rows: int
    findings: tuple[Finding, ...]
    mended: Mended | None = None
    fixed: Path | None = None

    @property
    def has_findings(self) -> bool:
        """Tell whether there is an error or a warning."""
        return any(map(counted, self.findings))

    def as_data(self) -> dict[str, Any]:
        """Give the audit for machines."""
        data: dict[str, Any] = {
            "file": str(self.file),
            "layout": self.layout,
            "rows": self.rows,
            "counts": self.counts(),
            "severities": dict(sorted(Counter(finding.severity for finding in self.findings).items())),
            "findings": [finding.as_data() for finding in self.findings],
        }
        if self.mended is not None and self.fixed is not None:
            data["fixed"] = {
                "file": str(self.fixed),
                "changes": str(change_log_path(self.fixed)),
                "rows": len(self.mended.sheet.rows),
                "changed_cells": sum(line.action == "changed" for line in self.mended.log),
                "set_aside": sum(line.action == "set aside" for line in self.mended.log),
                "notes": len(self.mended.left),
            }
        return data

    def counts(self) -> Mapping[str, int]:
        """Count findings by code."""
        return dict(sorted(Counter(finding.code for finding in self.findings).items()))


def audit_file(
    file: Path,
    *,
    fix: Path | None = None,
    graph: Path | None = None,
    cspace: Path | None = None,
    index: Path | None = None,
) -> Audit:
    """Audit a file, and write a mended copy with its change log where one is asked for."""
    sheet = read_sheet(file)
    knowledge = knowledge_of(sheet, graph=graph, cspace=cspace, index=index)
    findings = tuple(inspect(sheet, knowledge))
    mended = None
    if fix is not None:
        mended = mend(sheet, knowledge)
        write_sheet(mended.sheet, file, fix)
        write_log(mended.log, change_log_path(fix))
    return Audit(file, sheet.layout.name, len(sheet.rows), findings, mended, fix)


def knowledge_of(sheet: Sheet, *, graph: Path | None, cspace: Path | None, index: Path | None) -> Knowledge:
    """Gather what is at hand besides the file."""
    sources = [] if cspace is None else [known_from_space(cspace)]
    if graph is not None:
        sources.append(known_from_graph(graph, sheet))
    count, exact = clip_tokens()
    return Knowledge(sources, count, exact, {} if index is None else near_pairs(index))
