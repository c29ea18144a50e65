"""Keys of the recipe `cube`, from the dump to the report, and how they must fit together."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.completing.completion_rounds import CompletionLimits
from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.builders.popularity import SOURCES
from culturekit.builders.prompt_templates import Wording
from culturekit.builders.prompting.prompts import PromptOptions, check_words, wordings_of
from culturekit.builders.space.cspace import ReleaseOptions
from culturekit.builders.space.space_files import read_space
from culturekit.config.checks import (
    HAND,
    SAMPLE,
    SHIPPED_HAND,
    checked_spec,
    dump_files,
    existing_prompts,
    existing_space,
    existing_table,
    hand_path,
    knows_truth,
    unique_names,
)
from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.config.recipe_parts import Annotations, Llm, Model
from culturekit.core.choices import Included, ReleaseFormat
from culturekit.core.declared import rules_of
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.registry import parse_spec
from culturekit.core.schemas import SPACE_CHECK
from culturekit.core.yaml_source import closest, each_once, not_empty
from culturekit.generation.backend import FOLDER
from culturekit.generation.runner import ImagePlan
from culturekit.index.encoder import ENCODERS
from culturekit.index.folder.build import IndexOptions
from culturekit.index.matching.comparison import MappingOptions
from culturekit.index.raters.quality import SCORERS, quality_stage
from culturekit.kg.concepts import Concept, CountryCode, concept_path, load_concepts, shipped_concepts
from culturekit.kg.countries import countries
from culturekit.kg.dump.ingest import IngestOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS
from culturekit.recipes.cube.nested_keys import (
    SECOND_TAGS,
    Audit,
    Diagnosis,
    Faithfulness,
    Gaps,
    Instrument,
    Realism,
    References,
    Review,
    Tags,
    Within,
)
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.named_in_recipe import check_named

PICTURES_ONLY = ("embedded", "inception")  # Encoders that cannot read the names of artifacts

EVALUATING = (
    "references", "encoder", "mapping", "images", "quality", "faithfulness", "tags", "audit", "annotations",
    "diagnosis", "instruments", "scores", "realism", "within", "gaps", "metrics",
)  # fmt: skip
"""The keys that say how models are evaluated."""

MAKING = (
    "dump", "concepts", "ingest", "countries", "judge", "reasons", "llm", "completion", "review", "include",
    "popularity", "release", "checked", "card",
)  # fmt: skip
"""The keys that say how a cultural space is made."""


def existing_dump(name: str) -> str:
    """Accept a dump that is there."""
    if not all(path.is_file() for path in dump_files(name)):
        raise ValueError(f"there is no dump file {name!r}; expected a path, or {SAMPLE} for the bundled one")
    return name


def existing_hand(name: str) -> str:
    """Accept the hand-written half of a data card."""
    if not (hand_path(name) / HAND).is_file():
        raise ValueError(
            f"there is no {HAND} in {name!r}; `culturekit card init {name}` begins one, {SHIPPED_HAND} is shipped"
        )
    return name


def existing_concept(name: str) -> str:
    """Accept a shipped concept, or a root config that is there."""
    if not concept_path(name).is_file():
        names = shipped_concepts()
        raise ValueError(f"there is no concept {name!r}{closest(name, names)}, or the path of a root config")
    return name


def scorable_metrics(stated: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Accept families that exist, whose tables a run makes, with options that they take."""
    for name, options in stated.items():
        try:
            check_named(name, options)
        except UsageError as error:
            raise ValueError(f"{name}: {error}") from error
    return stated


@dataclass(frozen=True, slots=True)
class RecipePrompts(PromptOptions):
    """Which prompts to build, or the `file` that has them: a prompts table, one in the public CUBE layout, or your CSV.

    `review` asks for a sheet that people fill in.
    """

    file: str | None = None

    def check(self) -> None:
        """Refuse options that would decide nothing beside a file, or contradict each other."""
        stated = [one.name for one in fields(PromptOptions) if getattr(self, one.name) != one.default]
        if self.file is not None and stated:
            raise ValueError(
                f"file takes prompts as they are, so {', '.join(stated)} would decide nothing: leave it out"
            )
        PromptOptions.check(self)

    def built(self) -> PromptOptions:
        """Give the options of prompts that are built."""
        settings = asdict(self)
        del settings["file"]
        return PromptOptions(**settings)


