"""The formats of a neighbourhood by name: how each is written, its suffix, how it is read, and imported as a graph."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import polars as pl
from rdflib import Graph

from culturekit.errors import UsageError
from culturekit.kg.dump.build_store import NO_DUMP, store_rows
from culturekit.kg.exchange.networkx_graphs import as_graphml, as_node_link, from_graphml, from_node_link
from culturekit.kg.exchange.rdf_graphs import from_rdf, parsed_rdf, rdf_graph, written_rdf
from culturekit.kg.exchange.triple_forms import TRIPLES
from culturekit.kg.looking.neighbourhood import Neighbourhood
from culturekit.records.choices import GraphFormat
from culturekit.records.schemas import ITEMS, STATEMENTS
from culturekit.records.work import Outcome, Work

__all__ = ["FORMATS", "form_of", "import_graph", "read_graph_file", "read_triples"]

Read = TypeVar("Read")

MOST_BYTES = 500_000_000
"""What is larger is a dump, and is read as one."""


@dataclass(frozen=True, slots=True)
class Form:
    """A format; `read` also counts what is in a file and has no place in a graph store."""

    suffix: str
    write: Callable[[Neighbourhood], bytes]
    read: Callable[[bytes], tuple[Neighbourhood, int]]


def rdf_form(name: str, suffix: str) -> Form:
    """Give a format of triples."""
    return Form(
        suffix, lambda around: written_rdf(rdf_graph(around), name), lambda content: from_rdf(parsed_rdf(content, name))
    )


FORMATS: Mapping[GraphFormat, Form] = {
    "ntriples": rdf_form(*TRIPLES["ntriples"]),
    "turtle": rdf_form(*TRIPLES["turtle"]),
    "json-ld": rdf_form(*TRIPLES["json-ld"]),
    "graphml": Form(".graphml", as_graphml, lambda content: (from_graphml(content), 0)),
    "node-link": Form(".json", as_node_link, lambda content: (from_node_link(content), 0)),
}


def form_of(path: Path) -> GraphFormat:
    """Tell a format by the suffix of a file."""
    for name, form in FORMATS.items():
        if path.suffix.lower() == form.suffix:
            return name
    known = ", ".join(f"{form.suffix} ({name})" for name, form in FORMATS.items())
    raise UsageError("no format has this suffix", where=str(path), expected=known, hint="Name one with --format.")


def read_graph_file(path: Path, form: GraphFormat) -> tuple[Neighbourhood, int]:
    """Read a file that another tool wrote, or `kg export`; the number counts what was passed over."""
    return parsed(path, form, FORMATS[form].read)


def read_triples(path: Path) -> Graph:
    """Read a file of triples, by its suffix."""
    form = form_of(path)
    if form not in TRIPLES:
        raise UsageError("no triples", where=str(path), expected=" or ".join(suffix for _, suffix in TRIPLES.values()))
    return parsed(path, form, lambda content: parsed_rdf(content, TRIPLES[form][0]))


def parsed(path: Path, form: GraphFormat, parse: Callable[[bytes], Read]) -> Read:
    """Parse a file, and say of one that cannot be parsed what and where."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    if path.stat().st_size > MOST_BYTES:
        raise UsageError(
            "too large for this", where=str(path), expected=f"{MOST_BYTES:,} bytes at most",
            hint="A whole dump is read with: culturekit kg ingest",
        )  # fmt: skip
    try:
        return parse(path.read_bytes())
    except UsageError as error:
        where = f"{path}: {error.where}" if error.where else str(path)
        raise UsageError(error.problem, where=where, expected=error.expected, found=error.found) from error
    except Exception as error:  # each parser has errors of its own
        found = " ".join(f"{type(error).__name__} {error}".split())[:300]
        raise UsageError(f"cannot be read as {form}", where=str(path), found=found) from error


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
            **NO_DUMP, "qid": f"Q{item.number}", "number": item.number, "label": item.label,
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
