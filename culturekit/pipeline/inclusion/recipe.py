"""What a recipe of the kind `inclusion` says, key by key."""

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from culturekit.annotate.inclusion_tables import TASK2_SCHEME
from culturekit.annotate.scheme import load_scheme
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.checks import existing_file, existing_table, unique_names
from culturekit.config.kinds import AnyRecipe
from culturekit.config.recipe_parts import BackendSpec, EncoderSpec, File, Model
from culturekit.errors import IntegrityError
from culturekit.families.clip import ClipOptions
from culturekit.families.family import rules_of
from culturekit.families.realism_cells import RealismOptions
from culturekit.families.task1 import Task1Options
from culturekit.families.task2 import Task2Options
from culturekit.generation.place_lists import PlaceList, load_places, place_file
from culturekit.generation.runner import ImagePlan
from culturekit.metrics.inclusion.region_names import region_code
from culturekit.metrics.inclusion.task2_files import check_layout
from culturekit.metrics.inclusion.triplet_combos import COMBOS, Kind, images_needed
from culturekit.metrics.realism.clip_scores import PRESENCE_THRESHOLDS
from culturekit.pipeline.steps.inclusion_stages import TripletOptions
from culturekit.records.schemas import TASK2
from culturekit.registry import parse_spec
from culturekit.stages.roles import REAL_IMAGES
from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = ["Extractor", "Inclusion", "Photographs", "Seen"]

OBJECTS = "simulated-objects"
"""The backend whose pictures of objects come with what they show."""


def seen_in_images(name: str) -> str:
    """Accept annotations of Task 2: a file in the public layout, or our table."""
    if name.endswith(".parquet"):
        return existing_table(TASK2)(name)
    try:
        return check_layout(existing_file(name))
    except IntegrityError as error:
        raise ValueError(str(error)) from error


class Extractor(StrictModel):
    """Who turns pictures into vectors; those that know texts, too, can name regions and objects."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9]{0,31}$")]
    encoder: EncoderSpec


class Photographs(StrictModel):
    """Reference photographs of each object and region: `folder:DIR?pattern={group}/{concept}/{id}`, or a list.

    So many of each are expected where a simulated world takes them. Objects of which a region has fewer than `least`,
    copies not counted, are asked of no model: with 180 the 27 of GeoDE's 40 remain that its studies score.
    """

    backend: BackendSpec
    each: Annotated[int, Field(ge=1, le=255)] = 100
    least: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def enough(self) -> Self:
        """Refuse to ask for more photographs than are taken in."""
        if self.least is not None and self.least > self.each:
            raise ValueError(
                f"least: no more than each, the {self.each} photographs that are taken in; found {self.least}"
            )
        return self


class Seen(StrictModel):
    """People of each region who compare triplets, and look at images, so many of each model and prompt.

    Without answers the forms are handed out and wait; with `simulated` people answer them who know what was drawn.
    """

    images: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    per_region: Annotated[int, Field(ge=1, le=50, description="People of each region, for each image and triplet.")] = 1
    per_sheet: Annotated[int, Field(ge=1, le=1000)] = 40
    near: Annotated[int, rules_of(TripletOptions, "near")] = TripletOptions().near
    far: Annotated[int, rules_of(TripletOptions, "far")] = TripletOptions().far
    scaled: Annotated[bool, rules_of(TripletOptions, "scaled")] = TripletOptions().scaled
    task1_answers: tuple[File, ...] = ()
    task2_answers: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None
    least: Annotated[float, rules_of(Task2Options, "least")] = Task2Options().least
    bins: Annotated[int, rules_of(Task1Options, "bins")] = Task1Options().bins
    bucket: Annotated[float, rules_of(ClipOptions, "width")] = ClipOptions().width

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that answers come from one place."""
        if self.simulated is not None and (self.task1_answers or self.task2_answers):
            raise ValueError("people has both simulated people and files of answers; give one of them")
        if self.near + self.far < 1:
            raise ValueError("near and far: together at least one reference")
        return self


