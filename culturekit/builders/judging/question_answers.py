"""A vision model answers the questions of each image's prompt: one row per image and question, whatever came of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from culturekit.builders.judging.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    PerPrompt,
    ShownImages,
    Verdict,
    WhoLooks,
)
from culturekit.builders.wordings import wording
from culturekit.errors import UsageError
from culturekit.llm.client import Image, Request
from culturekit.llm.rows import Answered
from culturekit.records.schemas import QUESTIONS
from culturekit.storage.tables import read_table

__all__ = [
    "REQUEST",
    "TASK",
    "AnswerOptions",
    "AnswerReads",
    "AnsweredImages",
    "answered_images",
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


@dataclass(frozen=True, slots=True)
class AnswerReads:
    """Images, and the questions about what their prompts ask for."""

    images: ImagesToShow
    questions: Annotated[Path, Field(description="Table that `questions build` wrote.")]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """Who answers, and about how many images."""

    judge: WhoLooks
    per_prompt: PerPrompt = None


def answered_images(given: AnswerReads, judge: str) -> "AnsweredImages":
    """Prepare the questions of its prompt for each image."""
    return AnsweredImages(ShownImages(given.images.parent, "ask"), judge, questions_by_prompt(given.questions))


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
class AnsweredImages(AskedImages[tuple[str, str]]):
    """The questions about what each image's prompt asks for."""

    caveat = CAVEAT

    of_prompt: Questions
    answers: Counter[str] = field(init=False, default_factory=Counter)
    instructions: str = field(init=False, default_factory=partial(wording, "question_answer"))

    def notes(self, caveat: str) -> dict[str, object]:
        """Count the answers, too."""
        return {**AskedImages.notes(self, caveat), "answers": dict(sorted(self.answers.items()))}

    def questions(self, row: dict[str, Any]) -> Sequence[tuple[str, str]]:
        """List the questions of its prompt."""
        return self.of_prompt.get(row["prompt_id"] or "", ())

    def why_not(self, row: dict[str, Any]) -> str:
        """Tell an image without a prompt from a prompt without questions."""
        return NO_PROMPT if row["prompt_id"] is None else NO_QUESTIONS

    def request(self, picture: Image, row: dict[str, Any], question: tuple[str, str]) -> Request:
        """Ask one."""
        return answer_request(picture, question[1], instructions=self.instructions)

    def verdicts(self, row: dict[str, Any], question: tuple[str, str], answered: Answered) -> Sequence[Verdict]:
        """Give yes or no, and the number for it."""
        if not isinstance(answered.value, YesOrNo):
            return [Verdict(TASK, question[0])]
        choice = answered.value.answer
        self.answers[choice] += 1
        return [Verdict(TASK, question[0], value=float(choice == "yes"), choice=choice)]


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
