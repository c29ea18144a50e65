"""The questions that stages put to a model about images, put here without the stages."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.builders.judging.image_judge import (
    ImageQuestion,
    JudgedImages,
    WeighOptions,
    WeighReads,
    weighed_images,
)
from culturekit.builders.judging.question_graph import AnswerReads, answered_images
from culturekit.builders.judging.scene_judge import (
    DescribeOptions,
    ExtractReads,
    RateReads,
    SceneOptions,
    StereotypeReads,
    scenes_of,
)
from culturekit.builders.shown_images import ShownImages, judged, prompted_images
from culturekit.core.work import Outcome, Work
from culturekit.llm.client import Client, FreeClient

Asked = Client | FreeClient


def judge_images(work: Work, path: Path, questions: Sequence[ImageQuestion], client: Asked) -> Outcome:
    asked = JudgedImages(ShownImages(path.parent, "judge"), client.model, questions)
    return judged(work, prompted_images(path, None), asked, client)


def answer_questions(work: Work, given: AnswerReads, client: Asked, per_prompt: int | None = None) -> Outcome:
    return judged(work, prompted_images(given.images, per_prompt), answered_images(given, client.model), client)


def weigh_images(work: Work, given: WeighReads, client: Asked, options: WeighOptions) -> Outcome:
    asked = weighed_images(given, client.model, options.of)
    return judged(work, prompted_images(given.images, options.per_prompt), asked, client)


def judge_scenes(
    work: Work, given: ExtractReads | RateReads | StereotypeReads, client: Asked, options: SceneOptions | None = None
) -> Outcome:
    options = DescribeOptions(client.model) if options is None else options
    return judged(work, prompted_images(given.images, None), scenes_of(given, client.model, options), client)
