"""The stages from images to what a judge, or a vision model that names artifacts, says of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field

from culturekit.builders.asked_rows import wording, wording_digest
from culturekit.builders.asking import (
    AskPlan,
    asking_images,
    asking_stage,
    plan_to_ask,
    scratch,
    usual_picture,
)
from culturekit.builders.captions.caption_files import USUAL_CAPTION
from culturekit.builders.country_names import NAMES
from culturekit.builders.judging import image_judge, question_graph
from culturekit.builders.judging import question_graph as question_answers
from culturekit.builders.judging.geo_tag import STAGE, TASK, TaggedImages, TagOptions, TagReads, image_rows, tag_images
from culturekit.builders.judging.image_judge import (
    ImageQuestion,
    JudgedImages,
    WeighOptions,
    WeighReads,
    check_questions,
    load_questions,
)
from culturekit.builders.judging.question_graph import (
    AnswerOptions,
    AnswerReads,
    GraphOptions,
    answered_images,
    ask_for_graphs,
    graph_requests,
    prompts_of_kinds,
)
from culturekit.builders.shown_images import (
    AskedImages,
    ImagesToShow,
    ShownImages,
    WhoLooks,
    drawn,
    prompted_images,
)
from culturekit.core.declared import kept
from culturekit.core.inputs import roles_of
from culturekit.core.layouts import prompts_table, space_table
from culturekit.core.package_data import shipped
from culturekit.core.spec_state import check_ready, spec_state
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, StageCommand, Typed
from culturekit.core.work import Outcome, Work
from culturekit.index.encoder import ENCODERS
from culturekit.index.raters.quality import SCORERS, QualityOptions, score_pictures
from culturekit.kg.countries import WORLD, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.models import quoted


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
            "[LOW, HIGH]; dimension and prompt_id where wanted. Or a form: `c3_images`. Repeatable."
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
    asked = [asdict(question) for question in options.questions]
    questions = [{name: part for name, part in one.items() if name != "described" or part} for one in asked]
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


# The stage that scores how good images are.


@dataclass(frozen=True, slots=True)
class QualityReads:
    """Images, and what they were asked for by, where a scorer needs it."""

    images: Annotated[Path, Field(description="Images table.")]
    prompts: Annotated[
        Path | None,
        Field(description="Prompts the images were asked for by. [what the images table says was sent]"),
    ] = None


def quality_stage(given: QualityReads, options: QualityOptions) -> Stage:
    """Score the quality of every image.

    What cannot be scored is listed with its reason.
    """
    scorer = options.scorer
    SCORERS.check(scorer)

    def run(work: Work) -> Outcome:
        prompts = None if given.prompts is None else prompts_table(given.prompts, work.scratch)
        return score_pictures(work, given.images, scorer, prompts_path=prompts)

    return Stage(
        "quality",
        "quality",
        2,
        run,
        roles_of(given),
        {**kept(options), **spec_state(SCORERS, scorer, targets=ENCODERS)},
        packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, SCORERS, scorer),
    )


QUALITY = StageCommand(
    quality_stage,
    "--images images/images.parquet --scorer clipscore:transformers:clip --prompts prompts/prompts.parquet "
    "--out quality",
    workers=True,
    engine=True,
)


# The stages from prompts to questions, and from images to what a vision model answers to them, or how sure it is.


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
