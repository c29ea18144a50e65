"""A graph store of what another tool wrote, on which everything works that works on a dump's."""

from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.kg.dump.build_store import store_rows
from culturekit.kg.exchange.graph_files import read_graph_file
from culturekit.kg.looking.neighbourhood import Neighbourhood
from culturekit.records.choices import GraphFormat
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.records.work import Outcome, Work

__all__ = ["import_graph"]

NOWHERE = {"aliases": [], "sitelinks": 0, "file": 0, "member": 0, "line": 0, "offset": 0}


def import_graph(work: Work, path: Path, form: GraphFormat) -> Outcome:
    """Write a graph store from a file; what the file only names, and says nothing of, counts as mentioned."""
    found, others = read_graph_file(path, form)
    if not found.edges:
        raise UsageError("the file has no statement about items", where=str(path), expected="statements such as P31")
    counts = store_rows(work.out, items_of(found), statements_of(found))
    return Outcome(counts, {"not-about-items": others} if others else {})


def items_of(found: Neighbourhood) -> pl.DataFrame:
    """Give a row to each item that is described: it has a label, a description or a statement."""
    stating = {edge.subject for edge in found.edges}
    rows = [
        {
            **NOWHERE, "qid": f"Q{item.number}", "number": item.number, "label": item.label,
            "label_language": item.label_language, "description": item.description,
        }
        for item in found.items
        if item.label is not None or item.description is not None or item.hop is not None or item.number in stating
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ITEMS.schema)


def statements_of(found: Neighbourhood) -> pl.DataFrame:
    """Give a row to each statement."""
    rows = [(e.subject, e.property, e.position, e.value, "value", e.rank, e.qualified, e.ended) for e in found.edges]
    return pl.DataFrame(rows, schema=STATEMENTS.schema, orient="row")
