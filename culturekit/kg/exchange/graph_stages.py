"""The stages that compare graphs and take one in."""

from pathlib import Path

from culturekit.core.choices import GraphFormat
from culturekit.core.registry import needing
from culturekit.core.stage import Stage
from culturekit.kg.inspection.compare import write_comparison


def compare_stage(a: Path, b: Path) -> Stage:
    """Compare two graphs or two extractions."""
    return Stage(
        "diff",
        "diff",
        1,
        lambda work: write_comparison(work, a, b),
        {"before": a, "after": b},
        {},
        packages=("polars",),
    )


def import_graph_stage(path: Path, form: GraphFormat) -> Stage:
    """Read a graph in one of the formats that `kg export` writes."""
    with needing("kg", "culturekit kg import"):
        from culturekit.kg.exchange.graph_files import import_graph

    return Stage(
        "graph", "import-graph", 1, lambda work: import_graph(work, path, form), {"dump-0": path}, {"format": form},
        packages=("networkx", "polars", "rdflib"),
    )  # fmt: skip
