"""The audit of a file: read, held against what is known, told, and mended into a copy."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.audit.all_checks import counted, inspect
from culturekit.audit.findings import Finding
from culturekit.audit.knowledge import Knowledge, known_from_graph, known_from_space
from culturekit.audit.mend import Mended, change_log_path, mend, write_log, write_sheet
from culturekit.audit.sheet import LAYOUTS, Form, Layout, Row, Sheet, layout_of
from culturekit.audit.token_counts import clip_tokens
from culturekit.errors import UsageError
from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.kg.countries import countries, use_countries_beside
from culturekit.records.schemas import ARTIFACTS
from culturekit.storage.spreadsheet_cells import read_csv_texts
from culturekit.storage.system_errors import raise_system_error
from culturekit.storage.tables import read_table

__all__ = ["Audit", "audit_file"]

NEAR = 0.98
"""The cosine from which two artifacts are worth a look."""

ROWS_AT_ONCE = 2_000

FORMS: Mapping[str, Form] = {".json": "json", ".parquet": "parquet", ".csv": "csv"}
BOM = b"\xef\xbb\xbf"
Cells: TypeAlias = dict[str, str | None]


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
    use_countries_beside(file, *(() if cspace is None else (cspace,)))
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


def near_pairs(folder: Path) -> dict[tuple[str, str], float]:
    """Find pairs of artifacts of one country and concept whose mean vectors have a cosine of NEAR or more."""
    vectors, ids = load_vectors(folder)
    means = mean_vectors(np.asarray(vectors, np.float32), ids)
    cells: dict[tuple[str, str], list[str]] = {}
    artifacts = read_table(folder / "artifacts.parquet", ARTIFACTS)
    for artifact, concepts, places in artifacts.select("artifact_id", "concepts", "countries").iter_rows():
        for concept in concepts if artifact in means else ():
            for country in places:
                cells.setdefault((concept, country), []).append(artifact)
    return {pair: cosine for members in cells.values() for pair, cosine in near_within(members, means)}


def mean_vectors(vectors: NDArray[np.float32], ids: list[str]) -> dict[str, NDArray[np.float32]]:
    """Give each artifact the mean of its vectors, at unit length; vectors are float32 (n, dim)."""
    names, place = np.unique(np.array(ids, dtype=object).astype(str), return_inverse=True)
    sums = np.zeros((len(names), vectors.shape[1]), np.float32)
    np.add.at(sums, place, vectors)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    units = sums / np.where(lengths > 0, lengths, 1)
    return {str(name): unit for name, unit in zip(names, units, strict=True)}


def near_within(members: list[str], means: dict[str, NDArray[np.float32]]) -> Iterator[tuple[tuple[str, str], float]]:
    """Compare the artifacts of one country and concept."""
    members = sorted(set(members))
    matrix = np.stack([means[name] for name in members])
    for begin in range(0, len(members), ROWS_AT_ONCE):
        cosines = matrix[begin : begin + ROWS_AT_ONCE] @ matrix.T
        for row, column in zip(*np.nonzero(cosines >= NEAR), strict=True):
            if begin + int(row) < int(column):
                yield (members[begin + int(row)], members[int(column)]), float(cosines[row, column])


def read_sheet(path: Path) -> Sheet:
    """Read a file by its suffix; what it is follows from its columns."""
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise UsageError("which layout is this?", where=str(path), expected=" or ".join(FORMS), found=path.suffix)
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    columns, rows = {"json": read_json, "parquet": read_parquet, "csv": read_csv}[form](path)
    layout = layout_of(columns)
    if layout is None:
        raise no_layout(path, columns)
    places = {getattr(country, layout.countries): country for country in countries().values()}
    return Sheet(layout, form, tuple(columns), tuple(Row(*each) for each in enumerate(rows)), places)


def no_layout(path: Path, columns: Sequence[str]) -> UsageError:
    """Say which columns lack, by the layout that comes nearest."""
    nearest: Layout = min(LAYOUTS, key=lambda layout: len(set(layout.needs) - set(columns)))
    lacking = [column for column in nearest.needs if column not in columns]
    return UsageError(
        "the columns are those of no layout",
        where=str(path),
        expected=f"the {nearest.name} layout, with {', '.join(nearest.needs)}",
        found=f"no {', '.join(lacking)}",
    )


def read_json(path: Path) -> tuple[list[str], Sequence[Cells]]:
    """Read an array of rows of texts; the columns are those of all rows, in the order of their first mention."""
    try:
        rows = msgspec.json.decode(path.read_bytes().removeprefix(BOM), type=list[Cells])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"not in the public CUBE layout: {error}", where=str(path), expected="an array of rows of texts"
        ) from error
    columns = names_of(rows) or list(LAYOUTS[0].needs)
    return columns, rows


def names_of(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the keys of rows, each once."""
    return list(dict.fromkeys(key for row in rows for key in row))


def read_parquet(path: Path) -> tuple[list[str], Sequence[dict[str, Any]]]:
    """Read a table as it is: what a stage would refuse, such as a repeated key, is a finding here."""
    try:
        frame = pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("not a readable Parquet file", where=str(path), found=str(error)) from error
    layout = layout_of(frame.columns)
    strange = [name for name in (layout.needs if layout else ()) if frame.schema[name] != pl.String]
    if strange:
        raise UsageError(
            "a column of another type than its table has",
            where=str(path),
            expected=f"text in {', '.join(strange)}",
            found=", ".join(str(frame.schema[name]) for name in strange),
        )
    return frame.columns, frame.to_dicts()


def read_csv(path: Path) -> tuple[list[str], Sequence[Cells]]:
    """Read CSV as text."""
    try:
        frame = read_csv_texts(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        found = str(error).partition("\n")[0]
        raise UsageError("not a readable CSV file", where=str(path), expected="UTF-8, a header", found=found) from error
    return frame.columns, frame.to_dicts()
