"""The rows of the authors' semantics as a table."""

import numpy as np
import polars as pl

from culturekit.kg.authors_walk import Ways
from culturekit.kg.facts import qid_of
from culturekit.kg.store import Graph
from culturekit.records.schemas import AUTHORS_ROWS

__all__ = ["authors_table"]


def authors_table(graph: Graph, concept: str, ways: Ways) -> pl.DataFrame:
    """Write out every way of a concept; those that end alike are numbered."""
    counts = ways.counts.astype(np.int64)
    every = np.repeat(np.arange(len(counts)), counts)
    copy = np.arange(len(every)) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    numbers = pl.DataFrame(
        {
            "root": graph.nodes[ways.roots[every]],
            "hop": ways.hops[every],
            "parent": graph.nodes[ways.parents[every]],
            "qid": graph.nodes[ways.nodes[every]],
            "copy": copy.astype(np.uint32),
        }
    )
    names = [qid_of(name).alias(name) for name in ("root", "parent", "qid")]
    return numbers.with_columns(*names, concept=pl.lit(concept)).select(list(AUTHORS_ROWS.columns))
