"""Questions about images: what is asked, of which images, and which answers count."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from culturekit.errors import UsageError
from culturekit.llm.client import Answers, Image, Request
from culturekit.storage.yaml_model import StrictModel, load_model

__all__ = ["ImageQuestion", "check_questions", "image_request", "load_questions", "number_and_choice"]

REPLY_TOKENS = 256
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """One question, put to every image, or to the images of one prompt.

    It allows either some `answers`, or any number `between` two. `task`, `item` and `dimension` are where the judgment
    stands in its table: such as the scheme `alignment`, the criterion `region`, the descriptor dimension `clothing`.
    """

    task: str
    item: str
    question: str
    dimension: str | None = None
    answers: tuple[str, ...] = ()
    between: tuple[float, float] | None = None
    prompt_id: str | None = None


class QuestionFile(StrictModel):
    """A file of questions."""

    questions: tuple[ImageQuestion, ...]


def load_questions(paths: Sequence[str]) -> tuple[ImageQuestion, ...]:
    """Read files of questions."""
    return tuple(question for path in paths for question in load_model(Path(path), QuestionFile).questions)


def check_questions(questions: Sequence[ImageQuestion]) -> None:
    """Make sure that each question can be answered, and that no two would stand in the same place."""
    if not questions:
        raise UsageError("no question is asked", expected="at least one question about the images")
    seen = set()
    for question in questions:
        place = f"question {question.task}/{question.item}/{question.dimension or '-'}"
        if bool(question.answers) == (question.between is not None):
            raise UsageError("a question allows either some answers or a range of numbers", where=place)
        if len(set(question.answers)) != len(question.answers):
            raise UsageError("an answer is allowed twice", where=place)
        if question.between is not None and not question.between[0] < question.between[1]:
            raise UsageError("a range goes from the smaller to the larger number", where=place)
        key = (question.prompt_id, question.task, question.item, question.dimension)
        if key in seen or ((None, *key[1:]) in seen):
            raise UsageError("this question is asked twice of the same images", where=place)
        seen.add(key)


def image_request(question: ImageQuestion, image_id: str, image: Image, *, instructions: str) -> Request:
    """Put a question about an image; the image goes with it."""
    data: Mapping[str, object] = {
        "id": image_id,
        "item": question.item,
        "dimension": question.dimension,
        "question": question.question,
        "answers": list(question.answers or question.between or ()),
    }
    return Request(
        f"image.{question.task}",
        instructions,
        data,
        choice_reply(question.answers) if question.between is None else number_reply(*question.between),
        allowed={"id": (image_id,)},
        images=(image,),
        max_tokens=REPLY_TOKENS,
    )


@cache
def choice_reply(answers: tuple[str, ...]) -> Answers:
    """Describe a reply that is one of some answers."""
    fields: list[tuple[str, Any]] = [("id", str), ("choice", Literal[answers])]
    return msgspec.defstruct("ChoiceReply", fields, frozen=True, forbid_unknown_fields=True)


@cache
def number_reply(low: float, high: float) -> Answers:
    """Describe a reply that is a number between two."""
    value = Annotated[float, msgspec.Meta(ge=low, le=high)]
    fields: list[tuple[str, Any]] = [("id", str), ("value", value)]
    return msgspec.defstruct("NumberReply", fields, frozen=True, forbid_unknown_fields=True)


def number_and_choice(answer: msgspec.Struct | None) -> tuple[float | None, str | None]:
    """Read number and choice from an answer; neither where there is none.

    A choice that is a number, such as a step of a Likert scale, is given as both.
    """
    if answer is None:
        return None, None
    choice: str | None = getattr(answer, "choice", None)
    if choice is None:
        return float(answer.value), None  # type: ignore[attr-defined]
    return (float(choice) if NUMBER.fullmatch(choice) else None), choice
