"""What a recipe of the kind `linguistic` says, key by key."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.prompting.dialect_corpus import corpus_files
from culturekit.builders.prompting.dialect_pairs import DialectOptions, DialectReads
from culturekit.config.checks import existing_table, unique_names
from culturekit.config.kinds import AnyRecipe
from culturekit.config.recipe_parts import EncoderSpec, File, JudgeSpec, Llm, Model, ScorerSpec
from culturekit.defaults import CONFIDENCE, RATERS
from culturekit.families.family import Confidence, rules_of
from culturekit.families.question_pairs import QuestionPairOptions
from culturekit.generation.linguistic_lists import lists
from culturekit.generation.runner import ImagePlan
from culturekit.metrics.linguistic.skin_pixels import Detector
from culturekit.records.schemas import PROMPTS
from culturekit.registry import parse_spec
from culturekit.storage.tables import read_table
from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = ["KINDS", "Drawing", "Linguistic", "People"]

Asked = Annotated[str, AfterValidator(existing_table(PROMPTS))]
Place = Annotated[str, AfterValidator(lambda said: str(next(corpus_files(Path(said)))) and said)]
Kind = Literal["dialects", "neutral", "specific"]
KINDS: tuple[Kind, ...] = ("dialects", "neutral", "specific")

PORTRAITS = "simulated-portraits"
"""The backend whose pictures come with what they show."""


class Drawing(Model):
    """A model, and how many images of each prompt it makes where that is not what the others make."""

    images: Annotated[int | None, Field(ge=1, le=255, description="Images per prompt. [images.slots]")] = None


class Pairs(StrictModel):
    """Who proposes pairs of dialects, and the corpora that they are to be met in; without, the shipped ones."""

    proposer: Annotated[JudgeSpec | None, rules_of(DialectOptions, "proposer")] = None
    standard: Annotated[str, rules_of(DialectOptions, "standard")] = DialectOptions().standard
    other: Annotated[str, rules_of(DialectOptions, "other")] = DialectOptions().other
    count: Annotated[int, rules_of(DialectOptions, "count")] = DialectOptions().count
    grammar: Annotated[str, rules_of(DialectOptions, "grammar")] = DialectOptions().grammar
    standard_corpus: Annotated[Place | None, rules_of(DialectReads, "standard_corpus")] = None
    other_corpus: Annotated[Place | None, rules_of(DialectReads, "other_corpus")] = None

    def given(self) -> DialectReads:
        """Give what is read."""
        both = (None if path is None else Path(path) for path in (self.standard_corpus, self.other_corpus))
        return DialectReads(None, *both)

    def options(self) -> DialectOptions:
        """Give what is to be done."""
        return DialectOptions(self.proposer, self.standard, self.other, self.count, self.grammar)


class Prompts(StrictModel):
    """What is asked for: the shipped lists, pairs that a model proposes, or tables that `prompts build` wrote."""

    kinds: Annotated[tuple[Kind, ...], AfterValidator(not_empty)] = KINDS
    nouns: Annotated[int, Field(ge=1, description="How many of the shipped nouns neutral prompts are about.")] = 30
    pairs: Pairs = Pairs()
    dialects: Asked | None = None
    neutral: Asked | None = None
    specific: Asked | None = None

    @model_validator(mode="after")
    def enough_nouns(self) -> Self:
        """Refuse more nouns than there are: fewer prompts would be made."""
        known = len(lists().nouns)
        if self.neutral is None and self.nouns > known:
            raise ValueError(f"nouns: {known} are shipped; found {self.nouns}; prompts.neutral takes others")
        return self

    @model_validator(mode="after")
    def given_groups(self) -> Self:
        """Refuse given prompts whose groups cannot be compared, and one dialect twice."""
        named = (self.pairs.standard, self.pairs.other)
        if named[0] == named[1]:
            raise ValueError(f"pairs.standard and pairs.other are two dialects; found {named[0]} twice")
        if self.dialects is not None:
            groups = read_table(self.dialects, PROMPTS)["group"].drop_nulls().unique().sort().to_list()
            missing = sorted(set(named) - set(groups))
            if missing:
                found = ", ".join(groups) or "none in any"
                raise ValueError(f"dialects: no prompt is in {missing[0]}; found {found}")
        if self.neutral is not None:
            held = read_table(self.neutral, PROMPTS)["group"].is_null()
            if held.all() or not held.any():
                raise ValueError("neutral: prompts with a group are held against prompts without; found one kind only")
        return self


class Questions(StrictModel):
    """Pairs of captions of which one fits an image better; the first is what people rate as `current_date`."""

    pairs: tuple[tuple[str, str], ...] = (
        ("a modern environment", "a traditional environment"),
        ("a modern setting", "a traditional setting"),
    )
    logit_scale: Annotated[float, rules_of(QuestionPairOptions, "logit_scale")] = QuestionPairOptions().logit_scale


class People(StrictModel):
    """People who look at `people` images of persons and `places` of places of each model, drawn evenly.

    Without answers the forms are handed out and wait; with `simulated` people answer them who know the truth.
    """

    persons: Annotated[int, Field(ge=10, le=100_000)] = 150
    places: Annotated[int, Field(ge=10, le=100_000)] = 150
    raters: Annotated[int, Field(ge=1, le=50, description="People who answer about each item.")] = RATERS
    person_answers: tuple[File, ...] = ()
    place_answers: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that answers come from one place."""
        if self.simulated is not None and (self.person_answers or self.place_answers):
            raise ValueError("people has both simulated people and files of answers; give one of them")
        return self


class Linguistic(AnyRecipe):
    """How models take dialects, whom they show, what they take as neutral, and how old groups look to them."""

    recipe: Literal["linguistic"]
    prompts: Prompts = Prompts()
    models: Annotated[tuple[Drawing, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    images: ImagePlan = ImagePlan(slots=9)
    scorer: Annotated[ScorerSpec, Field(description="What dialects are compared by.")]
    encoder: Annotated[EncoderSpec, Field(description="Images and captions as vectors.")]
    detectors: Annotated[tuple[Detector, ...], AfterValidator(not_empty)] = ("ita", "dall-eval")
    questions: Questions = Questions()
    people: People | None = None
    confidence: Confidence = CONFIDENCE
    llm: Llm = Llm()

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        return all(parse_spec(model.backend).name == PORTRAITS for model in self.models)

    def plan_of(self, model: Drawing) -> ImagePlan:
        """Say what a model makes."""
        return (
            self.images
            if model.images is None
            else ImagePlan(1, model.images, (), self.images.size, self.images.format)
        )

    def prompt_count(self) -> int | None:
        """Count the prompts, where they are those of the shipped lists."""
        known, asked = lists(), self.prompts
        if asked.dialects or asked.neutral or asked.specific or asked.pairs != Pairs():
            return None
        sizes = {
            "dialects": 2 * sum(len(pair.frames) for pair in known.pairs),
            "neutral": (1 + len(known.groups)) * len(known.nouns[: asked.nouns]),
            "specific": sum(len(group.prompts) for group in known.specific),
        }
        return sum(sizes[kind] for kind in asked.kinds)

    @model_validator(mode="after")
    def people_know_the_truth(self) -> Self:
        """Refuse simulated people who could not know what is shown."""
        if self.people is not None and self.people.simulated is not None and not self.truthful:
            raise ValueError(f"simulated people know only what {PORTRAITS} drew; real pictures need people's answers")
        return self
