"""The stages from images to what a judge, or a vision model that names artifacts, says of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from culturekit.builders.country_names import NAMES
from culturekit.builders.judging.geo_tag import (
    STAGE,
    TASK,
    TaggedImages,
    TagOptions,
    TagReads,
    image_rows,
    tag_images,
)
from culturekit.builders.judging.image_judge import JudgedImages
from culturekit.builders.judging.image_questions import ImageQuestion, check_questions, load_questions
from culturekit.builders.judging.image_sample import drawn
from culturekit.builders.judging.shown_images import ImagesToShow, ShownImages, WhoLooks, prompted_images
from culturekit.builders.wordings import wording_digest
from culturekit.families.handles.public_files import space_table
from culturekit.kg.countries import WORLD, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.models import quoted
from culturekit.pipeline.steps.asking_stage import AskPlan, asking_images
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.stages.stage_command import AskingCommand, Typed
from culturekit.storage.package_data import shipped

__all__ = ["JUDGE", "TAG", "JudgeOptions", "JudgeReads", "judge_stage", "tag_stage"]


class TagPlan(AskPlan):
    """What tagging takes; as data, images and those that cannot be shown have names of their own, too."""

    __slots__ = ()

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return {**AskPlan.as_data(self), "images": self.units, "unreadable": self.left_out}


def tag_stage(given: TagReads, options: TagOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model which artifact each image shows.

    It is the alternative to `index map`.
    """
    sample = options.sample

    def run(work: Work, client: Client | FreeClient) -> Outcome:
        cspace = None if given.cspace is None else space_table(given.cspace, work.scratch)
        return tag_images(work, TagReads(given.images, cspace), client, sample, llm)

    drawn_by = {"sample": asdict(sample)} if sample.images else {}
    return asking_images(
        "tag",
        2,
        given,
        options.judge,
        images=lambda: drawn(image_rows(given.images), sample),
        asked=lambda model, _: TaggedImages(ShownImages(given.images.parent, STAGE), model, None),
        options={"task": TASK, "wording": wording_digest("geo_tag"), **drawn_by},
        llm=llm,
        name="tag",
        packages=("babel", "msgspec", "pillow", "polars", "pycountry"),
        run=run,
        inputs={"country-names": shipped(NAMES), "world": shipped(WORLD), **country_files()},
        made=TagPlan,
    )


TAG = AskingCommand(
    tag_stage,
    f"--images images/images.parquet --llm {quoted('vision')} --cspace cspace/cspace.parquet --out tags --budget 20",
    again="Tag",
)


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
    judge: WhoLooks

    def __post_init__(self) -> None:
        """Refuse questions that cannot be answered."""
        check_questions(self.questions)


def judge_stage(given: JudgeReads, options: JudgeOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model questions of your own about each image.

    `score agreement` holds its answers against people.
    """
    questions = [asdict(question) for question in options.questions]
    return asking_images(
        "judge",
        2,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, None),
        asked=lambda model, _: JudgedImages(ShownImages(given.images.parent, "judge"), model, options.questions),
        options={"wording": wording_digest("image_judge"), "questions": questions},
        llm=llm,
        name="judgments",
    )


JUDGE = AskingCommand(
    judge_stage,
    f"--images images/images.parquet --questions questions.yaml --llm {quoted('vision')} --out judged --budget 20",
)
