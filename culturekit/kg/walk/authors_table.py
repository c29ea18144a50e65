"""The rows of the authors' semantics as a table."""

import polars as pl

from culturekit.kg.facts import qid_of
from culturekit.kg.store import Graph
from culturekit.kg.walk.authors_walk import Ways
from culturekit.records.schemas import AUTHORS_ROWS

__all__ = ["authors_table"]


def authors_table(graph: Graph, concept: str, ways: Ways) -> pl.DataFrame:
    """Write out every way of a concept; those that end alike are numbered."""
    ones, copies = ways.one_by_one()
    numbers = {"root": ones.roots, "parent": ones.parents, "qid": ones.nodes}
    rows = pl.DataFrame({name: graph.nodes[nodes] for name, nodes in numbers.items()}).with_columns(
        pl.Series("hop", ones.hops), pl.Series("copy", copies), concept=pl.lit(concept)
    )
    return rows.with_columns(qid_of(name).alias(name) for name in numbers).select(list(AUTHORS_ROWS.columns))
