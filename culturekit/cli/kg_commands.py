"""`culturekit kg`: from the dump to candidates."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli import graph_commands
from culturekit.cli.lazy import CommandAt, lazy_group
from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.errors import UsageError
from culturekit.records.choices import CountryChoice, Ended, KgSource, Ranks, Semantics
from culturekit.registry import needing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from culturekit.kg.concepts import Concept
    from culturekit.kg.walk.extract import ExtractOptions
    from culturekit.stages.stage import Stage

__all__ = ["app"]

ELSEWHERE = {
    name: CommandAt(f"culturekit.cli.exchange_commands:{function}", example)
    for name, function, example in (
        ("export", "export", "--graph graph --around Q746549 --hops 1 --out dish.nt"),
        ("import", "import_command", "dish.graphml --out graph"),
        ("query", "query", "'SELECT ?dish { ?dish wdt:P31 wd:Q746549 }' --graph graph --around Q746549"),
        ("entity", "entity", "Q746549 --contact you@example.org"),
    )
}

app = typer.Typer(
    no_args_is_help=True,
    help="The knowledge graph: from a Wikidata dump to candidate artifacts.",
    cls=lazy_group("kg", ELSEWHERE),
)
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


@app.command(epilog="Example: culturekit kg extract --graph graph --roots cuisine --out candidates")
def extract(
    roots: Annotated[list[str], typer.Option(help="Root config: a YAML file, or a shipped concept. Repeatable.")],
    out: Out,
    graph: Annotated[Path | None, typer.Option(help="Graph store that `kg ingest` wrote.")] = None,
    source: Annotated[KgSource, typer.Option(help="Where facts come from: a graph, or an endpoint.")] = "dump",
    endpoint: Annotated[str | None, typer.Option(help="URL of the SPARQL endpoint, for --source sparql.")] = None,
    contact: Annotated[
        str | None, typer.Option(help="Mail address or URL that the endpoint is told, for --source sparql.")
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps the endpoint's replies for other runs too.")
    ] = None,
    hops: Annotated[
        int | None, typer.Option(min=1, max=40, help="Hops for every root, over those of the file.")
    ] = None,
    ranks: Annotated[
        Ranks | None, typer.Option(help="Statements that count, over the file; truthy: those of best rank.")
    ] = None,
    ended: Annotated[
        Ended | None, typer.Option(help="What to do with statements that have an end (P582), over the file.")
    ] = None,
    countries: Annotated[
        CountryChoice | None,
        typer.Option(help="Countries of P495 and P17, or of P17 only where P495 has none; over the file."),
    ] = None,
    expand_artifacts: Annotated[
        bool | None, typer.Option(help="Walk on below artifacts too, or not; over the file.")
    ] = None,
    successors: Annotated[
        Path | None, typer.Option(help="YAML file, `successors: {Q15180: Q159}`: which country stands for which.")
    ] = None,
    semantics: Annotated[
        Semantics,
        typer.Option(help="authors: write authors_rows.parquet too, a row for every way, as the published code does."),
    ] = "default",
    max_rows: Annotated[
        int | None, typer.Option(min=1, help="With --semantics authors: more rows than that are refused. [10 million]")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Walk the graph from the roots of concepts and write the candidates."""
    from culturekit.kg.concept_overrides import overridden
    from culturekit.kg.concepts import load_concept, with_hops
    from culturekit.kg.walk.extract import ExtractOptions

    said = {"ranks": ranks, "ended": ended, "country_choice": countries, "expand_artifacts": expand_artifacts}
    concepts = [overridden(with_hops(load_concept(name), hops), said) for name in roots]
    options = ExtractOptions.of(semantics, most_rows=max_rows)
    if source == "sparql":
        stage = stage_of_endpoint(graph, endpoint, contact, cache, concepts, options, successors)
    else:
        stage = stage_of_graph(graph, endpoint, contact, cache, concepts, options, successors)
    run_one(stage, out, also=also, wait=wait, as_json=as_json)


def stage_of_graph(
    graph: Path | None,
    endpoint: str | None,
    contact: str | None,
    cache: Path | None,
    concepts: "Sequence[Concept]",
    options: "ExtractOptions",
    successors: Path | None,
) -> "Stage":
    """Walk a graph; what only an endpoint needs is refused."""
    from culturekit.pipeline.steps.graph_stages import extract_stage

    if graph is None:
        raise UsageError("there is nothing to walk", expected="--graph, or --source sparql with --endpoint")
    if (endpoint, contact, cache) != (None, None, None):
        raise UsageError("--endpoint, --contact and --cache go with --source sparql")
    return extract_stage(graph, concepts, options, successors=successors)


def stage_of_endpoint(
    graph: Path | None,
    endpoint: str | None,
    contact: str | None,
    cache: Path | None,
    concepts: "Sequence[Concept]",
    options: "ExtractOptions",
    successors: Path | None,
) -> "Stage":
    """Ask an endpoint, which has to be named and told who asks."""
    with needing("kg", "--source sparql"):
        from culturekit.pipeline.steps.graph_stages import sparql_stage

    if graph is not None:
        raise UsageError("--graph goes with --source dump")
    if options.semantics == "authors":
        raise UsageError("--semantics authors needs a whole graph", expected="--source dump")
    if endpoint is None or contact is None:
        raise UsageError(
            "an endpoint is asked by its URL, and is told whom to write to when something goes wrong",
            expected="--endpoint URL and --contact MAIL_OR_URL",
        )
    return sparql_stage(endpoint, concepts, options, contact=contact, cache=cache, successors=successors)
