"""The stage from images to how probable a vision model finds it that they show their prompts."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from culturekit.builders.judging.image_judge import WeighedImages, texts_of, weigh_images
from culturekit.builders.judging.shown_images import ShownImages, prompted_images, requests_about
from culturekit.builders.judging.yes_probability import REQUEST, wording_digest
from culturekit.families.handles.public_files import prompts_table
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.asking_price import check_asking
from culturekit.metrics.questions.yes_probabilities import Share
from culturekit.pipeline.asking_cost import cost_of
from culturekit.pipeline.steps.filter_stage import judge_inputs, judge_options
from culturekit.pipeline.steps.question_stages import AskPlan
from culturekit.stages.stage import Stage

__all__ = ["plan_vqascore", "vqascore_stage"]

DEFAULTS = LlmOptions()


def vqascore_stage(
    images: Path,
    judge: str,
    *,
    prompts: Path | None = None,
    of: Share = "yes-no",
    per_prompt: int | None = None,
    llm: LlmOptions = DEFAULTS,
    name: str = "vqascore",
) -> Stage:
    """Weigh yes against no for each image; what `llm` says of money and speed decides no probability."""
    client = CLIENTS.make(judge)
    return Stage(
        name,
        "vqascore",
        1,
        lambda work: weigh_images(
            work,
            images,
            client,
            prompts=None if prompts is None else prompts_table(prompts, work.scratch),
            of=of,
            per_prompt=per_prompt,
            llm=llm,
        ),
        {"images": images, **({} if prompts is None else {"prompts": prompts}), **judge_inputs(judge)},
        {
            **judge_options(judge, client),
            "task": REQUEST,
            "wording": wording_digest(),
            "of": of,
            "per_prompt": per_prompt,
        },
        packages=("msgspec", "numpy", "pillow", "polars"),
        before=partial(check_asking, client),
    )


def plan_vqascore(
    images: Path,
    judge: str,
    out: Path,
    *,
    prompts: Path | None = None,
    per_prompt: int | None = None,
    batch: bool = False,
) -> AskPlan:
    """Plan, offline, what weighing takes: every picture is read, nothing is sent."""
    client = CLIENTS.make(judge)
    table = prompted_images(images, per_prompt)
    with TemporaryDirectory(prefix="culturekit-plan-") as scratch:
        own = None if prompts is None else prompts_table(prompts, Path(scratch))
        weighed = WeighedImages(ShownImages(images.parent, "vqascore"), texts_of(images, own))
    cost = cost_of(client, requests_about(table, weighed), out, batch=batch)
    return AskPlan(client.model, "images", table.height, len(weighed.shown.drops), len(weighed.open), cost)
