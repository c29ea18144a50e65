"""The stages from prompts to questions, and from images to the answers that a vision model gives."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from culturekit.builders.judging import question_answers, question_graph
from culturekit.builders.judging.question_answers import (
    AskedImages,
    answer_questions,
    answer_wording,
    questions_by_prompt,
)
from culturekit.builders.judging.question_graph import ask_for_graphs, graph_requests, graph_wording, prompts_of_kinds
from culturekit.builders.judging.shown_images import ShownImages, prompted_images, requests_about
from culturekit.families.handles.public_files import prompts_table
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.asking_price import check_asking
from culturekit.llm.money.cost_plan import CostPlan, cost_plan_lines
from culturekit.pipeline.asking_cost import cost_of
from culturekit.pipeline.steps.filter_stage import judge_inputs, judge_options
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes

__all__ = [
    "AskPlan",
    "answers_stage",
    "ask_plan_lines",
    "cost_of",
    "graphs_stage",
    "plan_answers",
    "plan_graphs",
]

DEFAULTS = LlmOptions()


def graphs_stage(
    prompts: Path, writer: str, *, kinds: Sequence[str] = (), llm: LlmOptions = DEFAULTS, name: str = "questions"
) -> Stage:
    """Turn prompts into questions; what `llm` says of money and speed decides no question."""
    client = CLIENTS.make(writer)
    return Stage(
        name,
        "questions",
        2,
        lambda work: ask_for_graphs(work, prompts_table(prompts, work.scratch), client, kinds=kinds, llm=llm),
        {"prompts": prompts, **judge_inputs(writer)},
        {
            **judge_options(writer, client),
            "task": question_graph.TASK,
            "wording": digest_bytes(graph_wording().encode()),
            "kinds": sorted(kinds),
        },
        packages=("msgspec", "polars"),
        before=partial(check_asking, client),
    )


def answers_stage(
    images: Path,
    questions: Path,
    judge: str,
    *,
    per_prompt: int | None = None,
    llm: LlmOptions = DEFAULTS,
    name: str = "answers",
) -> Stage:
    """Put the questions of their prompts to images; what `llm` says of money and speed decides no answer."""
    client = CLIENTS.make(judge)
    return Stage(
        name,
        "answers",
        2,
        lambda work: answer_questions(work, images, questions, client, per_prompt=per_prompt, llm=llm),
        {"images": images, "questions": questions, **judge_inputs(judge)},
        {
            **judge_options(judge, client),
            "task": question_answers.REQUEST,
            "wording": digest_bytes(answer_wording().encode()),
            "per_prompt": per_prompt,
        },
        packages=("msgspec", "pillow", "polars"),
        before=partial(check_asking, client),
    )


@dataclass(frozen=True, slots=True)
class AskPlan:
    """What would be asked: about how many prompts or images, how many of them not, in how many requests, at what cost.

    `cost` is None for a model that answers in this process.
    """

    judge: str
    unit: str
    units: int
    left_out: int
    requests: int
    cost: CostPlan | None


def plan_graphs(prompts: Path, writer: str, out: Path, *, kinds: Sequence[str] = (), batch: bool = False) -> AskPlan:
    """Plan, offline, what turning prompts into questions takes."""
    with TemporaryDirectory(prefix="culturekit-plan-") as scratch:
        table = prompts_of_kinds(prompts_table(prompts, Path(scratch)), kinds)
    client = CLIENTS.make(writer)
    requests = list(graph_requests(table))
    left_out = table.height - len(requests)
    return AskPlan(
        client.model, "prompts", table.height, left_out, len(requests), cost_of(client, requests, out, batch=batch)
    )


def plan_answers(
    images: Path, questions: Path, judge: str, out: Path, *, per_prompt: int | None = None, batch: bool = False
) -> AskPlan:
    """Plan, offline, what answering takes: every picture is read, nothing is sent."""
    client = CLIENTS.make(judge)
    table = prompted_images(images, per_prompt)
    asked = AskedImages(ShownImages(images.parent, "ask"), questions_by_prompt(questions), client.model)
    cost = cost_of(client, requests_about(table, asked), out, batch=batch)
    return AskPlan(client.model, "images", table.height, len(asked.shown.drops), len(asked.open), cost)


def ask_plan_lines(plan: AskPlan) -> Iterator[str]:
    """Say a plan in words."""
    asked = plan.units - plan.left_out
    yield f"{plan.units:,} {plan.unit}: {plan.left_out:,} are left out, {asked:,} are asked about, by {plan.judge}"
    if plan.cost is None:
        yield f"{plan.requests:,} requests; {plan.judge} answers in this process and costs nothing"
    else:
        yield from cost_plan_lines(plan.cost)
