"""`culturekit questions` and `culturekit vqascore`: prompts turned into yes/no questions, and images asked."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import Also, AsJson, Batch, Budget, Concurrency, GoOn, Out, Wait
from culturekit.cli.stages import run_one

if TYPE_CHECKING:
    from culturekit.pipeline.steps.question_stages import AskPlan

__all__ = ["questions_app", "vqascore"]

questions_app = typer.Typer(no_args_is_help=True, help="Yes/no questions about what a prompt asks for, and answers.")

Plan = Annotated[bool, typer.Option("--plan", help="Say what it would ask and cost; nothing is sent.")]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Ask again: no answer is bought twice, and what brought none is asked anew.")
]
PerPrompt = Annotated[
    int | None,
    typer.Option(
        "--per-prompt",
        min=1,
        help="Look at so many images of each model and prompt, the first by repeat and slot. [all]",
    ),
]

Share: TypeAlias = Literal["yes-no", "vocabulary"]


@questions_app.command(
    epilog="Example: culturekit questions build --prompts prompts/prompts.parquet --llm 'openai:gpt-4o-mini' "
    "--out questions --budget 5"
)
def build(
    prompts: Annotated[Path, typer.Option(help="Prompts table, or a file in the public layout.")],
    llm: Annotated[
        str, typer.Option(help="Who writes the questions, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER, ....")
    ],
    out: Out,
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Kind of prompts to ask about: cube, underspecified, within-country. Repeatable. [all]"),
    ] = None,
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
    """Turn each prompt into a graph of yes/no questions (DSG); a reply that is no such graph is set aside."""
    from culturekit.llm.answers import LlmOptions
    from culturekit.pipeline.steps.question_stages import graphs_stage, plan_graphs

    if plan:
        show_ask_plan(plan_graphs(prompts, llm, out, kinds=kind or (), batch=batch), as_json=as_json)
        return
    stage = graphs_stage(prompts, llm, kinds=kind or (), llm=LlmOptions(budget, concurrency, batch, go_on=go_on))
    run_one(stage, out, also=also, wait=wait, as_json=as_json, fresh=fresh)


@questions_app.command(
    epilog="Example: culturekit questions ask --images images/images.parquet --questions questions/questions.parquet "
    "--llm 'openai:gpt-4o-mini' --out answers --budget 20"
)
def ask(
    images: Annotated[Path, typer.Option(help="Images table; its pictures lie beside it.")],
    questions: Annotated[Path, typer.Option(help="Table that `questions build` wrote.")],
    llm: Annotated[
        str, typer.Option(help="Who looks at the images, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER, ....")
    ],
    out: Out,
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
    """Ask a vision model the questions of each image's prompt; `score questions` makes DSG of the answers."""
    from culturekit.llm.answers import LlmOptions
    from culturekit.pipeline.steps.question_stages import answers_stage, plan_answers

    if plan:
        planned = plan_answers(images, questions, llm, out, per_prompt=per_prompt, batch=batch)
        show_ask_plan(planned, as_json=as_json)
        return
    options = LlmOptions(budget, concurrency, batch, go_on=go_on)
    stage = answers_stage(images, questions, llm, per_prompt=per_prompt, llm=options)
    run_one(stage, out, also=also, wait=wait, as_json=as_json, fresh=fresh)


def show_ask_plan(plan: "AskPlan", *, as_json: bool) -> None:
    """Print a plan."""
    from culturekit.pipeline.steps.question_stages import ask_plan_lines

    for line in [json.dumps(asdict(plan))] if as_json else [*ask_plan_lines(plan), "nothing was sent"]:
        print(line)


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
