"""A vision model looks at images: questions with an answer each, or how probable it is that an image shows its prompt.

The latter is VQAScore. There is one row per image and question, whatever came of it.
"""

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from culturekit.builders.judging.image_questions import ImageQuestion, check_questions, image_request, number_and_choice
from culturekit.builders.judging.shown_images import ImagesToShow, PerPrompt, ShownImages, judged, prompted_images
from culturekit.builders.judging.yes_probability import (
    TASK,
    probability_of_yes,
    vqa_request,
    vqa_wording,
    wording_digest,
)
from culturekit.builders.wordings import wording
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.clients.token_listing import TokenListing
from culturekit.llm.outcomes import Answered
from culturekit.metrics.questions.yes_probabilities import Share
from culturekit.records.schemas import IMAGES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table

__all__ = [
    "AskedImages",
    "WeighOptions",
    "WeighReads",
    "WeighedImages",
    "judge_images",
    "judge_name",
    "judge_wording",
    "texts_of",
    "weigh_images",
]

ITEM = "prompt"
NO_TEXT, NEITHER = "the text of its prompt is not known", "neither yes nor no"
CAVEAT = 'P("Yes") is a model\'s confidence, not the share of people who would say yes.'


def judge_wording() -> str:
    """Read the judge's instructions; their hash is part of what decides a judgment."""
    return wording("image_judge")


def judge_images(
    work: Work,
    images_path: Path,
    questions: Sequence[ImageQuestion],
    client: Client | FreeClient,
    *,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Put questions about images to a judge; images that cannot be shown to it are dropped with a reason."""
    check_questions(questions)
    images = prompted_images(images_path, None)
    asked = AskedImages(ShownImages(images_path.parent, "judge"), questions, judge=client.model)
    notes: dict[str, object] = {"judge": client.model, "caveat": client.caveat}
    return judged(work, images, asked, client, llm=llm, notes=notes)


class AskedImages:
    """Questions go out image by image; their answers come back in the same order and become rows."""

    def __init__(self, shown: ShownImages, questions: Sequence[ImageQuestion], *, judge: str) -> None:
        """Sort the questions by the prompt whose images they are about."""
        self.shown = shown
        self.judge = judge
        self.instructions = judge_wording()
        self.of_prompt: dict[str | None, list[ImageQuestion]] = {}
        for question in questions:
            self.of_prompt.setdefault(question.prompt_id, []).append(question)
        self.open: deque[tuple[str, str | None, ImageQuestion]] = deque()
        self.rows: list[tuple[object, ...]] = []
        self.outcomes: Counter[str] = Counter()

    def about(self, row: dict[str, Any]) -> Iterator[Request]:
        """Give the questions about one image; it is read once for all of them."""
        questions = self.questions(row["prompt_id"])
        if not questions:
            return
        picture = self.shown.picture(row)
        if picture is None:
            return
        for question in questions:
            self.open.append((row["image_id"], row["prompt_id"], question))
            yield image_request(question, row["image_id"], picture, instructions=self.instructions)

    def questions(self, prompt_id: str | None) -> list[ImageQuestion]:
        """List what is asked about the images of a prompt."""
        own = [] if prompt_id is None else self.of_prompt.get(prompt_id, [])
        return [*self.of_prompt.get(None, []), *own]

    def take(self, answered: Answered) -> None:
        """Write down the answer to the first question that is still open."""
        image_id, prompt_id, question = self.open.popleft()
        value, choice = number_and_choice(answered.value)
        raw = answered.raw.encode("utf-8", "replace").decode()
        place = (image_id, prompt_id, self.judge, question.task, question.item, question.dimension)
        self.rows.append((*place, value, choice, raw, answered.outcome))
        self.outcomes[answered.outcome] += 1


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
            description="Who looks, as a SPEC that lists probabilities of tokens: openai:MODEL by chat, also a server "
            "of one's own by base_url, local:FOLDER, or replay:FILE."
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
    return f"vqascore:{model}?of={of}&wording={wording_digest()[:8]}"


def texts_of(given: WeighReads) -> dict[str, str]:
    """Give the text of each image's prompt: the prompt's own, or, without prompts, what was sent."""
    images = read_table(given.images, IMAGES).select("image_id", "prompt_id", "prompt_sent")
    if given.prompts is None:
        known = images.select("image_id", text="prompt_sent")
    else:
        own = read_table(given.prompts, PROMPTS).select("prompt_id", "text")
        known = images.join(own, on="prompt_id", how="inner").select("image_id", "text")
    return {image: text for image, text in known.drop_nulls().iter_rows() if text.strip()}


def weigh_images(
    work: Work, given: WeighReads, client: Client | FreeClient, options: WeighOptions, llm: LlmOptions = DEFAULTS
) -> Outcome:
    """Ask of each image whether it shows its prompt, and keep the probability of yes; every listing is kept."""
    images = prompted_images(given.images, options.per_prompt)
    weighed = WeighedImages(ShownImages(given.images.parent, "vqascore"), texts_of(given))
    weighed.judge, weighed.of = judge_name(client.model, options.of), options.of
    notes: dict[str, object] = {"judge": weighed.judge, "caveat": " ".join(filter(None, (client.caveat, CAVEAT)))}
    return judged(work, images, weighed, client, llm=llm, notes=notes)


@dataclass
class WeighedImages:
    """Images go out in their order; the probabilities come back in the same order and become rows."""

    shown: ShownImages
    texts: Mapping[str, str]
    judge: str = ""
    of: Share = "yes-no"
    open: deque[tuple[str, str | None]] = field(default_factory=deque)
    rows: list[tuple[object, ...]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    instructions: str = field(default_factory=vqa_wording)

    def about(self, row: dict[str, Any]) -> Iterator[Request]:
        """Give the question about one image, where it can be shown and its prompt is known."""
        text = self.texts.get(row["image_id"])
        if text is None:
            self.shown.drop(row, NO_TEXT)
            return
        picture = self.shown.picture(row)
        if picture is not None:
            self.open.append((row["image_id"], row["prompt_id"]))
            yield vqa_request(picture, text, instructions=self.instructions)

    def take(self, answered: Answered) -> None:
        """Write down the probability for the first image that is still open."""
        image_id, prompt_id = self.open.popleft()
        value, outcome = None, str(answered.outcome)
        if isinstance(answered.value, TokenListing):
            value = probability_of_yes(answered.value.tokens, of=self.of)
            outcome = outcome if value is not None else "invalid"
        choice = NEITHER if isinstance(answered.value, TokenListing) and value is None else None
        raw = answered.raw.encode("utf-8", "replace").decode()
        self.rows.append((image_id, prompt_id, self.judge, TASK, ITEM, None, value, choice, raw, outcome))
        self.outcomes[outcome] += 1
