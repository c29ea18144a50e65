"""A recipe: one YAML file that says everything a run depends on."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.completion_questions import CompletionLimits
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompts import PromptOptions
from culturekit.config.checks import (
    checked_spec,
    existing_concept,
    existing_dump,
    existing_file,
    existing_folder,
    existing_hand,
    knows_truth,
    scorable,
    unique_names,
)
from culturekit.config.realism import Realism, Within
from culturekit.generation.backends import BACKENDS
from culturekit.generation.image_services import is_paid
from culturekit.generation.runner import ImagePlan
from culturekit.index.encoders import ENCODERS
from culturekit.index.mapping_options import MappingOptions
from culturekit.index.scorers import SCORERS
from culturekit.index.simulated_raters import SimulatedRaters
from culturekit.kg.concepts import CountryCode
from culturekit.kg.ingest import IngestOptions
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients import CLIENTS
from culturekit.metrics.scoring.score_qvs import QvsOptions
from culturekit.records.choices import ChannelsName, ReleaseFormat
from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = ["Audit", "Buying", "Diagnosis", "Instrument", "Llm", "Model", "Recipe", "References"]

ModelName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
BackendSpec = Annotated[str, AfterValidator(checked_spec(BACKENDS)), AfterValidator(existing_folder)]


class Buying(StrictModel):
    """How answers or images are bought; none of it decides what they are.

    `budget` is the most that may be spent, in US dollars. With `batch` calls go as batches, which cost half and take up
    to a day.
    """

    budget: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024)] = 16
    batch: bool = False

    def options(self) -> LlmOptions:
        """Give the options as the engine takes them."""
        return LlmOptions(self.budget, self.concurrency, self.batch)


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


class References(StrictModel):
    """Pictures that show each artifact as it is: the index is made from them."""

    backend: BackendSpec
    per_artifact: Annotated[int, Field(ge=1, le=200)] = 4


class Audit(StrictModel):
    """A look at some images by people: with it the diversity is corrected for the errors of the mapping.

    `file` is an `audits.parquet` that people filled in; without it the raters are simulated, and know what
    simulated models drew.
    """

    images: Annotated[int, Field(ge=10, le=100_000)] = 50
    raters: SimulatedRaters = SimulatedRaters()
    file: Annotated[str, AfterValidator(existing_file)] | None = None
    pool: str | None = None


class Diagnosis(StrictModel):
    """A look at the instrument, beside the scores: floor, ceiling, hubs, and what held-out references say of it.

    `floor_repeats` repeats of each prompt are drawn as pictures of nothing, and as many of the first model's images are
    shuffled; the ceiling has `ceiling_repeats` batches of each concept.
    """

    floor_repeats: Annotated[int, Field(ge=1)] = 5
    ceiling_repeats: Annotated[int, Field(ge=1, le=65_535)] = 50


class Instrument(StrictModel):
    """Another encoder or channel that maps the same images, to see whether it ranks the models alike."""

    name: ModelName
    encoder: Annotated[str, AfterValidator(checked_spec(ENCODERS))]
    channel: ChannelsName = "image"


class Llm(Buying):
    """How the judge is asked, where it is a paid one; none of it decides a verdict.

    `budget` is the most that all stages together may spend, in US dollars. With `batch` the questions go
    as batches, which cost half and take up to a day.
    """


class Recipe(StrictModel):
    """The CUBE evaluation, from the dump to the report."""

    recipe: Literal["cube"]
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    dump: Annotated[tuple[Annotated[str, AfterValidator(existing_dump)], ...], AfterValidator(not_empty)]
    ingest: IngestOptions = IngestOptions()
    concepts: Annotated[tuple[Annotated[str, AfterValidator(existing_concept)], ...], AfterValidator(not_empty)]
    countries: tuple[CountryCode, ...] | None = None
    judge: Annotated[str, AfterValidator(checked_spec(CLIENTS))] = "rules"
    llm: Llm = Llm()
    completion: CompletionLimits | None = None
    popularity: Annotated[str, AfterValidator(checked_spec(SOURCES))] = "sitelinks"
    release: tuple[ReleaseFormat, ...] = ()
    card: Annotated[str, AfterValidator(existing_hand)] | None = None
    prompts: PromptOptions = PromptOptions(kinds=("cube", "underspecified"))
    references: References
    encoder: Annotated[str, AfterValidator(checked_spec(ENCODERS))] = "embedded"
    mapping: MappingOptions = MappingOptions()
    images: ImagePlan = ImagePlan(repeats=50, slots=8, kinds=("underspecified",))
    models: Annotated[tuple[Model, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    quality: Annotated[str, AfterValidator(checked_spec(SCORERS))] = "embedded"
    audit: Audit | None = None
    diagnosis: Diagnosis | None = None
    instruments: Annotated[tuple[Instrument, ...], AfterValidator(unique_names)] = ()
    scores: Annotated[QvsOptions, AfterValidator(scorable)] = QvsOptions()
    realism: Realism | None = None
    within: Within | None = None

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Recipe":
        """Make sure that what one part asks for, another gives."""
        missing = sorted(set(self.images.kinds) - set(self.prompts.kinds))
        if missing:
            raise ValueError(f"images.kinds asks for prompts that prompts.kinds does not build: {', '.join(missing)}")
        unbuilt = sorted(set(self.within.kinds if self.within else ()) - set(self.prompts.kinds))
        if unbuilt:
            raise ValueError(f"within.kinds asks for prompts that prompts.kinds does not build: {', '.join(unbuilt)}")
        if self.within is not None and self.scores.size > self.within.slots:
            raise ValueError(
                f"scores.size is {self.scores.size}, but within.slots makes only {self.within.slots} images a repeat: "
                "no batch would be complete"
            )
        if self.realism is not None and self.scores.size < 2:
            raise ValueError("realism measures how unlike the images of a batch are: scores.size is at least 2")
        if self.scores.within != "none" and set(self.images.kinds) == {"underspecified"}:
            raise ValueError(
                "scores.within needs images of prompts that name a country, and images.kinds has none: "
                "add the key `within`, which makes them beside the others"
            )
        unknown = [model.name for model in self.models if not knows_truth(model.backend)]
        if self.audit is not None and self.audit.file is None and unknown:
            raise ValueError(
                f"audit has simulated raters, who know only what simulated models drew, not {', '.join(unknown)}: "
                "give audit.file, the answers of people"
            )
        if self.scores.size > self.images.slots and self.scores.partial == "drop":
            raise ValueError(
                f"scores.size is {self.scores.size}, but images.slots makes only {self.images.slots} images a repeat: "
                "no batch would be complete"
            )
        if "cube" not in self.prompts.kinds:
            raise ValueError(
                "prompts.kinds lacks cube: the references are drawn from the prompts that name an artifact"
            )
        return self
