"""A vision model answers the questions of each image's prompt: one row per image and question, whatever came of it."""

from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from culturekit.builders.judging.shown_images import (
    ID_LETTERS,
    ImagesToShow,
    PerPrompt,
    ShownImages,
    judged,
    prompted_images,
)
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Image, Request
from culturekit.llm.outcomes import Answered
from culturekit.records.schemas import QUESTIONS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import read_table

__all__ = [
    "REQUEST",
    "TASK",
    "AnswerOptions",
    "AnswerReads",
    "AskedImages",
    "answer_questions",
    "answer_wording",
    "questions_by_prompt",
]

TASK = "dsg"
"""The task under which answers stand among judgments."""

REQUEST = "image.dsg"
REPLY_TOKENS = 64
NO_PROMPT, NO_QUESTIONS = "the image names no prompt", "no questions for its prompt"
CAVEAT = "Whether an image shows what a question asks is a model's word; what it does not know, it tends to deny."

Questions = Mapping[str, tuple[tuple[str, str], ...]]
"""Prompt -> its questions, each an id and a text."""


class YesOrNo(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model answers."""

    id: str
    answer: Literal["yes", "no"]


def answer_wording() -> str:
    """Read the instructions; their hash is part of what decides an answer."""
    return wording("question_answer")


@dataclass(frozen=True, slots=True)
class AnswerReads:
    """Images, and the questions about what their prompts ask for."""

    images: ImagesToShow
    questions: Annotated[Path, Field(description="Table that `questions build` wrote.")]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Who answers, and about how many images."""

    judge: Annotated[
        str,
        Field(description="Who looks at the images, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER, ...."),
        Typed("llm"),
    ]
    per_prompt: PerPrompt = None


def answer_questions(
    work: Work,
    given: AnswerReads,
    client: Client | FreeClient,
    per_prompt: int | None = None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Put the questions of its prompt to each image; images that cannot be shown are dropped with a reason."""
    images = prompted_images(given.images, per_prompt)
    asked = AskedImages(ShownImages(given.images.parent, "ask"), questions_by_prompt(given.questions), client.model)
    notes: dict[str, object] = {"judge": client.model, "caveat": " ".join(filter(None, (client.caveat, CAVEAT)))}
    outcome = judged(work, images, asked, client, llm=llm, notes=notes)
    return replace(outcome, notes={**outcome.notes, "answers": dict(sorted(asked.said.items()))})


def questions_by_prompt(path: Path) -> Questions:
    """Read the questions of each prompt."""
    table = read_table(path, QUESTIONS).sort("prompt_id", "question_id")
    if table.is_empty():
        raise UsageError("there are no questions to ask", where=str(path), expected="the table `questions build` wrote")
    found: dict[str, list[tuple[str, str]]] = {}
    for prompt, question, text in table.select("prompt_id", "question_id", "text").iter_rows():
        found.setdefault(prompt, []).append((question, text))
    return {prompt: tuple(own) for prompt, own in found.items()}


@dataclass
class AskedImages:
    """Questions go out image by image; their answers come back in the same order and become rows."""

    shown: ShownImages
    questions: Questions
    judge: str
    open: deque[tuple[str, str, str]] = field(default_factory=deque)
    rows: list[tuple[object, ...]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    instructions: str = field(default_factory=answer_wording)

    def about(self, row: dict[str, Any]) -> Iterator[Request]:
        """Give the questions about one image; it is read once for all of them."""
        prompt = row["prompt_id"]
        own = self.questions.get(prompt or "", ())
        if not own:
            self.shown.drop(row, NO_PROMPT if prompt is None else NO_QUESTIONS)
            return
        picture = self.shown.picture(row)
        if picture is None:
            return
        for question, text in own:
            self.open.append((row["image_id"], prompt, question))
            yield answer_request(picture, text, instructions=self.instructions)

    def take(self, answered: Answered) -> None:
        """Write down the answer to the first question that is still open."""
        image_id, prompt_id, question = self.open.popleft()
        choice = answered.value.answer if isinstance(answered.value, YesOrNo) else None
        value = None if choice is None else float(choice == "yes")
        raw = answered.raw.encode("utf-8", "replace").decode()
        self.rows.append((image_id, prompt_id, self.judge, TASK, question, None, value, choice, raw, answered.outcome))
        self.outcomes[answered.outcome] += 1
        if choice is not None:
            self.said[choice] += 1


def answer_request(picture: Image, question: str, *, instructions: str) -> Request:
    """Ask one question about an image, and give away nothing else about it."""
    image_id = picture.sha256[:ID_LETTERS]
    return Request(
        REQUEST,
        instructions,
        {"id": image_id, "question": question},
        YesOrNo,
        allowed={"id": (image_id,)},
        images=(picture,),
        max_tokens=REPLY_TOKENS,
    )