def checked_prompts(options: RecipePrompts) -> RecipePrompts:
    """Accept prompts whose options fit together, and whose file is there."""
    options.check()
    if options.file is not None:
        existing_prompts(options.file)
    return options


class Recipe(AnyRecipe):
    """The CUBE evaluation, from the dump, or from a cultural space that was published, to the report."""

    recipe: Annotated[Literal["cube"], Field(description="Which published system.")]
    cspace: Annotated[
        Annotated[str, AfterValidator(existing_space)] | None,
        Field(description="A cultural space: .parquet, .csv or public CUBE .json, in place of all that makes one."),
    ] = None
    dump: Annotated[
        tuple[Annotated[str, AfterValidator(existing_dump)], ...],
        AfterValidator(not_empty),
        Field(description="Dump files, folders of them, or `sample` for the bundled one."),
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
    reasons: Annotated[bool, rules_of(filter_candidates, "reasons")] = True
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
    checked: Annotated[
        Annotated[str, AfterValidator(existing_table(SPACE_CHECK))] | None,
        Field(description="What people found of a sample of the kept: space_check.parquet of `cspace check score`."),
    ] = None
    prompts: Annotated[RecipePrompts, AfterValidator(checked_prompts)] = RecipePrompts(kinds=("cube", "underspecified"))
    references: References | None = None
    encoder: Annotated[str, AfterValidator(checked_spec(ENCODERS)), rules_of(IndexOptions, "encoder")] = "embedded"
    mapping: MappingOptions = MappingOptions()
    images: ImagePlan = ImagePlan(repeats=50, slots=8, kinds=("underspecified",))
    models: Annotated[tuple[Model, ...], AfterValidator(not_empty), AfterValidator(unique_names)] = ()
    quality: Annotated[str, AfterValidator(checked_spec(SCORERS)), rules_of(quality_stage, "scorer")] = "embedded"
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

    @property
    def names_artifacts(self) -> bool:
        """Whether references go by the names of artifacts: the prompts of a file need not name each of them."""
        folder = self.references is not None and parse_spec(self.references.backend).name == FOLDER
        return folder or self.prompts.file is not None

    @property
    def scoring(self) -> QvsOptions:
        """How what is shown is scored: diversity within countries has a stage of its own."""
        return replace(self.scores, within="none")

    @property
    def asks_few(self) -> bool:
        """Whether the prompts are the same few for everybody, as those are that leave the culture open."""
        return self.images.kinds == ("underspecified",) and self.scores.target == "these"

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Recipe":
        """Make sure that artifacts come from one place, and that what one part asks for, another gives."""
        if found := list(without_space(self)) or list(misfits(self)):
            raise ValueError("; and ".join(found))
        return self

    @classmethod
    def unwritten(cls, record: Mapping[str, object]) -> Set[str]:
        """Name the keys of a run's record that nobody could have written: they are on record by their defaults."""
        idle = MAKING if record.get("cspace") is not None else ()
        return {*idle, *(("models", *EVALUATING) if record.get("models") == [] else ())}


def misfits(recipe: Recipe) -> Iterator[str]:
    """Say everything in a recipe that does not fit together."""
    if not recipe.models:
        if idle := [key for key in EVALUATING if key in recipe.model_fields_set]:
            yield (
                f"models is missing, so {', '.join(idle)} would decide nothing: name the models to evaluate, "
                "or leave that out for a run that ends with the release"
            )
        return
    if recipe.references is None:
        yield from without_references(recipe)
    yield from without_prompts(recipe)
    yield from within_countries(recipe)
    yield from without_people(recipe)
    yield from without_batches(recipe)
    yield from outside_the_space(recipe)
    if recipe.faithfulness is not None and recipe.quality in recipe.faithfulness.scorers:
        yield f"faithfulness.scorers names {recipe.quality}, which scores as quality already"


def without_space(recipe: Recipe) -> Iterator[str]:
    """Say where no cultural space is made or taken, or one is both made and taken."""
    stated = recipe.model_fields_set
    missing = [key for key in ("dump", "concepts") if key not in stated]
    if recipe.cspace is not None:
        if idle := [key for key in MAKING if key in stated]:
            yield (
                f"cspace is taken as it was published, so {', '.join(idle)} would decide nothing: "
                "leave that out, or leave cspace out"
            )
    elif len(missing) == 2:
        yield (
            "a cultural space is missing: give dump and concepts to make one, or cspace: FILE, one that was published"
        )
    elif missing:
        yield f"{missing[0]} is missing: a cultural space is made from both, dump and concepts"


def without_references(recipe: Recipe) -> Iterator[str]:
    """Say what cannot be done without pictures of the artifacts."""
    if parse_spec(recipe.encoder).name in PICTURES_ONLY:
        yield (
            f"references is missing: {recipe.encoder} knows artifacts by pictures only. Give references a folder "
            "of pictures, or an encoder that also reads names, such as transformers:PATH of a CLIP model"
        )
    if recipe.diagnosis is not None:
        yield "diagnosis looks at how references are recognised, and there are none: give references"
    pictured = [one.name for one in recipe.instruments if one.channel != "text"]
    if pictured:
        yield f"the instruments {', '.join(pictured)} need references, or channel: text"
    if recipe.realism is not None and recipe.realism.real is None:
        yield "realism compares with the references of the run, and there are none: give realism.real, or references"


def without_prompts(recipe: Recipe) -> Iterator[str]:
    """Say which prompts are asked for and not built."""
    if len(set(recipe.images.kinds)) < len(recipe.images.kinds):  # none at all are those of all prompts
        yield f"images.kinds must be kinds of prompts, each once; found {', '.join(recipe.images.kinds)}"
    missing = sorted(set(recipe.images.kinds) - set(recipe.prompts.kinds))
    if missing and recipe.prompts.file is None:
        yield f"images.kinds asks for prompts that prompts.kinds does not build: {', '.join(missing)}"
    if "cube" not in recipe.prompts.kinds and recipe.references is not None:
        yield "prompts.kinds lacks cube: the references are drawn from the prompts that name an artifact"


def within_countries(recipe: Recipe) -> Iterator[str]:
    """Say what scores within countries lack."""
    within = recipe.within
    unbuilt = sorted(set(within.kinds if within else ()) - set(recipe.prompts.kinds))
    if unbuilt and recipe.prompts.file is None:
        yield f"within.kinds asks for prompts that prompts.kinds does not build: {', '.join(unbuilt)}"
    if within is not None and recipe.scores.size > within.slots:
        yield (
            f"scores.size is {recipe.scores.size}, but within.slots makes only {within.slots} images a repeat: "
            "no batch would be complete"
        )
    if recipe.gaps is not None and within is None and recipe.scores.within == "none":
        yield (
            "gaps are between countries that prompts name, and nothing is scored within countries: "
            "add the key `within`, or scores.within: country"
        )
    if recipe.scores.within != "none" and set(recipe.images.kinds) == {"underspecified"}:
        yield (
            "scores.within needs images of prompts that name a country, and images.kinds has none: "
            "add the key `within`, which makes them beside the others"
        )


def without_people(recipe: Recipe) -> Iterator[str]:
    """Explain why an audit or annotations cannot be done without people, or with a second instrument."""
    audit, annotated = recipe.audit, recipe.annotations
    unknown = ", ".join(model.name for model in recipe.models if not knows_truth(model.backend))
    if audit is not None and audit.file is None and unknown:
        yield (
            f"audit has simulated raters, who know only what simulated models drew, not {unknown}: "
            "give audit.file, the answers of people"
        )
    name = None if audit is None else audit.second
    if name == SECOND_TAGS and (recipe.tags is None or recipe.tags.images != "all"):
        yield "audit.second is tags, and no vision model looks at all images: give tags, with images: all"
    elif name not in (None, SECOND_TAGS, *(one.name for one in recipe.instruments)):
        yield f"audit.second is {name!r}: expected the name of one of the instruments, or tags"
    if annotated is None:
        return
    if annotated.simulated is not None and unknown:
        yield f"annotations.simulated: people know only what simulated models drew, not {unknown}"
    if annotated.judged is not None and recipe.faithfulness is None:
        yield "annotations.judged puts judges right, and there are none: give faithfulness"
    if not annotated.files and not {"cube", "within-country"} & set(recipe.images.kinds):
        yield (
            "annotations asks people whether images show their country, but images.kinds has no prompts that name "
            "one: add cube, or within-country"
        )


def without_batches(recipe: Recipe) -> Iterator[str]:
    """Say where no batch of images would be complete."""
    slots, tags = recipe.images.slots, recipe.tags
    if recipe.scores.size > slots and recipe.scores.partial == "drop":
        yield (
            f"scores.size is {recipe.scores.size}, but images.slots makes only {slots} images a repeat: "
            "no batch would be complete"
        )
    if tags is not None and tags.images != "all" and tags.images < slots:
        yield (
            f"tags.images is {tags.images}, less than one repeat of {slots} images: images are drawn by whole repeats"
        )


def outside_the_space(recipe: Recipe) -> Iterator[str]:
    """Say what asks for countries or concepts that the space has not, and which of its own nobody can speak of."""
    concepts, unknown = list[Concept](), list[str]()
    try:
        if recipe.cspace is None:
            concepts = list(load_concepts(recipe.concepts))
            inside = set(recipe.countries or [code for one in concepts for code in one.codes])
            named = [one.concept for one in concepts]
        else:
            space = read_space(Path(recipe.cspace))[0]
            inside, named = set(space["country"]), sorted(set(space["concept"]))
            unknown = sorted(inside - set(countries()))
        yield from preferred_elsewhere(recipe, inside)
        if recipe.prompts.file is None:
            wordings = wordings_of(recipe.prompts, concepts)
            check_words(named, recipe.prompts.kinds, wordings)
            yield from for_other_prompts(recipe, named, wordings)
    except CultureKitError as error:
        yield str(error)
        return
    if unknown and recipe.prompts.file is None:
        yield (
            f"cspace has artifacts of {', '.join(unknown)}, which no file of countries has: name one with "
            "countries_file, or with --countries-file; `world` has them all"
        )


def for_other_prompts(recipe: Recipe, concepts: Iterable[str], wordings: Sequence[Wording]) -> Iterator[str]:
    """Say where scores are to speak about other prompts than those asked, of which there are too few."""
    if recipe.scores.target == "these" or recipe.images.kinds != ("underspecified",):
        return
    for concept in concepts:
        prompts = sum(len(wording.leaving_open(concept)) for wording in wordings)
        if prompts < FEWEST_PROMPTS:
            yield (
                f"scores.target is population, which takes at least {FEWEST_PROMPTS} prompts of each concept; "
                f"{concept} has {prompts}: let it be these"
            )


def preferred_elsewhere(recipe: Recipe, inside: set[str]) -> Iterator[str]:
    """Say which countries simulated models prefer, though the space has no artifact from there."""
    for model in recipe.models:
        spec = parse_spec(model.backend)
        for option in ("favour", "drift_to") if knows_truth(model.backend) else ():
            named = filter(None, map(str.strip, spec.options.get(option, "").split(",")))
            strange = sorted(set(named) - inside)
            if strange:
                yield (
                    f"{model.name}: {option} names {', '.join(strange)}, and the space is made of "
                    f"{', '.join(sorted(inside))}"
                )


def load_recipe(path: Path | str, settings: Sequence[str] | str = ()) -> Recipe:
    """Read a recipe, a file or a shipped one, and set `key=value` pairs over it; all problems are raised together.

    It has the keys of its kind; to tools that check types it is one of the kind `cube`.

    A key that is written out is refused alone and first: no other message may repeat it.

    Example:
        >>> recipe = ck.load_recipe("cube", ["images.repeats=5"])
        >>> recipe.images.repeats
        5
    """
    return cast(Recipe, load_any_recipe(find_recipe(str(path)), [settings] if isinstance(settings, str) else settings))
