"""What a recipe of the kind `cultivate` says, key by key."""

from typing import Annotated, Literal, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.judging.chosen_references import ChooseOptions
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.annotations import Annotations
from culturekit.config.checks import existing_table
from culturekit.config.recipe_parts import AskingRecipe, BackendSpec, EncoderSpec, File, JudgeSpec
from culturekit.defaults import CONFIDENCE, RESAMPLES
from culturekit.families.ahead import AheadOptions
from culturekit.families.family import Confidence, rules_of
from culturekit.families.handles.country_groups import country_groups
from culturekit.families.meta import ALL
from culturekit.generation.runner import ImagePlan
from culturekit.index.raters.scorers import SCORERS
from culturekit.llm.clients.clients import CLIENTS
from culturekit.metrics.ahead.composite import Reduce
from culturekit.metrics.ahead.descriptor_scores import Aggregate
from culturekit.metrics.statistics.intervals import Target
from culturekit.pipeline.cultivate.ground import Ground
from culturekit.records.schemas import DESCRIPTORS, PROMPTS, STEREOTYPES
from culturekit.registry import parse_spec
from culturekit.stages.roles import REAL_IMAGES
from culturekit.storage.yaml_model import StrictModel

__all__ = ["Cultivate", "People", "Scores", "Tables"]


def known_scheme(name: str) -> str:
    """Accept a scheme that groups countries."""
    country_groups(name)
    return name


VQASCORE = "vqascore:"
"""How a scorer of candidates begins that is a vision model's probability of yes."""


def scorer_of_candidates(spec: str) -> str:
    """Accept a quality scorer, or `vqascore:` and who looks."""
    if spec.startswith(VQASCORE):
        CLIENTS.check(spec.removeprefix(VQASCORE))
    else:
        SCORERS.check(spec)
    return spec


class Tables(StrictModel):
    """Prompts, descriptors and stereotypes that were made elsewhere, such as the published ones."""

    prompts: Annotated[str, AfterValidator(existing_table(PROMPTS))]
    descriptors: Annotated[str, AfterValidator(existing_table(DESCRIPTORS))]
    stereotypes: Annotated[str, AfterValidator(existing_table(STEREOTYPES))]


class RealImages(StrictModel):
    """Real images, which show what is usual: of the candidates of each prompt the best are kept.

    `scorer` is a quality scorer such as `clipscore:SPEC`, or `vqascore:SPEC` with a vision model.
    """

    backend: BackendSpec
    per_prompt: Annotated[int, Field(ge=1, le=255)] = 10
    scorer: Annotated[str, AfterValidator(scorer_of_candidates)]
    at_least: Annotated[float, rules_of(ChooseOptions, "at_least")] = 0.0
    keep: Annotated[int, rules_of(ChooseOptions, "keep")] = 5

    @model_validator(mode="after")
    def chosen_of_more(self) -> Self:
        """Refuse to keep more than there are: then the scorer would choose nothing."""
        if self.keep > self.per_prompt:
            raise ValueError(f"keep: no more than per_prompt, which is {self.per_prompt}; found {self.keep}")
        return self


class Scores(StrictModel):
    """How what images show is compared with what they should show."""

    tau: Annotated[float | None, rules_of(AheadOptions, "tau")] = None
    quantile: Annotated[float | None, rules_of(AheadOptions, "quantile")] = None
    aggregate: Annotated[Aggregate, rules_of(AheadOptions, "aggregate")] = "dimension"
    reduce: Annotated[Reduce, rules_of(AheadOptions, "reduce")] = "mean"
    target: Annotated[Target | None, rules_of(AheadOptions, "target")] = None
    confidence: Confidence = CONFIDENCE

    @model_validator(mode="after")
    def one_threshold(self) -> Self:
        """Refuse two thresholds."""
        if self.tau is not None and self.quantile is not None:
            raise ValueError("scores.tau states the threshold and scores.quantile finds it; give one of them")
        return self


