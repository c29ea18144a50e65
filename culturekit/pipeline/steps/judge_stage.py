"""The stage from images to what a judge says of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.builders.judging.image_judge import JudgedImages, judge_images, judge_wording
from culturekit.builders.judging.image_questions import ImageQuestion, check_questions, load_questions
from culturekit.builders.judging.shown_images import ImagesToShow, ShownImages, prompted_images
from culturekit.families.handles.inputs import roles_of
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.asking_stage import asking_images
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, Typed
from culturekit.storage.digests import digest_bytes

__all__ = ["JUDGE", "JudgeOptions", "JudgeReads", "judge_stage"]


@dataclass(frozen=True, slots=True)
class JudgeReads:
    """Images to be judged."""

    images: ImagesToShow


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """What is asked about images, and who answers."""

    questions: Annotated[
        Sequence[ImageQuestion],
        Field(
            description="YAML file, `questions:`, each with task, item, question, and answers: [...] or between: "
            "[LOW, HIGH]; dimension and prompt_id where wanted. Repeatable."
        ),
        Typed(gather=load_questions),
    ]
    judge: Annotated[
        str,
        Field(description="Who looks at the images, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER, ...."),
        Typed("llm"),
    ]

    def __post_init__(self) -> None:
        """Refuse questions that cannot be answered."""
        check_questions(self.questions)


def judge_stage(
    given: JudgeReads, options: JudgeOptions, llm: LlmOptions = DEFAULTS, *, name: str = "judgments"
) -> Stage:
    """Ask a vision model questions of your own about each image; `score agreement` holds its answers against people."""
    client, questions = CLIENTS.make(options.judge), options.questions

    def images() -> tuple[pl.DataFrame, JudgedImages]:
        asked = JudgedImages(ShownImages(given.images.parent, "judge"), client.model, questions)
        return prompted_images(given.images, None), asked

    stage = Stage(
        name,
        "judge",
        2,
        lambda work: judge_images(work, given.images, questions, client, llm=llm),
        roles_of(given),
        {
            "wording": digest_bytes(judge_wording().encode()),
            "questions": [asdict(question) for question in questions],
        },
        packages=("msgspec", "pillow", "polars"),
    )
    return asking_images(stage, options.judge, client, images=images, llm=llm)


JUDGE = AskingCommand(
    judge_stage,
    "--images images/images.parquet --questions questions.yaml --llm 'openai:gpt-4o-mini' --out judged --budget 20",
)
