"""`culturekit score stability`: whether another encoder or channel would rank the models alike."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.stages import run_one

__all__ = ["stability"]


def stability(
    scores: Annotated[
        list[str],
        typer.Option(help="NAME=FILE: a table of scores under the name of what mapped the images; at least two."),
    ],
    out: Out,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Correlate the rankings of models by every two encoders or channels; below .8 a ranking is not stable."""
    from culturekit.errors import UsageError
    from culturekit.pipeline.scores.stability_stage import stability_stage

    named = [text.partition("=") for text in scores]
    wrong = [text for text, (name, sign, path) in zip(scores, named, strict=True) if not (name and sign and path)]
    if wrong or len({name for name, _, _ in named}) < len(named):
        found = ", ".join(wrong) or "a name given twice"
        raise UsageError("tables of scores have names", expected="NAME=FILE, each name once", found=found)
    run_one(stability_stage({name: Path(path) for name, _, path in named}), out, also=also, wait=wait, as_json=as_json)
