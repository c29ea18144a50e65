"""The stage from images to what a judge says of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.judging.image_judge import AskedImages, judge_images, judge_wording
from culturekit.builders.judging.image_questions import ImageQuestion, check_questions, load_questions
from culturekit.builders.judging.shown_images import ImagesToShow, ShownImages, prompted_images, requests_about
from culturekit.families.handles.inputs import roles_of
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.pipeline.asking_stage import AskPlan, asking_stage, cost_of
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

    def plan(out: Path, _: object) -> AskPlan:
        table = prompted_images(given.images, None)
        asked = AskedImages(ShownImages(given.images.parent, "judge"), questions, judge=client.model)
        cost = cost_of(client, requests_about(table, asked), out, batch=llm.batch)
        return AskPlan(client.model, "images", table.height, len(asked.shown.drops), len(asked.open), cost)

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
    return asking_stage(stage, options.judge, client, unit="images", plan=plan)


JUDGE = AskingCommand(
    judge_stage,
    "--images images/images.parquet --questions questions.yaml --llm 'openai:gpt-4o-mini' --out judged --budget 20",
)
