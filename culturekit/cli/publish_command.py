"""`culturekit publish`: a finished run as a dataset that others can look at."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing.progress import progress_for
from culturekit.cli.showing.results import show
from culturekit.cli.stages import stoppable
from culturekit.core.counting import counted


def publish(
    run: Annotated[Path, typer.Argument(help="Folder of a finished run.")],
    to: Annotated[str, typer.Option(help="Dataset on the Hub to write: hub:USER/NAME.")],
    public: Annotated[
        bool, typer.Option("--public", help="Let anybody see a dataset that is new. [only its owner]")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write images, scores and card of a run as a Hub dataset.

    The token is that of the environment, HF_TOKEN. What is there already is not sent again.
    """
    from culturekit.recipes.publish_run import publish_run

    with stoppable(), progress_for(as_json=as_json) as progress:
        progress.stage("publish")
        done = publish_run(run, to, public=public, progress=progress)
    there = ", ".join(f"{count:,} {kind}" for kind, count in done.files.items())
    lines = [
        f"{done.url} ({'only its owner sees it' if done.private else 'anybody sees it'}): {there}",
        f"sent: {counted(done.sent[0], 'files')}, {done.sent[1]:,} bytes",
        *(f"not published: {one}" for one in done.left_out),
    ]
    show(done, lines, as_json=as_json)
