"""The parts of a recipe that are more than one value: models, references, audit, and how answers are bought."""

from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.checks import checked_spec, existing_file, existing_folder, existing_project, unique_names
from culturekit.config.kinds import AnyRecipe
from culturekit.core.choices import CONFIDENCE, RATERS, RESAMPLES
from culturekit.core.declared import rules_of
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.generation.backend import BACKENDS, is_paid
from culturekit.index.encoder import ENCODERS
from culturekit.index.raters.quality import SCORERS
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.scores.answers import InRegion, OutOfRegion, PoolsBy
from culturekit.scores.judged import JudgedOptions
from culturekit.scores.meta import MetaOptions

ModelName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
BackendSpec = Annotated[str, AfterValidator(checked_spec(BACKENDS)), AfterValidator(existing_folder)]
EncoderSpec = Annotated[str, AfterValidator(checked_spec(ENCODERS))]
ScorerSpec = Annotated[str, AfterValidator(checked_spec(SCORERS))]
JudgeSpec = Annotated[str, AfterValidator(checked_spec(CLIENTS))]
File = Annotated[str, AfterValidator(existing_file)]


class Buying(StrictModel):
    """How answers or images are bought; none of it decides what they are."""

    budget: Annotated[float | None, rules_of(LlmOptions, "budget"), Field(allow_inf_nan=False)] = None
    concurrency: Annotated[int, rules_of(LlmOptions, "concurrency")] = 16
    batch: Annotated[bool, rules_of(LlmOptions, "batch")] = False
    go_on: Annotated[bool, rules_of(LlmOptions, "go_on")] = False

    def options(self) -> LlmOptions:
        """Give the options as the engine takes them."""
        return LlmOptions(self.budget, self.concurrency, self.batch, self.go_on)


class Model(StrictModel):
    """A text-to-image model to evaluate; its name is free, and stands in every table.

    `buying` says how the images of a paid service are bought.
    """

    name: ModelName
    backend: BackendSpec
    buying: Buying = Buying()

    @model_validator(mode="after")
    def buying_is_for_services(self) -> "Model":
        """Refuse a budget of what costs nothing."""
        if self.buying != Buying() and not is_paid(self.backend):
            raise ValueError(f"buying is for paid services such as openai:MODEL, not for {self.backend}")
        return self


class Llm(Buying):
    """How the judge is asked, where it is a paid one; none of it decides a verdict.

    All stages together spend the budget.
    """


class AskingRecipe(AnyRecipe):
    """What recipes say whose stages ask models about images of `models`: all of them share one budget."""

    models: Annotated[tuple[Model, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    llm: Llm = Llm()


# The part of a recipe about people who rate images.


class Annotations(StrictModel):
    """What people say of the images: forms out, answers in, tables of ratings, and metrics held against them.

    Without `files` the forms are handed out and wait; with `simulated` people answer them who know what simulated
    models drew. `files` are exports of Label Studio or of the form, whose tasks are those of `project` or, without it,
    of the run itself; or tables `annotations.parquet` that `annotate import` wrote.

    `prompts` are drawn that name a country, and of each model the first image of each is judged, by `in_region` people
    of the country and `out_of_region` others. Pools are never merged, and with `only` the others are left out. `keep`
    names flags whose answers count all the same. The share of annotators who chose one of `choices` is a rating that
    metrics are held against. `judged` names the question that asks people what the judges of `faithfulness` were asked:
    their scores are then put right by what people at home say.
    """

    scheme: str = "cube"
    prompts: Annotated[int, Field(ge=1, le=1_000_000)] = 120
    in_region: InRegion = RATERS
    out_of_region: OutOfRegion = 0
    files: tuple[File, ...] = ()
    project: Annotated[str, AfterValidator(existing_project)] | None = None
    simulated: SimulatedPeople | None = None
    pools: Annotated[PoolsBy, rules_of(MetaOptions, "by")] = "region"
    only: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("yes",)
    judged: JudgedOptions | None = None
    confidence: Annotated[float, Field(ge=0.5, lt=1)] = CONFIDENCE
    resamples: Annotated[int, rules_of(MetaOptions, "resamples"), Field(le=1_000_000)] = RESAMPLES

    @property
    def tables(self) -> bool:
        """Tell whether answers come as tables that were imported already."""
        return any(name.endswith(".parquet") for name in self.files)

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Annotations":
        """Make sure that answers come from one place."""
        if self.tables and not all(name.endswith(".parquet") for name in self.files):
            raise ValueError("annotations.files are either exports (JSON) or imported tables (parquet), not both")
        if self.tables and self.project is not None:
            raise ValueError("annotations.project is for exports; a table annotations.parquet was imported already")
        if self.project is not None and not self.files:
            raise ValueError("annotations.project has tasks, but annotations.files has no answers to them")
        if self.simulated is not None and self.files:
            raise ValueError("annotations has both simulated people and files of answers; give one of them")
        if self.simulated is not None and self.scheme != "cube":
            raise ValueError("simulated people fill in the scheme cube only")
        if self.in_region + self.out_of_region == 0:
            raise ValueError("annotations.in_region and out_of_region are both 0: nobody is to judge anything")
        return self