class People(StrictModel):
    """People who rate and mark the first `images` images of each model of `prompts` prompts: forms out, answers in.

    Their ratings stand beside the metrics, and what they mark puts the judge's scores right. Without `files` the forms
    are handed out and wait; with `simulated` people answer them who know what simulated scenes show.
    """

    prompts: Annotated[int, Field(ge=1, le=1_000_000)] = 120
    images: Annotated[int, Field(ge=1, le=255)] = 2
    in_region: Annotated[int, Field(ge=1, le=50)] = 3
    files: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None
    resamples: Annotated[int, Field(ge=99, le=1_000_000)] = RESAMPLES

    @property
    def asked(self) -> Annotations:
        """Give it as the forms of recipes take it."""
        return Annotations(scheme="cultivate", prompts=self.prompts, in_region=self.in_region, resamples=self.resamples)

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that answers come from one place."""
        if self.files and self.simulated is not None:
            raise ValueError("people has both simulated people and files of answers; give one of them")
        return self


class Cultivate(AskingRecipe):
    """How well models know social activities of countries: AHEaD, from pages about them to the report."""

    recipe: Literal["cultivate"]
    tables: Tables | None = None
    ground: Annotated[
        Ground | None, Field(description="Pages, and who makes activities, descriptors and stereotypes of them.")
    ] = None
    images: ImagePlan = ImagePlan(slots=10)
    real: RealImages
    extractor: Annotated[JudgeSpec, Field(description="Who says what images show, in phrases by dimension.")]
    scorer: Annotated[JudgeSpec, Field(description="Who says how probable it is that stereotypes are shown.")]
    raters: Annotated[
        tuple[JudgeSpec, ...], Field(description="Who rates images from 1 to 5, beside the metrics, as SPECs.")
    ] = ()
    encoder: Annotated[EncoderSpec, Field(description="Who turns phrases into vectors, as a SPEC.")]
    scores: Scores = Scores()
    people: People | None = None
    scheme: Annotated[str, AfterValidator(known_scheme), Field(description="Scheme that groups countries.")] = (
        "cultivate"
    )

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        backends = [self.real.backend, *(model.backend for model in self.models)]
        return all(parse_spec(spec).name == SCENES for spec in backends)

    @property
    def has_groups(self) -> bool:
        """Whether its countries are of several groups, between which there can be gaps."""
        if self.tables is not None:
            named = pl.read_parquet(self.tables.prompts, columns=["country"])["country"].to_list()
        else:
            named = [] if self.ground is None else [*self.ground.countries]
        return len({group for iso, group in country_groups(self.scheme).items() if iso in named}) > 1

    @property
    def prompts(self) -> int:
        """Count the prompts, or, before they are made, those that there will be."""
        if self.tables is not None:
            return int(pl.scan_parquet(self.tables.prompts).select(pl.len()).collect().item())
        return 0 if self.ground is None else self.ground.prompts

    def images_of(self, model: str) -> int:
        """Count the images of a model, or the real ones that are kept."""
        return self.prompts * (self.real.keep if model == REAL_IMAGES else self.images.repeats * self.images.slots)

    @model_validator(mode="after")
    def one_ground(self) -> Self:
        """Make sure that prompts and descriptors come from one place."""
        if (self.tables is None) == (self.ground is None):
            raise ValueError("prompts and descriptors are made (ground) or given (tables); give one of them")
        return self

    @model_validator(mode="after")
    def names_stand_for_one_thing(self) -> Self:
        """Refuse names of models that tables use for something else, and who is named twice."""
        taken = sorted({model.name for model in self.models} & {ALL, REAL_IMAGES})
        if taken:
            raise ValueError(f"no model can be called {taken[0]}: tables call all models, and real images, so")
        named = self.raters if self.ground is None else (*self.raters, *self.ground.countries)
        twice = sorted({str(name) for name in named if named.count(name) > 1})
        if twice:
            raise ValueError(f"named twice: {', '.join(twice)}")
        return self

    @model_validator(mode="after")
    def people_know_the_truth(self) -> Self:
        """Refuse simulated people who could not know what is shown."""
        if self.people is not None and self.people.simulated is not None and not self.truthful:
            raise ValueError(f"simulated people know only what {SCENES} drew; real images need people.files")
        return self


SCENES = "simulated-scenes"
"""The backend whose scenes come with what they show."""
