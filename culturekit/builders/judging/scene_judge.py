"""A vision model describes scenes: phrases by dimension, ratings of the published scales, and stereotypes shown.

Every question leaves a row, whatever came of it, with the reply as it came; without an answer, `choice` says why not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import wording, wording_digest
from culturekit.builders.asking import NO_OPTIONS, asking_images, usual_picture
from culturekit.builders.judging.image_judge import judge_name, vqa_digest, vqa_request, weighed
from culturekit.builders.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    PerPrompt,
    ShownImages,
    Verdict,
    WhoLooks,
    prompted_images,
)
from culturekit.core.errors import UsageError
from culturekit.core.schemas import PROMPTS, STEREOTYPES
from culturekit.core.stage import Stage
from culturekit.core.stage_command import AskingCommand, Typed
from culturekit.core.tables import read_table
from culturekit.kg.countries import countries
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Image, Request
from culturekit.llm.models import quoted
from culturekit.llm.rows import Answered
from culturekit.llm.untrusted import strip_hidden
from culturekit.metrics.ahead.matching import DIMENSIONS, normalise_phrase

LIKERT = ("alignment", "hallucination", "exaggeration")
"""What the published judges rate."""

MOST_PHRASES, LONGEST_PHRASE = 8, 7
"""Phrases of a reply that count, and words of one: as many as published tokens have."""

REPLY_TOKENS = 64
MOST_STEREOTYPES = 15

NOTHING = frozenset({"", "none", "nothing", "n/a"})
NO_ONE, NOT_OVERDONE = "the country of its prompt is not known", "no stereotype of its country is listed"
CAVEAT = "What a picture shows, and how well, is a model's word: it may know some countries better than others."


class Descriptors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model says that an image shows in one dimension: phrases between commas."""

    descriptors: Annotated[str, msgspec.Meta(max_length=600)]

    def __post_init__(self) -> None:
        """Reject prose."""
        if any(len(phrase.split()) > LONGEST_PHRASE for phrase in self.phrases):
            raise ValueError(f"a phrase has at most {LONGEST_PHRASE} words")

    @property
    def phrases(self) -> tuple[str, ...]:
        """Give the phrases, each once, without what nobody sees."""
        phrases = (normalise_phrase(strip_hidden(part).strip(" .")) for part in self.descriptors.split(","))
        return tuple(dict.fromkeys(phrase for phrase in phrases if phrase not in NOTHING))[:MOST_PHRASES]


