"""The parts of a scheme: questions, the answers they allow, when each is asked, and how care is checked."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = ["AttentionCheck", "Comment", "Criterion", "Filters", "Option", "QuestionType", "SchemeParts"]

QuestionType: TypeAlias = Literal["scale", "choice", "choices", "picture", "pictures", "text"]
"""A number from low to high; one or several of some options, or of the pictures shown; free text."""

FIELD_MARK = re.compile(r"\$\w")


def plain_text(text: str) -> str:
    """Accept text that Label Studio takes as text: `$word` would be a field of the task."""
    if FIELD_MARK.search(text):
        raise ValueError("may not hold $ before a letter: Label Studio would put a field of the task there")
    return text


Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(plain_text)]
Value: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$", max_length=80)]


class Option(StrictModel):
    """One answer that can be chosen.

    `label` is what people read, the value where there is none; `number` is what it counts as, where it counts.
    """

    value: Value
    label: Text | None = None
    number: float | None = None


class Comment(StrictModel):
    """Free text asked for after some answers, beside the answer it belongs to."""

    question: Text
    when: Annotated[tuple[Value, ...], AfterValidator(not_empty)]
    required: bool = False


class Criterion(StrictModel):
    """One question.

    Options stand here, or in each item (`options_from` names the field). `when` names earlier questions and the answers
    to them after which this one is asked; all of them must hold. `shows` names fields of the item that are shown with
    the question, and not before it is asked. `alone` are options of several that exclude all others.
    """

    name: Name
    question: Text
    type: QuestionType
    low: int | None = None
    high: int | None = None
    ends: tuple[Text, Text] | None = None
    options: tuple[Option, ...] = ()
    options_from: Name | None = None
    alone: tuple[Value, ...] = ()
    when: Mapping[Name, Annotated[tuple[Value, ...], AfterValidator(not_empty)]] = {}
    required: bool = True
    shows: tuple[Name, ...] = ()
    comment: Comment | None = None

    @property
    def fixed_values(self) -> tuple[str, ...]:
        """List the answers that are the same for every item."""
        if self.type == "scale" and self.low is not None and self.high is not None:
            return tuple(str(number) for number in range(self.low, self.high + 1))
        return tuple(option.value for option in self.options)

    @property
    def several(self) -> bool:
        """Tell whether more than one answer may be chosen."""
        return self.type in {"choices", "pictures"}

    @property
    def comment_name(self) -> str:
        """Name the field of a form that holds the comment."""
        return f"{self.name}_comment"


class AttentionCheck(StrictModel):
    """An item whose right answers are told to whoever reads along."""

    say: Text
    answers: Annotated[Mapping[Name, Value], AfterValidator(not_empty)]


class Filters(StrictModel):
    """When answers are flagged.

    Attributes:
        attention_failures: how many attention checks an annotator may fail.
        fewest_seconds: an item answered faster is flagged.
        repeat_distance: how far two answers of one annotator to the same question on a scale may lie apart.
        inconsistent_share: of the answers to repeated questions, how many may lie further apart.
    """

    attention_failures: Annotated[int, Field(ge=0)] = 0
    fewest_seconds: Annotated[float, Field(ge=0)] = 3.0
    repeat_distance: Annotated[int, Field(ge=0)] = 1
    inconsistent_share: Annotated[float, Field(ge=0, le=1)] = 0.34


class SchemeParts(StrictModel):
    """Everything that a form consists of, each part well formed.

    `pictures` names the pictures of an item, `drawn` those of them whose places on the screen are drawn. `fields` are
    texts of an item, with the heading each is shown under; `shows` lists those that stand above all questions.
    `region` names the field that makes an annotator at home in an item.
    """

    name: Name
    title: Text
    guidelines: Annotated[tuple[Text, ...], AfterValidator(not_empty)]
    pictures: Annotated[tuple[Name, ...], Field(max_length=6)] = ("image",)
    drawn: tuple[Name, ...] = ()
    fields: Mapping[Name, Text] = {}
    shows: tuple[Name, ...] = ()
    region: Name | None = None
    criteria: Annotated[tuple[Criterion, ...], AfterValidator(not_empty)]
    checks: tuple[AttentionCheck, ...] = ()
    filters: Filters = Filters()
