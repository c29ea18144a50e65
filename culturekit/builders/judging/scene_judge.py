"""A vision model describes scenes: phrases by dimension, ratings of the published scales, and stereotypes shown.

Every question leaves a row, whatever came of it, with the reply as it came; without an answer, `choice` says why not.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import GivenWording, wording, wording_digest
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
from culturekit.llm.replies import FENCED
from culturekit.llm.rows import Answered
from culturekit.llm.untrusted import strip_hidden
from culturekit.metrics.ahead.matching import DIMENSIONS, normalise_phrase

LIKERT = ("alignment", "hallucination", "exaggeration")
"""What the published judges rate."""

MOST_PHRASES, LONGEST_PHRASE = 8, 7
"""Phrases of a reply that count, and words of one: as many as published tokens have."""

RATING_TOKENS = 64
MOST_STEREOTYPES = 15

_BETWEEN = re.compile(r"[,;\n\u060c\u3001]")
_BULLET = re.compile(r"^(?:[-*\u2022]|\d+[.)])\s*")
_TEXT = r'"((?:[^"\\]|\\.)*)'
_LISTED = re.compile(rf'"descriptors"\s*:\s*(?:\[|{_TEXT}("?))', re.DOTALL)
_ITEM, _TOKEN = (re.compile(rf'{before}\s*{_TEXT}"', re.DOTALL) for before in (r"[\[,]", r'"token"\s*:'))
_TALK = re.compile(r"\b(?:i|i'm|i'll|sorry|cannot|can't|unable|image|picture|photo)\b", re.IGNORECASE)

NOTHING = frozenset({"", "none", "nothing", "n/a"})
NO_ONE, NOT_OVERDONE = "the country of its prompt is not known", "no stereotype of its country is listed"
CAVEAT = "What a picture shows, and how well, is a model's word: it may know some countries better than others."


class Descriptors(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model says that an image shows in one dimension: phrases between commas."""

    descriptors: Annotated[str, msgspec.Meta(max_length=4000)]

    def __post_init__(self) -> None:
        """Reject prose; a phrase that is too long among others costs itself alone."""
        if self.too_long * 2 >= max(1, len(self.named)):
            raise ValueError(f"a phrase has at most {LONGEST_PHRASE} words")

    @property
    def named(self) -> tuple[str, ...]:
        """Give whatever stands between commas, each once, without what nobody sees."""
        parts = (_BULLET.sub("", strip_hidden(part).strip()).strip(" .") for part in _BETWEEN.split(self.descriptors))
        return tuple(dict.fromkeys(phrase for phrase in map(normalise_phrase, parts) if phrase not in NOTHING))

    @property
    def phrases(self) -> tuple[str, ...]:
        """Give the phrases, as many as are asked for."""
        return tuple(each for each in self.named if len(each.split()) <= LONGEST_PHRASE)[:MOST_PHRASES]

    @property
    def too_long(self) -> int:
        """Count what is no phrase but prose."""
        return sum(len(each.split()) > LONGEST_PHRASE for each in self.named)

    @classmethod
    def read_in_part(cls, text: str, *, cut: bool) -> "Descriptors | None":
        """Read the complete phrases of a reply that was cut, chatty or in another form; None where there are none."""
        listed = _LISTED.search(text)
        if listed is None:
            return _plain_list(text, cut=cut)
        said, closed = listed.group(1), bool(listed.group(2))
        if said is None:
            items = _TOKEN if '"token"' in text else _ITEM
            parts = [match.group(1) for match in items.finditer(text, listed.end() - 1)]
        else:
            parts = _BETWEEN.split(said.replace("\\n", "\n"))
            parts = parts if closed else parts[:-1]
        joined = ",".join(map(_unescaped, parts))
        return _described(joined) if parts or (said is not None and closed) else None


def _described(phrases: str) -> Descriptors | None:
    """Read phrases, where there is more than prose among them."""
    try:
        return Descriptors(phrases)
    except ValueError:
        return None


def _unescaped(text: str) -> str:
    """Read the content of a JSON string; of one that is none, the text as it stands."""
    try:
        return str(msgspec.json.decode(f'"{text}"'.encode()))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return text


def _plain_list(text: str, *, cut: bool) -> Descriptors | None:
    """Read a bare list between commas, as the published extractor writes it; sentences and refusals are none."""
    bare = text.strip().strip("`").rpartition(":\n")[2]
    if "{" in bare or _TALK.search(bare):
        return None
    parts = _BETWEEN.split(bare)
    whole = parts[:-1] if cut else parts
    if len(parts) < 2 or any(len(part.split()) > LONGEST_PHRASE for part in whole):
        return None
    return _described(",".join(whole)) if whole else None


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
    wording: GivenWording = None