class Rating(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rating, in the words that it was asked for."""

    answer: Annotated[str, msgspec.Meta(pattern="^score is [1-5]$")]

    @property
    def number(self) -> float:
        """Give the rating."""
        return float(self.answer[-1])


@dataclass(frozen=True, slots=True)
class SceneOptions:
    """Who looks, and at how many images."""

    judge: WhoLooks
    per_prompt: PerPrompt = None


@dataclass(frozen=True, slots=True)
class ExtractReads:
    """Images to be described, and in which dimensions."""

    images: ImagesToShow
    dimensions: Annotated[
        tuple[str, ...],
        Field(description="What is named, with commas between: background, objects, attire, interaction, spatial."),
        Typed(once=True),
    ] = DIMENSIONS

    def __post_init__(self) -> None:
        """Reject what is no dimension."""
        strange = sorted(set(self.dimensions) - set(DIMENSIONS))
        if strange or not self.dimensions:
            raise UsageError("this is no dimension", expected=", ".join(DIMENSIONS), found=", ".join(strange) or "none")


@dataclass(frozen=True, slots=True)
class RateReads:
    """Images to be rated, and what they were asked for by."""

    images: ImagesToShow
    prompts: Annotated[Path, Field(description="Prompts the images were asked for by, with the country of each.")]


@dataclass(frozen=True, slots=True)
class StereotypeReads:
    """Images, what they were asked for by, and what pictures of each country overdo."""

    images: ImagesToShow
    prompts: Annotated[Path, Field(description="Prompts the images were asked for by, with the country of each.")]
    stereotypes: Annotated[Path, Field(description="Table of stereotypes: country and token.")]


SceneReads: TypeAlias = ExtractReads | RateReads | StereotypeReads


@dataclass
class DescribedScenes(AskedImages[str]):
    """What each image shows, dimension by dimension; nothing that is expected of it goes along."""

    caveat = CAVEAT

    dimensions: Sequence[str] = DIMENSIONS

    def questions(self, row: dict[str, Any]) -> Sequence[str]:
        """List the dimensions."""
        return self.dimensions

    def request(self, picture: Image, row: dict[str, Any], question: str) -> Request:
        """Ask for phrases."""
        data = {"id": picture.sha256[:ID_LETTERS], "dimension": question}
        words = wording("descriptor_extract")
        return Request("image.extract", words, data, Descriptors, images=(picture,), max_tokens=REPLY_TOKENS)

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give a row for each phrase, and one without where there is none."""
        value = answered.value
        phrases = value.phrases if isinstance(value, Descriptors) else ()
        return [Verdict("extract", phrase, question, choice=_problem(answered)) for phrase in phrases or ("",)]


@dataclass
class CountryScenes(AskedImages[str]):
    """Scenes of which it is known what prompt asked for them, and in which country: prompt -> text, country."""

    caveat = CAVEAT

    prompts: Mapping[str, tuple[str, str]]

    def why_not(self, row: dict[str, Any]) -> str:
        """Say that it is not known."""
        return NO_ONE


@dataclass
class RatedScenes(CountryScenes):
    """How well each image shows its prompt, by the published scales."""

    def questions(self, row: dict[str, Any]) -> Sequence[str]:
        """List the scales, where the prompt is known."""
        return LIKERT if row["prompt_id"] in self.prompts else ()

    def request(self, picture: Image, row: dict[str, Any], question: str) -> Request:
        """Ask for a rating."""
        text, country = self.prompts[row["prompt_id"]]
        name = countries()[country].name if country in countries() else country
        data = {"id": picture.sha256[:ID_LETTERS], "criterion": question, "prompt": text, "country": name}
        return Request("image.likert", wording("likert"), data, Rating, images=(picture,), max_tokens=REPLY_TOKENS)

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give the rating."""
        if not isinstance(answered.value, Rating):
            return [Verdict("likert", question, choice=_problem(answered))]
        return [Verdict("likert", question, value=answered.value.number, choice=answered.value.answer)]


@dataclass
class StereotypedScenes(CountryScenes):
    """How probable it is that each image shows what pictures of its country overdo, one by one."""

    tokens: Mapping[str, Sequence[str]]

    def questions(self, row: dict[str, Any]) -> Sequence[str]:
        """List what pictures of the country overdo."""
        _, country = self.prompts.get(row["prompt_id"] or "", ("", ""))
        return self.tokens.get(country, ())

    def why_not(self, row: dict[str, Any]) -> str:
        """Tell a country without stereotypes from one that is not known."""
        return NOT_OVERDONE if row["prompt_id"] in self.prompts else NO_ONE

    def request(self, picture: Image, row: dict[str, Any], question: str) -> Request:
        """Ask whether one of them is shown, for the probability of yes."""
        return vqa_request(picture, question, instructions=wording("vqascore"))

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give the probability."""
        verdict = weighed("stereotype", question, answered, of="yes-no")
        return [verdict if answered.value is not None else verdict._replace(choice=_problem(answered))]


def _problem(answered: Answered) -> str | None:
    """Explain why there is no answer, where there is none."""
    return answered.detail or None if answered.value is None else None


# The stages that ask: commands of their own, and parts of recipes.


def extract_stage(given: ExtractReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model what each image shows, in phrases.

    They are sorted by dimension; `score ahead` compares them.
    """
    dimensions = {} if given.dimensions == DIMENSIONS else {"dimensions": list(given.dimensions)}
    return _scene_stage("judge-extract", given, options, llm, name="extracted", more=dimensions)


def likert_stage(given: RateReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model to rate each image from 1 to 5.

    It rates alignment, hallucination and exaggeration.
    """
    return _scene_stage("judge-likert", given, options, llm, name="likert")


def stereotype_scores_stage(given: StereotypeReads, options: SceneOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask whether each image shows what its country overdoes.

    The score is the probability of yes (EXAG).
    """
    return _scene_stage("judge-stereotypes", given, options, llm, name="stereotyped")


EXTRACT = AskingCommand(
    extract_stage, f"--images images/images.parquet --llm {quoted('vision')} --out extracted --budget 20"
)
RATE = AskingCommand(
    likert_stage,
    f"--images images/images.parquet --prompts prompts/prompts.parquet --llm {quoted('vision')} --out likert "
    "--budget 20",
)
SCORE_STEREOTYPES = AskingCommand(
    stereotype_scores_stage,
    "--images images/images.parquet --prompts prompts/prompts.parquet --stereotypes stereotypes/stereotypes.parquet "
    f"--llm {quoted('weighing')} --out stereotyped --budget 20",
)


def _scene_stage(
    kind: str,
    given: SceneReads,
    options: SceneOptions,
    llm: LlmOptions,
    *,
    name: str,
    more: Mapping[str, object] = NO_OPTIONS,
) -> Stage:
    """Make the stage of one kind of question."""
    return asking_images(
        kind,
        1,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=lambda model, _: scenes_of(given, model),
        options={"wording": _wording_digest_of(given), "per_prompt": options.per_prompt, **more},
        llm=llm,
        name=name,
        usual=lambda: _questions_of_one(given),
    )


def scenes_of(given: SceneReads, judge: str) -> AskedImages[str]:
    """Prepare what is asked of images, by what there is to read."""
    shown = ShownImages(given.images.parent, "judge")
    if isinstance(given, ExtractReads):
        return DescribedScenes(shown, judge, dimensions=given.dimensions)
    prompts = read_table(given.prompts, PROMPTS).drop_nulls("country").select("prompt_id", "text", "country")
    known = {prompt: (text, country) for prompt, text, country in prompts.iter_rows()}
    if isinstance(given, RateReads):
        return RatedScenes(shown, judge, prompts=known)
    table = read_table(given.stereotypes, STEREOTYPES).group_by("country").agg(pl.col("token").sort())
    if table.is_empty():
        raise UsageError(
            "there is no stereotype to ask about",
            where=str(given.stereotypes),
            expected="rows of country and token, as `descriptors stereotypes` writes them",
        )
    return StereotypedScenes(shown, judge_name(judge, "yes-no"), prompts=known, tokens=dict(table.iter_rows()))


def _questions_of_one(given: SceneReads) -> list[Request]:
    """Give the requests about one image of a usual prompt, for a plan before there are any."""
    row, shown = {"prompt_id": "usual"}, ShownImages(Path(), "judge")
    prompts = {"usual": ("A photorealistic photo of a usual custom in the United States.", "US")}
    asked: AskedImages[str]
    if isinstance(given, ExtractReads):
        asked = DescribedScenes(shown, "", dimensions=given.dimensions)
    elif isinstance(given, RateReads):
        asked = RatedScenes(shown, "", prompts=prompts)
    else:
        asked = StereotypedScenes(shown, "", prompts=prompts, tokens={"US": ("a usual stereotype",) * MOST_STEREOTYPES})
    picture = usual_picture()
    return [asked.request(picture, row, question) for question in asked.questions(row)]


def _wording_digest_of(given: SceneReads) -> str:
    """Hash what is asked besides data."""
    if isinstance(given, StereotypeReads):
        return vqa_digest()
    return wording_digest("likert" if isinstance(given, RateReads) else "descriptor_extract")
