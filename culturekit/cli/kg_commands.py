"""`culturekit kg`: from the dump to candidates."""

import typer

from culturekit.cli.lazy import CommandAt, lazy_group

__all__ = ["app"]

CLI = "culturekit.cli"
COMMANDS = {
    "ingest": CommandAt(f"{CLI}.ingest_command:ingest", "latest-all.json.gz --out graph"),
    "extract": CommandAt("culturekit.pipeline.steps.extract_stages:EXTRACT"),
    "explain": CommandAt(f"{CLI}.graph_commands:explain", "Q2065278 --graph graph --roots cuisine"),
    "preview": CommandAt(f"{CLI}.graph_commands:preview", "--graph graph --roots landmarks --hops 6"),
    "diff": CommandAt(f"{CLI}.graph_commands:diff", "graph-2024 graph-2025 --out changes"),
    "stats": CommandAt(f"{CLI}.graph_commands:stats", "--graph graph"),
    "export": CommandAt(f"{CLI}.exchange_commands:export", "--graph graph --around Q746549 --hops 1 --out dish.nt"),
    "import": CommandAt(f"{CLI}.exchange_commands:import_command", "dish.graphml --out graph"),
    "query": CommandAt(
        f"{CLI}.exchange_commands:query", "'SELECT ?dish { ?dish wdt:P31 wd:Q746549 }' --graph graph --around Q746549"
    ),
    "entity": CommandAt(f"{CLI}.exchange_commands:entity", "Q746549 --contact you@example.org"),
}

app = typer.Typer(
    no_args_is_help=True,
    help="The knowledge graph: from a Wikidata dump to candidate artifacts.",
    cls=lazy_group("kg", COMMANDS),
)
