"""`culturekit verify`: work out again what a run says."""

import json
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing.progress import progress_for

__all__ = ["verify"]


def verify(
    run_folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="Folder of a run, or one finished stage folder such as scores.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the findings and the verdict on each score, as JSON lines.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a run's hashes, and work out every score again with code that shares nothing with the metrics."""
    from culturekit.verify.tell import as_data, lines_of, write_verification
    from culturekit.verify.verify_run import verify_run

    with progress_for(as_json=as_json) as progress:
        progress.stage("verify")
        answer = verify_run(run_folder)
    if out is not None:
        write_verification(answer, out)
    if as_json:
        print(json.dumps(as_data(answer)))
    else:
        for line in lines_of(answer):
            print(line)
    if answer.exit_code:
        raise typer.Exit(answer.exit_code)
