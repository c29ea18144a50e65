"""What a recipe says, key by key."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from culturekit.builders.completing.completion_questions import CompletionLimits
from culturekit.builders.popularity import SOURCES
from culturekit.builders.space.cspace import ReleaseOptions
from culturekit.config.annotations import Annotations
from culturekit.config.checks import (
    checked_spec,
    existing_concept,
    existing_dump,
    existing_hand,
    scorable_metrics,
    unique_names,
)
from culturekit.config.faithfulness import Faithfulness
from culturekit.config.kinds import AnyRecipe
from culturekit.config.published import RecipePrompts, checked_prompts, existing_space
from culturekit.config.realism import Realism, Within
from culturekit.config.recipe_parts import Audit, Diagnosis, Gaps, Instrument, Llm, Model, References, Review, Tags
from culturekit.families.collection_scores import QvsOptions
from culturekit.families.family import rules_of
from culturekit.generation.runner import ImagePlan
from culturekit.index.encoders import ENCODERS
from culturekit.index.folder.build import IndexOptions
from culturekit.index.matching.mapping_options import MappingOptions
from culturekit.index.raters.score_pictures import QualityOptions
from culturekit.index.raters.scorers import SCORERS
from culturekit.kg.concepts import CountryCode
from culturekit.kg.dump.ingest import IngestOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.records.choices import Included, ReleaseFormat
from culturekit.storage.yaml_model import each_once, not_empty

__all__ = ["RecipeFields"]


class RecipeFields(AnyRecipe):
    """The keys of a recipe; each is checked by itself, and `Recipe` that they fit together."""

    recipe: Annotated[Literal["cube"], Field(description="Which published system.")]
    cspace: Annotated[
        Annotated[str, AfterValidator(existing_space)] | None,
        Field(description="A cultural space: .parquet, .csv or public CUBE .json, in place of all that makes one."),
    ] = None
    dump: Annotated[
        tuple[Annotated[str, AfterValidator(existing_dump)], ...],
        AfterValidator(not_empty),
        Field(description="Dump files, or `sample` for the bundled one."),
    ] = ()
    ingest: IngestOptions = IngestOptions()
    concepts: Annotated[
        tuple[Annotated[str, AfterValidator(existing_concept)], ...],
        AfterValidator(not_empty),
        Field(description="Root configs: shipped ones by name, others by path."),
    ] = ()
    countries: Annotated[
        Annotated[tuple[CountryCode, ...], AfterValidator(not_empty), AfterValidator(each_once)] | None,
        Field(description="ISO codes, in place of those of the root configs."),
    ] = None
    judge: Annotated[
        str,
        AfterValidator(checked_spec(CLIENTS)),
        Field(description="Who decides what belongs to the cultural space, as a SPEC."),
    ] = "rules"
    llm: Llm = Llm()
    completion: CompletionLimits | None = None
    review: Review | None = None
    include: Annotated[Included | None, rules_of(ReleaseOptions, "include")] = None
    popularity: Annotated[str, AfterValidator(checked_spec(SOURCES)), rules_of(ReleaseOptions, "popularity")] = (
        "sitelinks"
    )
    release: Annotated[tuple[ReleaseFormat, ...], rules_of(ReleaseOptions, "formats")] = ()
    card: Annotated[
        Annotated[str, AfterValidator(existing_hand)] | None,
        Field(description="The hand-written half of a data card: a folder, or `cspace` for the shipped one."),
    ] = None
    prompts: Annotated[RecipePrompts, AfterValidator(checked_prompts)] = RecipePrompts(kinds=("cube", "underspecified"))
    references: References | None = None
    encoder: Annotated[str, AfterValidator(checked_spec(ENCODERS)), rules_of(IndexOptions, "encoder")] = "embedded"
    mapping: MappingOptions = MappingOptions()
    images: ImagePlan = ImagePlan(repeats=50, slots=8, kinds=("underspecified",))
    models: Annotated[tuple[Model, ...], AfterValidator(not_empty), AfterValidator(unique_names)] = ()
    quality: Annotated[str, AfterValidator(checked_spec(SCORERS)), rules_of(QualityOptions, "scorer")] = "embedded"
    faithfulness: Faithfulness | None = None
    tags: Tags | None = None
    audit: Audit | None = None
    annotations: Annotations | None = None
    diagnosis: Diagnosis | None = None
    instruments: Annotated[tuple[Instrument, ...], AfterValidator(unique_names)] = ()
    scores: QvsOptions = QvsOptions()
    realism: Realism | None = None
    within: Within | None = None
    gaps: Gaps | None = None
    metrics: Annotated[
        dict[str, dict[str, Any]],
        AfterValidator(scorable_metrics),
        Field(
            default_factory=dict,
            description="Further families of scores by name, each with its options; other packages may bring some.",
        ),
    ]
