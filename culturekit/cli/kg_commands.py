"""`culturekit kg`: from the dump to candidates."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli import graph_commands
from culturekit.cli.options import Also, AsJson, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The knowledge graph: from a Wikidata dump to candidate artifacts.")
graph_commands.register(app)


@app.command(epilog="Example: culturekit kg ingest latest-all.json.gz --out graph")
def ingest(
    dump: Annotated[
        list[Path], typer.Argument(help="Dump files: .json, .json.gz, .json.bz2, .json.zst; or - for standard input.")
    ],
    out: Out,
    languages: Annotated[str, typer.Option(help="Languages of labels after en and mul, separated by commas.")] = "en",
    max_malformed: Annotated[
        float, typer.Option(min=0, max=1, help="Share of malformed lines above which the run stops.")
    ] = 0.001,
    sha256: Annotated[
        list[str] | None, typer.Option(help="Published SHA-256 of a dump file; one for each, in their order.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do all work again, also what is finished.")] = False,
    workers: Workers = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Read a Wikidata dump into a graph store."""
    from culturekit.kg.ingest import IngestOptions
    from culturekit.pipeline.graph_stages import ingest_stage

    options = IngestOptions(tuple(languages.split(",")), max_malformed)
    stage = ingest_stage(dump, options, sha256=sha256 or ())
    run_one(stage, out, workers=workers, also=also, wait=wait, as_json=as_json, fresh=fresh)


@app.command(epilog="Example: culturekit kg extract --graph graph --roots cuisine --out candidates")
def extract(
    graph: Annotated[Path, typer.Option(help="Graph store that `kg ingest` wrote.")],
    roots: Annotated[list[str], typer.Option(help="Root config: a YAML file, or a shipped concept. Repeatable.")],
    out: Out,
    hops: Annotated[
        int | None, typer.Option(min=1, max=40, help="Hops for every root, over those of the file.")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Walk the graph from the roots of concepts and write the candidates."""
    from culturekit.kg.concepts import load_concept, with_hops
    from culturekit.pipeline.graph_stages import extract_stage

    concepts = [with_hops(load_concept(name), hops) for name in roots]
    run_one(extract_stage(graph, concepts), out, also=also, wait=wait, as_json=as_json)
