"""`culturekit kg`: from the dump to candidates."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait, Workers
from culturekit.cli.stages import run_one
from culturekit.records.choices import CountryChoice, Ended, Ranks, Semantics

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The knowledge graph: from a Wikidata dump to candidate artifacts.")


@app.command(epilog="Example: culturekit kg ingest latest-all.json.gz --out graph")
def ingest(
    dump: Annotated[list[Path], typer.Argument(help="Dump files: .json, .json.gz, .json.bz2 or .json.zst.")],
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
    from culturekit.kg.extract import ExtractOptions
    from culturekit.pipeline.graph_stages import extract_stage

    said = {"ranks": ranks, "ended": ended, "country_choice": countries, "expand_artifacts": expand_artifacts}
    concepts = [overridden(with_hops(load_concept(name), hops), said) for name in roots]
    options = ExtractOptions.of(semantics, most_rows=max_rows)
    stage = extract_stage(graph, concepts, options, successors=successors)
    run_one(stage, out, also=also, wait=wait, as_json=as_json)