@dataclass(frozen=True, slots=True)
class DescribeOptions(SceneOptions):
    """Who says what images show, and how much room a reply has."""

    reply_tokens: Annotated[
        int,
        Field(ge=16, le=4096, description="Room of a reply: 8 phrases take 44 to 68; the published code gives 64."),
    ] = 256


@dataclass(frozen=True, slots=True)
class ExtractReads:
    """Images to be described, and in which dimensions.

    With their `prompts` the activity and the country go along, as published; nothing that is expected ever does.
    """

    images: ImagesToShow
    dimensions: Annotated[
        tuple[str, ...],
        Field(description="What is named, with commas between: background, objects, attire, interaction, spatial."),
        Typed(once=True),
    ] = DIMENSIONS
    prompts: Annotated[
        Path | None, Field(description="Prompts of the images: say which activity and country each was asked for.")
    ] = None

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
    activities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    words: str = ""
    reply_tokens: int = 256
    in_part: Counter[str] = field(default_factory=Counter)

    def notes(self, caveat: str) -> dict[str, object]:
        """Count what was read of replies that were cut or chatty, and what was no phrase."""
        return super().notes(caveat) | ({"read_in_part": dict(sorted(self.in_part.items()))} if self.in_part else {})

    def questions(self, row: dict[str, Any]) -> Sequence[str]:
        """List the dimensions."""
        return self.dimensions

    def request(self, picture: Image, row: dict[str, Any], question: str) -> Request:
        """Ask for phrases."""
        about = self.activities.get(row["prompt_id"] or "", {})
        data = {"id": picture.sha256[:ID_LETTERS], "dimension": question, **about}
        return Request("image.extract", self.words, data, Descriptors, images=(picture,), max_tokens=self.reply_tokens)

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give a row for each phrase, and one without where there is none."""
        value = answered.value
        phrases: tuple[str, ...] = ()
        if isinstance(value, Descriptors):
            phrases = value.phrases
            self.in_part.update({answered.detail: 1} if answered.detail not in ("", FENCED) else {})
            self.in_part.update({"phrases that are prose": value.too_long} if value.too_long else {})
        return [Verdict("extract", phrase, question, choice=_problem(answered)) for phrase in phrases or ("",)]


@dataclass
class CountryScenes(AskedImages[str]):
    """Scenes of which it is known what prompt asked for them, and in which country: prompt -> text, country."""

    caveat = CAVEAT

    prompts: Mapping[str, tuple[str, str]]
    words: str = ""

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
        return Request("image.likert", self.words, data, Rating, images=(picture,), max_tokens=RATING_TOKENS)

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give the rating."""
        if not isinstance(answered.value, Rating):
            return [Verdict("likert", question, choice=_problem(answered))]
        return [Verdict("likert", question, value=answered.value.number, choice=answered.value.answer)]


@dataclass
class StereotypedScenes(CountryScenes):
    """How probable it is that each image shows what pictures of its country overdo, one by one."""

    tokens: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def questions(self, row: dict[str, Any]) -> Sequence[str]:
        """List what pictures of the country overdo."""
        _, country = self.prompts.get(row["prompt_id"] or "", ("", ""))
        return self.tokens.get(country, ())

    def why_not(self, row: dict[str, Any]) -> str:
        """Tell a country without stereotypes from one that is not known."""
        return NOT_OVERDONE if row["prompt_id"] in self.prompts else NO_ONE

    def request(self, picture: Image, row: dict[str, Any], question: str) -> Request:
        """Ask whether one of them is shown, for the probability of yes."""
        return vqa_request(picture, question, instructions=self.words)

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give the probability."""
        verdict = weighed("stereotype", question, answered, of="yes-no")
        return [verdict if answered.value is not None else verdict._replace(choice=_problem(answered))]


def _problem(answered: Answered) -> str | None:
    """Explain why there is no answer, where there is none."""
    return answered.detail or None if answered.value is None else None


# The stages that ask: commands of their own, and parts of recipes.


def extract_stage(given: ExtractReads, options: DescribeOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model what each image shows, in phrases.

    They are sorted by dimension; `score ahead` compares them.
    """
    more: dict[str, object] = {"reply_tokens": options.reply_tokens}
    if given.dimensions != DIMENSIONS:
        more["dimensions"] = list(given.dimensions)
    return _scene_stage("judge-extract", given, options, llm, name="extracted", version=2, more=more)


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
    version: int = 1,
    more: Mapping[str, object] = NO_OPTIONS,
) -> Stage:
    """Make the stage of one kind of question."""
    return asking_images(
        kind,
        version,
        given,
        options.judge,
        images=lambda: prompted_images(given.images, options.per_prompt),
        asked=lambda model, _: scenes_of(given, model, options),
        options={"wording": _wording_digest_of(given, options.wording), "per_prompt": options.per_prompt, **more},
        llm=llm,
        name=name,
        usual=lambda: _questions_of_one(given, options),
    )


