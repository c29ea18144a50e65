"""The stage from images to what a judge says of them."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from culturekit.builders.judging.image_judge import judge_images, judge_wording
from culturekit.builders.judging.image_questions import ImageQuestion, check_questions
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.asking_price import check_asking
from culturekit.pipeline.steps.filter_stage import judge_inputs, judge_options
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes

__all__ = ["judge_stage"]

DEFAULTS = LlmOptions()


def judge_stage(
    images: Path, questions: Sequence[ImageQuestion], judge: str, *, llm: LlmOptions = DEFAULTS, name: str = "judgments"
) -> Stage:
    """Put questions about images to a judge; what `llm` says of money and speed decides no answer."""
    check_questions(questions)
    client = CLIENTS.make(judge)
    return Stage(
        name,
        "judge",
        2,
        lambda work: judge_images(work, images, questions, client, llm=llm),
        {"images": images, **judge_inputs(judge)},
        {
            **judge_options(judge, client),
            "wording": digest_bytes(judge_wording().encode()),
            "questions": [asdict(question) for question in questions],
        },
        packages=("msgspec", "pillow", "polars"),
        before=partial(check_asking, client),
    )
