"""The parts of a recipe that are more than one value: models, references, audit, and how answers are bought."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from culturekit.config.checks import (
    checked_spec,
    existing_file,
    existing_folder,
    existing_project,
    seeing,
    unique_names,
)
from culturekit.config.kinds import AnyRecipe
from culturekit.families.corrected import Correction
from culturekit.families.family import rules_of
from culturekit.families.gaps import GapOptions
from culturekit.generation.backends import BACKENDS, is_paid
from culturekit.generation.runner import ImagePlan
from culturekit.index.diagnosis.diagnosis import DiagnosisOptions
from culturekit.index.encoders import ENCODERS
from culturekit.index.folder.build import IndexOptions
from culturekit.index.raters.scorers import SCORERS
from culturekit.index.raters.simulated_raters import SimulatedRaters
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.metrics.corrected.audit_design import Design
from culturekit.records.choices import ChannelsName
from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = [
    "AskingRecipe",
    "Audit",
    "BackendSpec",
    "Buying",
    "Diagnosis",
    "EncoderSpec",
    "File",
    "Gaps",
    "Instrument",
    "JudgeSpec",
    "Llm",
    "Model",
    "ModelName",
    "References",
    "Review",
    "ScorerSpec",
    "Tags",
]

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


class Review(StrictModel):
    """What people decided about candidates that waited for them: sheets, and exports in JSON with their `project`.

    `by` and `on` say who decided, and on which day, where a sheet or an export does not.
    """

    files: Annotated[tuple[File, ...], AfterValidator(not_empty)]
    project: Annotated[str, AfterValidator(existing_project)] | None = None
    by: str | None = None
    on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None


DRAWN = 4  # pictures of an artifact, where nobody says how many


class References(StrictModel):
    """Pictures that show each artifact as it is: the index is made from them.

    Without `per_artifact` all pictures of a folder are taken, and 4 are drawn.
    """

    backend: BackendSpec
    per_artifact: Annotated[int, Field(ge=1, le=200)] | None = None

    @property
    def counted(self) -> bool:
        """Tell whether the recipe says how many pictures an artifact has."""
        return self.per_artifact is not None

    @property
    def images(self) -> ImagePlan:
        """What is made where the pictures are drawn."""
        return ImagePlan(slots=self.per_artifact or DRAWN, kinds=("cube",))


class Audit(StrictModel):
    """A look at some images by people: with it the diversity is corrected for the errors of the mapping.

    `file` is an `audits.parquet` that people filled in; without it the raters are simulated, and know what
    simulated models drew: `images` of each model and concept. `sample` is what `score audit-sample` drew for it, and
    `design: unknown` takes answers about images that nobody drew; their scores are marked.
    """

    images: Annotated[int, Field(ge=10, le=100_000)] = 50
    raters: SimulatedRaters = SimulatedRaters()
    file: File | None = None
    pool: Annotated[str | None, rules_of(Correction, "pool")] = None
    sample: File | None = None
    design: Annotated[Design, rules_of(Correction, "design")] = "drawn"

    @model_validator(mode="after")
    def design_is_of_people(self) -> "Audit":
        """Refuse a sample or a design that would decide nothing."""
        if self.file is None and (self.sample is not None or self.design != "drawn"):
            raise ValueError("sample and design are about the answers of people: give file, or leave them out")
        idle = sorted(self.model_fields_set & {"images", "raters"})
        if self.file is not None and idle:
            raise ValueError(f"people have answered (file), so {' and '.join(idle)} would decide nothing: leave it out")
        if self.sample is not None and self.design == "unknown":
            raise ValueError("a sample is given, so the design is known: leave one of them out")
        return self


class Diagnosis(StrictModel):
    """A look at the instrument, beside the scores: floor, ceiling, hubs, and what held-out references say of it.

    `floor_repeats` repeats of each prompt are drawn as pictures of nothing, and as many of the first model's images are
    shuffled; the ceiling has `ceiling_repeats` batches of each concept.
    """

    floor_repeats: Annotated[int, Field(ge=1)] = 5
    ceiling_repeats: Annotated[int, rules_of(DiagnosisOptions, "repeats")] = 50


class Instrument(StrictModel):
    """Another encoder or channel that maps the same images, to see whether it ranks the models alike."""

    name: ModelName
    encoder: Annotated[EncoderSpec, rules_of(IndexOptions, "encoder")]
    channel: ChannelsName = "image"


class Tags(Buying):
    """A vision model names what images show, beside the mapping to the nearest artifact; both routes are compared.

    `images` is how many of each model and concept it looks at, drawn by whole repeats, or `all`. The budget is for all
    models together.
    """

    judge: Annotated[JudgeSpec, AfterValidator(seeing)]
    images: Literal["all"] | Annotated[int, Field(ge=1)] = "all"


class Llm(Buying):
    """How the judge is asked, where it is a paid one; none of it decides a verdict.

    All stages together spend the budget.
    """


class Gaps(StrictModel):
    """Gaps between groups of countries, over the scores of prompts that name countries.

    `scheme` is one that comes with culturekit, or one of `file`.
    """

    scheme: Annotated[str, Field(min_length=1)] = "cultivate"
    file: Annotated[File | None, rules_of(GapOptions, "groups")] = None


class AskingRecipe(AnyRecipe):
    """What recipes say whose stages ask models about images of `models`: all of them share one budget."""

    models: Annotated[tuple[Model, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    llm: Llm = Llm()
