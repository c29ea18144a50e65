"""The stage from images to what a judge says of them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from culturekit.builders.judging.image_judge import AskedImages, judge_images, judge_wording
from culturekit.builders.judging.image_questions import ImageQuestion, check_questions
from culturekit.builders.judging.shown_images import ShownImages, prompted_images, requests_about
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.asking_stage import AskPlan, asking_stage, cost_of
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes

__all__ = ["judge_stage"]


def judge_stage(
    images: Path, questions: Sequence[ImageQuestion], judge: str, *, llm: LlmOptions = DEFAULTS, name: str = "judgments"
) -> Stage:
    """Put questions about images to a judge; what `llm` says of money and speed decides no answer."""
    check_questions(questions)
    client = CLIENTS.make(judge)
    asked = [asdict(question) for question in questions]
    stage = Stage(
        name,
        "judge",
        2,
        lambda work: judge_images(work, images, questions, client, llm=llm),
        {"images": images},
        {"wording": digest_bytes(judge_wording().encode()), "questions": asked},
        packages=("msgspec", "pillow", "polars"),
    )

    def plan(out: Path, _: object) -> AskPlan:
        table = prompted_images(images, None)
        about = AskedImages(ShownImages(images.parent, "judge"), questions, judge=client.model)
        cost = cost_of(client, requests_about(table, about), out, batch=llm.batch)
        return AskPlan(client.model, "images", table.height, len(about.shown.drops), len(about.open), cost)

    return asking_stage(stage, judge, client, unit="images", plan=plan)
