"""`culturekit finetune`: an adapter for a diffusion pipeline, trained on chosen pairs."""

from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson, Out, Wait
from culturekit.cli.showing import progress_for, show
from culturekit.cli.stage_command import run_one, stoppable
from culturekit.generation.diffusion.training import TuningOptions, finetune_stage, pairs_in, pilot_of, plan_tuning


def finetune(
    pairs: Annotated[
        Path, typer.Option(help="Folder that `select export` wrote, or one of images with metadata.jsonl.")
    ],
    out: Out,
    options: TuningOptions,
    plan: Annotated[bool, typer.Option("--plan", help="Say what it would take; nothing is trained.")] = False,
    pilot: Annotated[bool, typer.Option("--pilot", help="Take two steps, and say what all would take.")] = False,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Train a LoRA adapter of Stable Diffusion or SDXL on pairs.

    `generate` draws with it by `?lora=FOLDER`.
    """
    if not (plan or pilot):
        run_one(finetune_stage(pairs, options), out, wait=wait, as_json=as_json)
        return
    found = plan_tuning(options, len(pairs_in(pairs)))
    if pilot:
        from culturekit.core.engines import LocalEngine

        with stoppable(), progress_for(as_json=as_json) as progress, LocalEngine(1) as engine:
            found = pilot_of(pairs, options, out, engine=engine, progress=progress, wait=wait)
    show(found, found.lines(), as_json=as_json)