def scenes_of(given: SceneReads, judge: str, options: SceneOptions) -> AskedImages[str]:
    """Prepare what is asked of images, by what there is to read."""
    shown, words = ShownImages(given.images.parent, "judge"), wording(_wording_of(given), options.wording)
    if isinstance(given, ExtractReads):
        activities = {} if given.prompts is None else _activities_in(given.prompts)
        return _described_scenes(given, shown, judge, options, activities)
    prompts = read_table(given.prompts, PROMPTS).drop_nulls("country").select("prompt_id", "text", "country")
    known = {prompt: (text, country) for prompt, text, country in prompts.iter_rows()}
    if isinstance(given, RateReads):
        return RatedScenes(shown, judge, prompts=known, words=words)
    table = read_table(given.stereotypes, STEREOTYPES).group_by("country").agg(pl.col("token").sort())
    if table.is_empty():
        raise UsageError(
            "there is no stereotype to ask about",
            where=str(given.stereotypes),
            expected="rows of country and token, as `descriptors stereotypes` writes them",
        )
    who = judge_name(judge, "yes-no")
    return StereotypedScenes(shown, who, prompts=known, words=words, tokens=dict(table.iter_rows()))


def _described_scenes(
    given: ExtractReads, shown: ShownImages, judge: str, options: SceneOptions, activities: Mapping[str, Any]
) -> DescribedScenes:
    words = wording(_wording_of(given), options.wording)
    room = options.reply_tokens if isinstance(options, DescribeOptions) else DescribedScenes.reply_tokens
    return DescribedScenes(
        shown, judge, dimensions=given.dimensions, activities=activities, words=words, reply_tokens=room
    )


def _activities_in(prompts: Path) -> dict[str, dict[str, str]]:
    """Give the activity and the country of each prompt that names one."""
    table = read_table(prompts, PROMPTS).drop_nulls("country")
    text = pl.coalesce("activity", "text") if "activity" in table.columns else pl.col("text")
    rows = table.select("prompt_id", "country", activity=text).iter_rows()
    names = {code: each.name for code, each in countries().items()}
    return {prompt: {"activity": text, "country": names.get(code, code)} for prompt, code, text in rows}


def _questions_of_one(given: SceneReads, options: SceneOptions) -> list[Request]:
    """Give the requests about one image of a usual prompt, for a plan before there are any."""
    row, shown = {"prompt_id": "usual"}, ShownImages(Path(), "judge")
    prompts = {"usual": ("A photorealistic photo of a usual custom in the United States.", "US")}
    words = wording(_wording_of(given), options.wording)
    asked: AskedImages[str]
    if isinstance(given, ExtractReads):
        about = {"usual": {"activity": "a usual custom", "country": "the United States"}} if given.prompts else {}
        asked = _described_scenes(given, shown, "", options, about)
    elif isinstance(given, RateReads):
        asked = RatedScenes(shown, "", prompts=prompts, words=words)
    else:
        tokens = {"US": ("a usual stereotype",) * MOST_STEREOTYPES}
        asked = StereotypedScenes(shown, "", prompts=prompts, words=words, tokens=tokens)
    picture = usual_picture()
    return [asked.request(picture, row, question) for question in asked.questions(row)]


def _wording_of(given: SceneReads) -> str:
    """Name the shipped instructions of a question."""
    if isinstance(given, StereotypeReads):
        return "vqascore"
    return "likert" if isinstance(given, RateReads) else "descriptor_extract"


def _wording_digest_of(given: SceneReads, words: Path | None) -> str:
    """Hash what is asked besides data."""
    if isinstance(given, StereotypeReads) and words is None:
        return vqa_digest()
    return wording_digest(_wording_of(given), words)
