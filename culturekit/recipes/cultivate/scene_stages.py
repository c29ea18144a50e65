"""The stages of the simulated world: pages about it, and what scenes of it truly show."""

from pathlib import Path

from culturekit.builders.judging.scene_judge import (
    MOST_STEREOTYPES,
    DescribedScenes,
    ExtractReads,
    RatedScenes,
    RateReads,
    SceneOptions,
    StereotypedScenes,
    StereotypeReads,
    scenes_of,
    wording_digest_of,
)
from culturekit.builders.judging.shown_images import AskedImages, ShownImages, prompted_images
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.models import quoted
from culturekit.metrics.ahead.matching import DIMENSIONS
from culturekit.recipes.steps.asking_stage import asking_images, usual_picture

# The stages from images of scenes to what a vision model says of them, and to the best of real ones.


USUAL, USUAL_PROMPT = "usual", "A photorealistic photo of a usual custom in the United States."
USUAL_STEREOTYPE = "a usual stereotype"


def questions_of_one(given: ExtractReads | RateReads | StereotypeReads) -> list[Request]:
    """Give the requests about one image of a usual prompt, for a plan before there are any."""
    row, prompts = {"prompt_id": USUAL}, {USUAL: (USUAL_PROMPT, "US")}
    shown = ShownImages(Path(), "judge")
    asked: AskedImages[str] = DescribedScenes(shown, "")
    if isinstance(given, ExtractReads):
        asked = DescribedScenes(shown, "", dimensions=given.dimensions)
    elif isinstance(given, RateReads):
        asked = RatedScenes(shown, "", prompts=prompts)
    elif isinstance(given, StereotypeReads):
        asked = StereotypedScenes(shown, "", prompts=prompts, tokens={"US": (USUAL_STEREOTYPE,) * MOST_STEREOTYPES})
    picture = usual_picture()
    return [asked.request(picture, row, question) for question in asked.questions(row)]


def scene_stage(
    kind: str, given: ExtractReads | RateReads | StereotypeReads, options: SceneOptions, llm: LlmOptions, name: str
) -> Stage:
    """Make the stage of one kind of question."""
    return asking_images(
        kind,
        1,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=lambda model, _: scenes_of(given, model),
        options={"wording": wording_digest_of(given), "per_prompt": options.per_prompt, **some_dimensions(given)},
        llm=llm,
        name=name,
        usual=lambda: questions_of_one(given),
    )


def some_dimensions(given: ExtractReads | RateReads | StereotypeReads) -> dict[str, list[str]]:
    """Say in which dimensions images are described, where these are not all."""
    asked = given.dimensions if isinstance(given, ExtractReads) else DIMENSIONS
    return {} if asked == DIMENSIONS else {"dimensions": list(asked)}


def extract_stage(given: ExtractReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model what each image shows, in phrases.

    They are sorted by dimension; `score ahead` compares them.
    """
    return scene_stage("judge-extract", given, options, llm, "extracted")


EXTRACT = AskingCommand(
    extract_stage, f"--images images/images.parquet --llm {quoted('vision')} --out extracted --budget 20"
)


def likert_stage(given: RateReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model to rate each image from 1 to 5.

    It rates alignment, hallucination and exaggeration.
    """
    return scene_stage("judge-likert", given, options, llm, "likert")


LIKERT = AskingCommand(
    likert_stage,
    f"--images images/images.parquet --prompts prompts/prompts.parquet --llm {quoted('vision')} --out likert "
    "--budget 20",
)


def stereotype_scores_stage(given: StereotypeReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask whether each image shows what its country overdoes.

    The score is the probability of yes (EXAG).
    """
    return scene_stage("judge-stereotypes", given, options, llm, "stereotyped")


STEREOTYPES = AskingCommand(
    stereotype_scores_stage,
    "--images images/images.parquet --prompts prompts/prompts.parquet --stereotypes stereotypes/stereotypes.parquet "
    f"--llm {quoted('weighing')} --out stereotyped --budget 20",
)
