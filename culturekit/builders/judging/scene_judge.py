"""A vision model describes scenes: phrases by dimension, ratings of the published scales, and stereotypes shown.

Every question leaves a row, whatever came of it, with the reply as it came; without an answer, `choice` says why not.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asking import GivenWording
from culturekit.builders.asking import wording as instructions
from culturekit.builders.judging.image_judge import judge_name, vqa_digest, vqa_request, weighed
from culturekit.builders.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    Judge,
    PerPrompt,
    Row,
    ShownImages,
    Verdict,
    WhoLooks,
    looks,
    usual_picture,
)
from culturekit.core.declared import Given, Typed
from culturekit.core.errors import UsageError
from culturekit.core.schemas import PROMPTS, STEREOTYPES
from culturekit.core.tables import read_table
from culturekit.kg.countries import countries
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Image, Request
from culturekit.llm.models import quoted
from culturekit.llm.replies import FENCED
from culturekit.llm.rows import Answered
from culturekit.llm.untrusted import strip_hidden
from culturekit.metrics.ahead.matching import DIMENSIONS, normalise_phrase

LIKERT = ("alignment", "hallucination", "exaggeration")  # what the published judges rate
MOST_PHRASES, LONGEST_PHRASE = 8, 7  # phrases of a reply that count, and words of one, as published tokens have
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
        found_text, closed = listed.group(1), bool(listed.group(2))
        if found_text is None:
            items = _TOKEN if '"token"' in text else _ITEM
            parts = [match.group(1) for match in items.finditer(text, listed.end() - 1)]
        else:
            parts = _BETWEEN.split(found_text.replace("\\n", "\n"))
            parts = parts if closed else parts[:-1]
        joined = ",".join(map(_unescaped, parts))
        return _described(joined) if parts or (found_text is not None and closed) else None


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


def _described_scenes(
    shown: ShownImages,
    judge: str,
    dimensions: Sequence[str],
    activities: Mapping[str, Mapping[str, str]],
    words: str,
    reply_tokens: int,
) -> AskedImages[str]:
    """Ask what each image shows, dimension by dimension; nothing that is expected of it goes along.

    `activities` are what prompts ask for and where, as published. What was read of replies that were cut or chatty is
    counted, and what was no phrase.
    """
    in_part: Counter[str] = Counter()

    def request(picture: Image, row: Row, dimension: str) -> Request:
        data = {"id": picture.sha256[:ID_LETTERS], "dimension": dimension, **activities.get(row["prompt_id"] or "", {})}
        return Request("image.extract", words, data, Descriptors, images=(picture,), max_tokens=reply_tokens)

    def verdicts(_: Row, dimension: str, answered: Answered) -> Sequence[Verdict]:
        value = answered.value
        phrases: tuple[str, ...] = ()
        if isinstance(value, Descriptors):
            phrases = value.phrases
            in_part.update({answered.detail: 1} if answered.detail not in ("", FENCED) else {})
            in_part.update({"phrases that are prose": value.too_long} if value.too_long else {})
        return [Verdict("extract", phrase, dimension, choice=_problem(answered)) for phrase in phrases or ("",)]

    def notes() -> dict[str, object]:
        return {"read_in_part": dict(sorted(in_part.items()))} if in_part else {}

    return AskedImages(shown, judge, lambda _: dimensions, request, verdicts, caveat=CAVEAT, notes=notes)


Placed: TypeAlias = Mapping[str, tuple[str, str]]  # text and country of prompts


def _rated_scenes(shown: ShownImages, judge: str, prompts: Placed, words: str) -> AskedImages[str]:
    """Ask how well each image shows its prompt, by the published scales."""

    def request(picture: Image, row: Row, scale: str) -> Request:
        text, country = prompts[row["prompt_id"]]
        name = countries()[country].name if country in countries() else country
        data = {"id": picture.sha256[:ID_LETTERS], "criterion": scale, "prompt": text, "country": name}
        return Request("image.likert", words, data, Rating, images=(picture,), max_tokens=RATING_TOKENS)

    def verdicts(_: Row, scale: str, answered: Answered) -> Sequence[Verdict]:
        if not isinstance(answered.value, Rating):
            return [Verdict("likert", scale, choice=_problem(answered))]
        return [Verdict("likert", scale, value=float(answered.value.answer[-1]), choice=answered.value.answer)]

    def questions(row: Row) -> Sequence[str]:
        return LIKERT if row["prompt_id"] in prompts else ()

    return AskedImages(shown, judge, questions, request, verdicts, lambda _: NO_ONE, CAVEAT)


def _stereotyped_scenes(
    shown: ShownImages, judge: str, prompts: Placed, words: str, tokens: Mapping[str, Sequence[str]]
) -> AskedImages[str]:
    """Ask how probable it is that each image shows what pictures of its country overdo, one by one."""

    def verdicts(_: Row, token: str, answered: Answered) -> Sequence[Verdict]:
        verdict = weighed("stereotype", token, answered, of="yes-no")
        return [verdict if answered.value is not None else verdict._replace(choice=_problem(answered))]

    return AskedImages(
        shown, judge, lambda row: tokens.get(prompts.get(row["prompt_id"] or "", ("", ""))[1], ()),
        lambda picture, _, token: vqa_request(picture, token, instructions=words), verdicts,
        lambda row: NOT_OVERDONE if row["prompt_id"] in prompts else NO_ONE, CAVEAT,
    )  # fmt: skip


def _problem(answered: Answered) -> str | None:
    """Explain why there is no answer, where there is none."""
    return answered.detail or None if answered.value is None else None


# The stages that ask: commands of their own, and parts of recipes. What a plan asks of a usual image stands in front.

PromptsOfImages = Annotated[Path, Field(description="Prompts the images were asked for by, with the country of each.")]
USUAL = "usual"
USUAL_PROMPT = {USUAL: ("A photorealistic photo of a usual custom in the United States.", "US")}
USUAL_ACTIVITY = {USUAL: {"activity": "a usual custom", "country": "the United States"}}


def _requests_of_one(asked: AskedImages[str]) -> list[Request]:
    row, picture = {"prompt_id": USUAL}, usual_picture()
    return [asked.request(picture, row, question) for question in asked.questions(row)]


def _usual_descriptions(given: Given) -> list[Request]:
    words = instructions("descriptor_extract", given["wording"])
    about = USUAL_ACTIVITY if given["prompts"] else {}
    return _requests_of_one(_described_scenes(NO_IMAGES, "", given["dimensions"], about, words, given["reply_tokens"]))


def _usual_ratings(given: Given) -> list[Request]:
    return _requests_of_one(_rated_scenes(NO_IMAGES, "", USUAL_PROMPT, instructions("likert", given["wording"])))


def _usual_stereotypes(given: Given) -> list[Request]:
    words, tokens = instructions("vqascore", given["wording"]), {"US": ("a usual stereotype",) * MOST_STEREOTYPES}
    return _requests_of_one(_stereotyped_scenes(NO_IMAGES, "", USUAL_PROMPT, words, tokens))


NO_IMAGES = ShownImages(Path(), "judge")


def _extraction_decides(given: Given) -> dict[str, object]:
    strange = sorted(set(given["dimensions"]) - set(DIMENSIONS))
    if strange or not given["dimensions"]:
        raise UsageError("this is no dimension", expected=", ".join(DIMENSIONS), found=", ".join(strange) or "none")
    more = {} if given["dimensions"] == DIMENSIONS else {"dimensions": list(given["dimensions"])}
    return {"reply_tokens": given["reply_tokens"], **more}


@looks(
    "judge-extract", "extracted", words="descriptor_extract", version=2, decides=_extraction_decides,
    usual=_usual_descriptions,
    example=f"--images images/images.parquet --llm {quoted('vision')} --out extracted --budget 20",
)  # fmt: skip
def extract(
    by: Judge,
    images: ImagesToShow,
    prompts: Annotated[
        Path | None, Field(description="Prompts of the images: say which activity and country each was asked for.")
    ] = None,
    *,
    dimensions: Annotated[
        tuple[str, ...],
        Field(description="What is named, with commas between: background, objects, attire, interaction, spatial."),
        Typed(once=True, after="images"),
    ] = DIMENSIONS,
    judge: WhoLooks,
    per_prompt: PerPrompt = None,
    wording: GivenWording = None,
    reply_tokens: Annotated[
        int, Field(ge=16, le=4096, description="Room of a reply: 8 phrases take 44 to 68; the published code gives 64.")
    ] = 256,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[str]:
    """Ask a vision model what each image shows, in phrases.

    They are sorted by dimension; `score ahead` compares them.
    """
    shown, words = ShownImages(images.parent, "judge"), instructions("descriptor_extract", wording)
    activities = {} if prompts is None else _activities_in(prompts)
    return _described_scenes(shown, by.model, dimensions, activities, words, reply_tokens)


@looks(
    "judge-likert", "likert", words="likert", usual=_usual_ratings,
    example=f"--images images/images.parquet --prompts prompts/prompts.parquet --llm {quoted('vision')} --out likert "
    "--budget 20",
)  # fmt: skip
def likert(
    by: Judge,
    images: ImagesToShow,
    prompts: PromptsOfImages,
    *,
    judge: WhoLooks,
    per_prompt: PerPrompt = None,
    wording: GivenWording = None,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[str]:
    """Ask a vision model to rate each image from 1 to 5.

    It rates alignment, hallucination and exaggeration.
    """
    shown, words = ShownImages(images.parent, "judge"), instructions("likert", wording)
    return _rated_scenes(shown, by.model, _placed_prompts(prompts), words)


@looks(
    "judge-stereotypes", "stereotyped", words="vqascore", usual=_usual_stereotypes,
    decides=lambda given: {} if given["wording"] else {"wording": vqa_digest()},
    example="--images images/images.parquet --prompts prompts/prompts.parquet --stereotypes "
    f"stereotypes/stereotypes.parquet --llm {quoted('weighing')} --out stereotyped --budget 20",
)  # fmt: skip
def stereotypes_shown(
    by: Judge,
    images: ImagesToShow,
    prompts: PromptsOfImages,
    stereotypes: Annotated[Path, Field(description="Table of stereotypes: country and token.")],
    *,
    judge: WhoLooks,
    per_prompt: PerPrompt = None,
    wording: GivenWording = None,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[str]:
    """Ask whether each image shows what its country overdoes.

    The score is the probability of yes (EXAG).
    """
    table = read_table(stereotypes, STEREOTYPES).group_by("country").agg(pl.col("token").sort())
    if table.is_empty():
        raise UsageError(
            "there is no stereotype to ask about", where=str(stereotypes),
            expected="rows of country and token, as `descriptors stereotypes` writes them",
        )  # fmt: skip
    shown, words = ShownImages(images.parent, "judge"), instructions("vqascore", wording)
    who, tokens = judge_name(by.model, "yes-no"), dict(table.iter_rows())
    return _stereotyped_scenes(shown, who, _placed_prompts(prompts), words, tokens)


def _placed_prompts(path: Path) -> dict[str, tuple[str, str]]:
    """Give text and country of each prompt that has one."""
    table = read_table(path, PROMPTS).drop_nulls("country").select("prompt_id", "text", "country")
    return {prompt: (text, country) for prompt, text, country in table.iter_rows()}


def _activities_in(prompts: Path) -> dict[str, dict[str, str]]:
    """Give the activity and the country of each prompt that names one."""
    table = read_table(prompts, PROMPTS).drop_nulls("country")
    text = pl.coalesce("activity", "text") if "activity" in table.columns else pl.col("text")
    rows = table.select("prompt_id", "country", activity=text).iter_rows()
    names = {code: each.name for code, each in countries().items()}
    return {prompt: {"activity": text, "country": names.get(code, code)} for prompt, code, text in rows}
