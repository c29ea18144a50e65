"""`culturekit tag`: a vision model says what images show."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, GoOn, Out, Seed, Wait
from culturekit.cli.stages import run_one

__all__ = ["tag"]


def tag(
    images: Annotated[Path, typer.Option(help="Images table; its pictures lie beside it.")],
    llm: Annotated[
        str, typer.Option(help="Who looks at the images, as a SPEC: openai:MODEL, google:MODEL, replay:FOLDER.")
    ],
    out: Out,
    cspace: Annotated[
        Path | None,
        typer.Option(help="Cultural space whose artifacts the names are reconciled with. [names stay as said]"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="At most so many images of each model and concept, by whole repeats. [all]"),
    ] = None,
    seed: Seed = 0,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would ask and cost; nothing is sent.")] = False,
    budget: Budget = None,
    concurrency: Concurrency = 16,
    batch: Batch = False,
    go_on: GoOn = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Tag again: no answer is bought twice, and what brought none is asked anew."),
    ] = False,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Ask a vision model which artifact each image shows: the alternative to `index map`."""
    from culturekit.builders.judging.image_sample import ImageSample
    from culturekit.llm.answers import LlmOptions
    from culturekit.pipeline.steps.tag_stage import plan_tag, tag_plan_lines, tag_stage

    draw = None if sample is None else ImageSample(sample, seed)
    if plan:
        planned = plan_tag(images, llm, out, sample=draw, batch=batch)
        for line in [json.dumps(asdict(planned))] if as_json else [*tag_plan_lines(planned), "nothing was sent"]:
            print(line)
        return
    stage = tag_stage(images, llm, cspace=cspace, sample=draw, llm=LlmOptions(budget, concurrency, batch, go_on=go_on))
    run_one(stage, out, also=also, wait=wait, as_json=as_json, fresh=fresh)
