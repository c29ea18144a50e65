"""`culturekit kg`: from the dump to candidates."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one

__all__ = ["app"]

ELSEWHERE = {
    "extract": CommandAt("culturekit.pipeline.steps.extract_stages:EXTRACT"),
    **{
        name: CommandAt(f"culturekit.cli.{place}", example)
        for name, place, example in (
            ("explain", "graph_commands:explain", "Q2065278 --graph graph --roots cuisine"),
            ("preview", "graph_commands:preview", "--graph graph --roots landmarks --hops 6"),
            ("diff", "graph_commands:diff", "graph-2024 graph-2025 --out changes"),
            ("stats", "graph_commands:stats", "--graph graph"),
            ("export", "exchange_commands:export", "--graph graph --around Q746549 --hops 1 --out dish.nt"),
            ("import", "exchange_commands:import_command", "dish.graphml --out graph"),
            (
                "query",
                "exchange_commands:query",
                "'SELECT ?dish { ?dish wdt:P31 wd:Q746549 }' --graph graph --around Q746549",
            ),
            ("entity", "exchange_commands:entity", "Q746549 --contact you@example.org"),
        )
    },
}

app = typer.Typer(
    no_args_is_help=True,
    help="The knowledge graph: from a Wikidata dump to candidate artifacts.",
    cls=lazy_group("kg", ELSEWHERE),
)


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
    redirects: Annotated[
        Path | None, typer.Option(help="File of `qid,target` lines: statements about the first are about the second.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do all work again, also what is finished.")] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Leave with 1 for any malformed line; else up to 0.1% of them are only told."),
    ] = False,
    workers: Workers = None,
    engine: EngineSpec = "local",
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Read a Wikidata dump into a graph store."""
    from culturekit.kg.dump.ingest import IngestOptions
    from culturekit.pipeline.steps.ingest_stage import ingest_stage

    options = IngestOptions(tuple(languages.split(",")), max_malformed)
    stage = ingest_stage(dump, options, sha256=sha256 or (), redirects=redirects)
    run_one(
        stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json, fresh=fresh, strict=strict
    )
