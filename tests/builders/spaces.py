"""Small tables that builder tests start from."""

from collections.abc import Mapping

import polars as pl

from culturekit.core.schemas import CANDIDATES, CSPACE
from culturekit.core.table import Table

EMPTY: Mapping[str, object] = {"label": "x", "hop": 1, "sitelinks": 0, "popularity": 1.0, "source": "wikidata"}


def rows_of(table: Table, *rows: Mapping[str, object]) -> pl.DataFrame:
    """Fill in what a row leaves out: nothing where that is allowed, empty lists and plain values elsewhere."""
    full = []
    for row in rows:
        filled: dict[str, object] = {}
        for name, column in table.columns.items():
            blank = [] if isinstance(column.dtype, pl.List) else EMPTY.get(name)
            filled[name] = row.get(name, blank)
        full.append(filled)
    return pl.DataFrame(full, schema=table.schema)


def candidates(*rows: Mapping[str, object]) -> pl.DataFrame:
    return rows_of(CANDIDATES, *rows)


def cspace(*rows: Mapping[str, object]) -> pl.DataFrame:
    return rows_of(CSPACE, *rows)


def artifact(number: int, **changes: object) -> dict[str, object]:
    """A row of the cultural space."""
    row: dict[str, object] = {
        "artifact_id": f"Q{number}", "qid": f"Q{number}", "name": f"thing {number}", "concept": "cuisine",
        "country": "BR", "country_name": "Brazil", "continent": "South America", "path": ["Q2095", f"Q{number}"],
        "popularity_source": "sitelinks",
    }  # fmt: skip
    return {**row, **changes}
