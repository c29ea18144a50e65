"""`culturekit vqascore`: how probable a vision model finds it that images show their prompts."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, GoOn, Out, Wait
from culturekit.cli.questions_commands import Fresh, PerPrompt, Plan, show_ask_plan
from culturekit.cli.stages import run_one

__all__ = ["vqascore"]

Share: TypeAlias = Literal["yes-no", "vocabulary"]


def vqascore(
    images: Annotated[Path, typer.Option(help="Images table; its pictures lie beside it.")],
    llm: Annotated[
        str,
        typer.Option(
            help="Who looks, as a SPEC that lists probabilities of tokens: openai:MODEL by chat, also a server of "
            "one's own by base_url, local:FOLDER, or replay:FILE."
        ),
    ],
    out: Out,
    prompts: Annotated[
        Path | None, typer.Option(help="Prompts the images were asked for by. [what the images table says was sent]")
    ] = None,
    of: Annotated[
        Share, typer.Option(help="What P(Yes) is a share of: yes and no alone, or the whole vocabulary.")
    ] = "yes-no",
    per_prompt: PerPrompt = None,
    plan: Plan = False,
    budget: Budget = None,
    concurrency: Concurrency = 16,
    batch: Batch = False,
    go_on: GoOn = False,
    fresh: Fresh = False,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Ask of each image whether it shows its prompt, for the probability of yes (VQAScore)."""
    from culturekit.llm.answers import LlmOptions
    from culturekit.pipeline.steps.vqascore_stage import plan_vqascore, vqascore_stage

    if plan:
        planned = plan_vqascore(images, llm, out, prompts=prompts, per_prompt=per_prompt, batch=batch)
        show_ask_plan(planned, as_json=as_json)
        return
    options = LlmOptions(budget, concurrency, batch, go_on=go_on)
    stage = vqascore_stage(images, llm, prompts=prompts, of=of, per_prompt=per_prompt, llm=options)
    run_one(stage, out, also=also, wait=wait, as_json=as_json, fresh=fresh)
