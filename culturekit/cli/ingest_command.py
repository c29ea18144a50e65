"""`culturekit kg ingest`: from a dump to a graph."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, EngineSpec, Out, Wait, Workers
from culturekit.cli.stage_command import run_one
from culturekit.kg.dump.ingest import IngestOptions, ingest_stage


def ingest(
    dump: Annotated[
        list[Path],
        typer.Argument(
            help="Dump files, or a folder of them, as the chunks of a Wikimedia Enterprise snapshot: JSON or truthy "
            "triples, plain, .gz, .tar.gz, .bz2 or .zst; sample, or - for standard input."
        ),
    ],
    out: Out,
    options: IngestOptions,
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
    from culturekit.config.checks import dump_files

    files = [path for given in dump for path in dump_files(str(given))]
    stage = ingest_stage(files, options, sha256=sha256 or (), redirects=redirects)
    run_one(
        stage, out, workers=workers, engine=engine, also=also, wait=wait, as_json=as_json, fresh=fresh, strict=strict
    )