def refuse_few(people: Seen, *, drawn: int, real: int) -> None:
    """Refuse fewer images of an object and region, or photographs at most, than triplets are made of."""
    few: Mapping[str, tuple[int, tuple[Kind, ...]]] = {
        "images.slots": (drawn, ("in-region", "object")),
        "photographs.each": (real, ("real",)),
    }
    for name, (there, kinds) in few.items():
        needed = images_needed(*kinds, near=people.near, far=people.far, scaled=people.scaled)
        if there < needed:
            raise ValueError(f"people: triplets take at least {needed} images of each prompt; {name} is {there}")


class Inclusion(AnyRecipe):
    """How real objects look in each region, and what people who live there, and elsewhere, see in them."""

    recipe: Literal["inclusion"]
    places: Annotated[str, AfterValidator(lambda said: str(load_places(place_file(said))) and said)] = "study"
    models: Annotated[tuple[Model, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    images: ImagePlan = ImagePlan(slots=100)
    photographs: Photographs
    extractors: Annotated[
        tuple[Extractor, ...], AfterValidator(not_empty), AfterValidator(unique_names),
        Field(description="The first builds the triplets; models are ranked by each."),
    ]  # fmt: skip
    texts: Annotated[str, Field(description="The extractor that names regions and objects.")]
    k: Annotated[int, rules_of(RealismOptions, "k")] = RealismOptions().k
    per_cell: Annotated[int | None, rules_of(RealismOptions, "per_cell")] = None
    thresholds: Annotated[
        Mapping[str, Annotated[float, Field(ge=-1, le=1)]],
        Field(description="Cosine from which an object counts as shown, by model or real."),
    ] = {}
    threshold: Annotated[float, rules_of(ClipOptions, "percentile"), Field(ge=-1, le=1)] = PRESENCE_THRESHOLDS["geode"]
    people: Seen | None = None
    published: Annotated[
        Annotated[str, AfterValidator(seen_in_images)] | None,
        Field(description="Annotations of Task 2 in the public layout; its authors chose the annotators: all count."),
    ] = None

    @cached_property
    def listed(self) -> PlaceList:
        """The objects and regions."""
        return load_places(place_file(self.places))

    @property
    def prompts(self) -> int:
        """Count the prompts that name a region."""
        return len(self.listed.objects) * len(self.listed.regions)

    def triplets(self, people: Seen) -> int:
        """Count the triplets that people compare."""
        return len(self.models) * len(COMBOS) * self.prompts * (people.near + people.far)

    def looked_at(self, people: Seen) -> int:
        """Count the images that people look at."""
        drawn, real = (min(people.images, made) for made in (self.images.slots, self.photographs.each))
        return len(self.models) * (self.prompts + len(self.listed.objects)) * drawn + self.prompts * real

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        backends = [self.photographs.backend, *(model.backend for model in self.models)]
        return all(parse_spec(backend).name == OBJECTS for backend in backends)

    @model_validator(mode="after")
    def belongs_together(self) -> Self:
        """Refuse names that are taken or unknown, and regions of which no form can ask."""
        names = [extractor.name for extractor in self.extractors]
        if self.texts not in names:
            raise ValueError(f"texts: {self.texts!r} is no extractor; expected one of {', '.join(names)}")
        models = {model.name for model in self.models}
        if REAL_IMAGES in models:
            raise ValueError(f"no model can be called {REAL_IMAGES}: photographs stand under that name")
        unknown = sorted(set(self.thresholds) - models - {REAL_IMAGES})
        if unknown:
            raise ValueError(f"thresholds names {unknown[0]!r}, which is no model")
        if self.people is not None:
            offered = load_scheme(TASK2_SCHEME).criterion("object_regions").fixed_values
            strange = [region for region in self.listed.regions if region_code(region) not in offered]
            if strange:
                raise ValueError(f"people: the form {TASK2_SCHEME} does not ask about {strange[0]!r}")
            if self.people.simulated is not None and not self.truthful:
                raise ValueError(f"simulated people know only what {OBJECTS} drew; real pictures need people's answers")
            refuse_few(self.people, drawn=self.images.slots, real=self.photographs.each)
        return self
