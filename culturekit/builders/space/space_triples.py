"""A cultural space as RDF: a resource per row, whose item is Wikidata's, so that it joins what others say of it."""

from decimal import Decimal
from urllib.parse import quote

import polars as pl
from rdflib import RDFS, XSD, Literal, Namespace

from culturekit.kg.exchange.graph_files import ENTITY, new_graph, written_rdf

COLUMN, ROW = Namespace("urn:culturekit:column:"), Namespace("urn:culturekit:artifact:")


def space_triples(space: pl.DataFrame, form: str) -> bytes:
    """Write rows that conform to CSPACE, by the name that rdflib has for a form.

    A path is one literal, its items in their order. Popularity is a decimal: rdflib writes a double in Turtle with six
    digits after the first.
    """
    graph = new_graph()
    graph.bind("ck", COLUMN)
    for row in space.iter_rows(named=True):
        subject = ROW["/".join(quote(row[name], safe="") for name in ("concept", "country", "artifact_id"))]
        graph.add((subject, RDFS.label, Literal(row["name"])))
        if row["qid"] is not None:
            graph.add((subject, COLUMN["item"], ENTITY[row["qid"]]))
        for name, cell in row.items():
            if isinstance(cell, str):
                graph.add((subject, COLUMN[name], Literal(cell)))
            elif isinstance(cell, float):
                graph.add((subject, COLUMN[name], Literal(f"{Decimal(repr(cell)):f}", datatype=XSD.decimal)))
            elif isinstance(cell, list):
                graph.add((subject, COLUMN[name], Literal(" ".join(cell))))
    return written_rdf(graph, form)
