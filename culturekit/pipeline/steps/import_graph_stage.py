"""The stage from a graph that another tool wrote to a graph store."""

from pathlib import Path

from culturekit.kg.exchange.import_graph import import_graph
from culturekit.records.choices import GraphFormat
from culturekit.stages.stage import Stage

__all__ = ["import_graph_stage"]


def import_graph_stage(path: Path, form: GraphFormat, *, name: str = "graph") -> Stage:
    """Read a graph in one of the formats that `kg export` writes."""
    return Stage(
        name, "import-graph", 1, lambda work: import_graph(work, path, form), {"dump-0": path}, {"format": form},
        packages=("networkx", "polars", "rdflib"),
    )  # fmt: skip
