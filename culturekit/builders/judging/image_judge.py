"""A vision model looks at images: questions with an answer each, or how probable it is that an image shows its prompt.

The latter is VQAScore. There is one row per image and question, whatever came of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from culturekit.builders.judging.image_questions import ImageQuestion, image_request, number_and_choice
from culturekit.builders.judging.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    PerPrompt,
    ShownImages,
    Verdict,
)
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.llm.client import Image, Request
from culturekit.llm.rows import Answered, TokenListing, WeighedToken
from culturekit.metrics.questions.yes_probabilities import Share, vqa_score
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.stages.stage_command import Typed
from culturekit.storage.digests import digest_bytes
from culturekit.storage.tables import read_table

__all__ = [
    "REQUEST",
    "TASK",
    "JudgedImages",
    "WeighOptions",
    "WeighReads",
    "WeighedImages",
    "judge_name",
    "probability_of_yes",
    "texts_of",
    "vqa_digest",
    "vqa_request",
    "weighed",
    "weighed_images",
]

TASK = "vqascore"
"""The task under which probabilities stand among judgments."""

REQUEST = "image.vqascore"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
YES, NO = "yes", "no"
TEXTS = tuple(f"{space}{word}" for word in ("Yes", "yes", "YES", "No", "no", "NO") for space in ("", " "))
AROUND = " \t\r\n\u2581\u0120\u010a.,!\"'*"
"""What may stand around the word in a token: white space, also as tokenizers write it, and marks."""


def vqa_digest() -> str:
    """Hash all that is said besides the text: instructions and question."""
    return digest_bytes(f"{wording('vqascore')}\n{QUESTION}".encode())


def vqa_request(picture: Image, text: str, *, instructions: str) -> Request:
    """Ask whether an image shows a text, for the probability of yes; nothing else about the image is given away."""
    return Request(
        REQUEST,
        instructions,
        {"id": picture.sha256[:ID_LETTERS], "question": QUESTION.format(text=text)},
        TokenListing,
        images=(picture,),
        max_tokens=1,
        weighed=TEXTS,
    )


def probability_of_yes(tokens: Sequence[WeighedToken], *, of: Share) -> float | None:
    """Give P("Yes") from listed tokens; None where neither yes nor no is listed, or the listing is none.

    Tokens that say yes add up, whatever their case; of the whole vocabulary a word that is not listed has no share.
    """
    words = [token.token.strip(AROUND).casefold() for token in tokens]
    yes = [place for place, word in enumerate(words) if word == YES]
    no = [place for place, word in enumerate(words) if word == NO]
    if not yes and not no:
        return None
    row = [min(token.logprob, 0.0) for token in tokens] + [-float("inf")] * 2
    unlisted_yes, unlisted_no = len(words), len(words) + 1
    try:
        return float(vqa_score([row], yes=yes or [unlisted_yes], no=no or [unlisted_no], of=of)[0])
    except UsageError:  # probabilities that add up to more than 1, or are all 0
        return None


ITEM = "prompt"
NO_TEXT, NEITHER = "the text of its prompt is not known", "neither yes nor no"
CAVEAT = 'P("Yes") is a model\'s confidence, not the share of people who would say yes.'


@dataclass
class JudgedImages(AskedImages[ImageQuestion]):
    """Questions of one's own about each image, or about those of one prompt."""

    every: Sequence[ImageQuestion]
    instructions: str = field(init=False, default_factory=partial(wording, "image_judge"))
    of_prompt: dict[str | None, list[ImageQuestion]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Sort the questions by the prompt whose images they are about."""
        for question in self.every:
            self.of_prompt.setdefault(question.prompt_id, []).append(question)

    def questions(self, row: dict[str, Any]) -> Sequence[ImageQuestion]:
        """List what is asked about the images of a prompt."""
        own = [] if row["prompt_id"] is None else self.of_prompt.get(row["prompt_id"], [])
        return [*self.of_prompt.get(None, []), *own]

    def request(self, picture: Image, row: dict[str, Any], question: ImageQuestion) -> Request:
        """Ask a question."""
        return image_request(question, row["image_id"], picture, instructions=self.instructions)

    def verdicts(self, row: dict[str, Any], question: ImageQuestion, answered: Answered) -> Sequence[Verdict]:
        """Give the number, the choice or both."""
        return [Verdict(question.task, question.item, question.dimension, *number_and_choice(answered.value))]


@dataclass(frozen=True, slots=True)
class WeighReads:
    """Images, and the prompts that they were asked for by."""

    images: ImagesToShow
    prompts: Annotated[
        Path | None, Field(description="Prompts the images were asked for by. [what the images table says was sent]")
    ] = None


@dataclass(frozen=True, slots=True)
class WeighOptions:
    """Who weighs yes against no, of what, and for how many images."""

    judge: Annotated[
        str,
        Field(
            description="Who looks, as a SPEC that lists probabilities of tokens: a server of one's own, such as vLLM, "
            "as openai:MODEL with a base_url; local:FOLDER; or replay:FILE. `doctor --judge SPEC` asks a server."
        ),
        Typed("llm"),
    ]
    of: Annotated[
        Literal["yes-no", "vocabulary"],
        Field(description="What P(Yes) is a share of: yes and no alone, or the whole vocabulary."),
    ] = "yes-no"
    per_prompt: PerPrompt = None


def judge_name(model: str, of: Share) -> str:
    """Name who says it, with what decides what is said: the question's wording, and what yes is a share of."""
    return f"vqascore:{model}?of={of}&wording={vqa_digest()[:8]}"


def texts_of(given: WeighReads) -> dict[str, str]:
    """Give the text of each image's prompt: the prompt's own, or, without prompts, what was sent."""
    images = read_table(given.images, IMAGES).select("image_id", "prompt_id", "prompt_sent")
    if given.prompts is None:
        known = images.select("image_id", text="prompt_sent")
    else:
        own = read_table(given.prompts, PROMPTS).select("prompt_id", "text")
        known = images.join(own, on="prompt_id", how="inner").select("image_id", "text")
    return {image: text for image, text in known.drop_nulls().iter_rows() if text.strip()}


def weighed_images(given: WeighReads, judge: str, of: Share) -> "WeighedImages":
    """Prepare the question whether it shows its prompt for each image; every listing is kept."""
    return WeighedImages(ShownImages(given.images.parent, "vqascore"), judge_name(judge, of), texts_of(given), of)


@dataclass
class WeighedImages(AskedImages[str]):
    """How probable it is that each image shows its prompt."""

    caveat = CAVEAT

    texts: Mapping[str, str]
    of: Share = "yes-no"
    instructions: str = field(init=False, default_factory=partial(wording, "vqascore"))

    def questions(self, row: dict[str, Any]) -> Sequence[str]:
        """Give the text of the prompt, where it is known."""
        text = self.texts.get(row["image_id"])
        return () if text is None else (text,)

    def why_not(self, row: dict[str, Any]) -> str:
        """Say that it is not known."""
        return NO_TEXT

    def request(self, picture: Image, row: dict[str, Any], question: str) -> Request:
        """Ask whether it is shown."""
        return vqa_request(picture, question, instructions=self.instructions)

    def verdicts(self, row: dict[str, Any], question: str, answered: Answered) -> Sequence[Verdict]:
        """Give the probability."""
        return [weighed(TASK, ITEM, answered, of=self.of)]


def weighed(task: str, item: str, answered: Answered, *, of: Share) -> Verdict:
    """Read the probability of yes; a listing without yes and no is no answer."""
    if not isinstance(answered.value, TokenListing):
        return Verdict(task, item)
    yes = probability_of_yes(answered.value.tokens, of=of)
    if yes is None:
        return Verdict(task, item, choice=NEITHER, outcome="invalid")
    return Verdict(task, item, value=yes)
