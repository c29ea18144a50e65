"""`culturekit score distribution`: how often images show each artifact, country and continent."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["distribution"]


def distribution(
    matches: Annotated[list[Path], typer.Option(help="Table that `index map` wrote; repeat it for more models.")],
    out: Out,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Count what images show: the share of each continent, country and artifact, by model and concept."""
    from culturekit.pipeline.scores.distribution_stage import distribution_stage

    run_one(distribution_stage(matches), out, also=also, wait=wait, as_json=as_json)
