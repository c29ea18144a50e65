"""The stages from prompts to questions, and from images to what a vision model answers to them, or how sure it is."""

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.captions.caption_files import USUAL_CAPTION
from culturekit.builders.judging import image_judge, question_answers, question_graph
from culturekit.builders.judging.image_judge import WeighOptions, WeighReads
from culturekit.builders.judging.question_answers import (
    AnswerOptions,
    AnswerReads,
    answered_images,
)
from culturekit.builders.judging.question_graph import (
    GraphOptions,
    ask_for_graphs,
    graph_requests,
    prompts_of_kinds,
)
from culturekit.builders.judging.shown_images import AskedImages, prompted_images
from culturekit.builders.wordings import wording, wording_digest
from culturekit.families.handles.inputs import roles_of
from culturekit.families.handles.public_files import prompts_table
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import (
    AskPlan,
    asking_images,
    asking_stage,
    plan_to_ask,
    scratch,
    usual_picture,
)
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand

__all__ = ["ASK", "BUILD", "VQASCORE", "GraphReads", "answers_stage", "graphs_stage", "vqascore_stage"]


@dataclass(frozen=True, slots=True)
class GraphReads:
    """Prompts that questions are written about."""

    prompts: Annotated[Path, Field(description="Prompts table, or a file in the public layout.")]


def graphs_stage(given: GraphReads, options: GraphOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Turn each prompt into a graph of yes/no questions (DSG).

    A reply that is no such graph is set aside.
    """
    client, kinds = CLIENTS.make(options.writer), options.kinds

    def plan(out: Path, _: object) -> AskPlan:
        with scratch() as folder:
            table = prompts_of_kinds(prompts_table(given.prompts, folder), kinds)
        requests = list(graph_requests(table))
        return plan_to_ask(client, "prompts", requests, out, llm, left_out=table.height - len(requests))

    stage = Stage(
        "questions",
        "questions",
        2,
        lambda work: ask_for_graphs(work, prompts_table(given.prompts, work.scratch), client, kinds, llm),
        roles_of(given),
        {
            "task": question_graph.TASK,
            "wording": wording_digest("question_graph"),
            "kinds": sorted(kinds),
        },
        packages=("msgspec", "polars"),
    )
    return asking_stage(stage, options.writer, client, unit="prompts", plan=plan, go_on=llm.go_on)


BUILD = AskingCommand(
    graphs_stage, f"--prompts prompts/prompts.parquet --llm {quoted('text-small')} --out questions --budget 5"
)


def answers_stage(given: AnswerReads, options: AnswerOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model the questions of each image's prompt.

    `score questions` makes DSG of the answers.
    """
    wording_of_answers = wording_digest("question_answer")
    return asking_images(
        "answers",
        2,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=lambda model, _: answered_images(given, model),
        options={"task": question_answers.REQUEST, "wording": wording_of_answers, "per_prompt": options.per_prompt},
        llm=llm,
        name="answers",
    )


ASK = AskingCommand(
    answers_stage,
    f"--images images/images.parquet --questions questions/questions.parquet --llm {quoted('vision')} --out answers "
    "--budget 20",
)


def vqascore_stage(given: WeighReads, options: WeighOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask of each image whether it shows its prompt (VQAScore).

    The score is the probability of yes.
    """
    usual = partial(image_judge.vqa_request, text=USUAL_CAPTION, instructions=wording("vqascore"))

    def asked(model: str, folder: Path) -> AskedImages[str]:
        prompts = None if given.prompts is None else prompts_table(given.prompts, folder)
        return image_judge.weighed_images(replace(given, prompts=prompts), model, options.of)

    return asking_images(
        "vqascore",
        1,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=asked,
        options={
            "task": image_judge.REQUEST,
            "wording": image_judge.vqa_digest(),
            "of": options.of,
            "per_prompt": options.per_prompt,
        },
        llm=llm,
        name="vqascore",
        packages=("msgspec", "numpy", "pillow", "polars"),
        usual=lambda: [usual(usual_picture())],
    )


VQASCORE = AskingCommand(
    vqascore_stage,
    f"--images images/images.parquet --prompts prompts/prompts.parquet --llm {quoted('weighing')} --out vqascore "
    "--budget 20",
)
