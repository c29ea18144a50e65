"""What a recipe says of faithfulness: who writes questions, who answers them, who else compares images and texts."""

from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from culturekit.builders.judging.image_judge import WeighOptions
from culturekit.config.checks import BLIND, seeing
from culturekit.config.recipe_parts import JudgeSpec, ScorerSpec
from culturekit.families.family import rules_of
from culturekit.families.questions import QuestionOptions
from culturekit.registry import parse_spec
from culturekit.storage.yaml_model import StrictModel

__all__ = ["Faithfulness"]


def writing(spec: str) -> str:
    """Accept a client that could write questions."""
    if parse_spec(spec).name == BLIND:
        raise ValueError(f"{BLIND} has no rules for writing questions: name a language model")
    return spec


class Faithfulness(StrictModel):
    """Whether images show what their prompts ask for; every part is optional, and at least one is named.

    `questions` turns prompts into questions, `answers` looks at the images and answers them (DSG); `vqascore` says how
    probable it finds Yes; `scorers` compare image and text, such as `clipscore:SPEC`. `per_prompt` is how many images
    of each model and prompt the models look at; `denominator` and `of` are those of `score questions` and `vqascore`.
    """

    questions: Annotated[JudgeSpec, AfterValidator(writing)] | None = None
    answers: Annotated[JudgeSpec, AfterValidator(seeing)] | None = None
    vqascore: Annotated[JudgeSpec, AfterValidator(seeing)] | None = None
    scorers: tuple[ScorerSpec, ...] = ()
    per_prompt: Annotated[int | None, rules_of(WeighOptions, "per_prompt")] = None
    denominator: Annotated[Literal["all", "valid"], rules_of(QuestionOptions, "denominator")] = "all"
    of: Annotated[Literal["yes-no", "vocabulary"], rules_of(WeighOptions, "of")] = "yes-no"

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Faithfulness":
        """Refuse questions that nobody answers, answers to no questions, and nothing at all."""
        if (self.questions is None) != (self.answers is None):
            raise ValueError("questions and answers belong together: one model writes them, one looks at the images")
        if self.questions is None and self.vqascore is None and not self.scorers:
            raise ValueError("name at least one of questions with answers, vqascore, and scorers")
        if len(set(self.scorers)) < len(self.scorers):
            raise ValueError("a scorer is named twice")
        return self
