"""The recipe `inclusion`: its keys, and the stages of a run.

Models draw objects in regions, beside photographs; people of each region look.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.checks import existing_file, existing_table, unique_names
from culturekit.config.kinds import AnyRecipe, RecipeKind
from culturekit.config.recipe_parts import BackendSpec, EncoderSpec, File, Model
from culturekit.core import roles
from culturekit.core.choices import ANSWERS_PER_HOUR, SHORTLIST
from culturekit.core.declared import rules_of
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import Files
from culturekit.core.registry import parse_spec
from culturekit.core.roles import REAL_IMAGES, Role
from culturekit.core.run import Run
from culturekit.core.schemas import TASK2
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.generation.runner import ImagePlan
from culturekit.index.embedding.embed_table import EmbedSource, TextColumns, embed_stage
from culturekit.metrics.inclusion.task2_files import check_layout
from culturekit.metrics.inclusion.triplet_distances import COMBOS, Kind, images_needed
from culturekit.metrics.realism.clip_scores import PRESENCE_THRESHOLDS
from culturekit.people.export import ExportOptions
from culturekit.people.scheme import load_scheme
from culturekit.people.stages import ExportFiles, export_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.inclusion import roles as folders
from culturekit.recipes.inclusion.page import INCLUSION_PAGE
from culturekit.recipes.inclusion.people import (
    FAR,
    NEAR,
    SEES_OBJECT,
    SEES_REGION,
    TASK1_SCHEME,
    TASK2_SCHEME,
    object_items_stage,
    seen_marks_stage,
    tasks_stage,
    triplets_of,
)
from culturekit.recipes.inclusion.prompts import (
    BENCHMARK,
    PlaceList,
    geographic,
    load_places,
    photographed_stage,
    place_file,
)
from culturekit.recipes.inclusion.scores import BINS, ExtractorVectors, TaskOptions, task1, task2
from culturekit.recipes.inclusion.world import METRICS, object_truth_stage, object_viewers_stage
from culturekit.recipes.parts import deviations, imported_answers, model_images, with_published
from culturekit.recipes.planning import HOURLY, people_line, works
from culturekit.report.report_stage import add_sections_report, sections_headline
from culturekit.scores.clip import ClipOptions, clip
from culturekit.scores.image_levels import OF_PROMPTS, MeanOptions
from culturekit.scores.inputs import ImageTables, NamedVectors, ValueTables, VectorFolder, VectorFolders
from culturekit.scores.judged import JudgedOptions, judged
from culturekit.scores.realism import RealismMeans, RealismOptions, realism
from culturekit.scores.stability import stability

OBJECTS = "simulated-objects"  # the backend whose pictures of objects come with what they show
TASKS = {TASK1_SCHEME: "task1", TASK2_SCHEME: "task2"}
NAMING: Mapping[Literal["regions", "objects"], Role] = {"regions": roles.PROMPTS, "objects": folders.PLAIN_PROMPTS}
PUBLISHED: Mapping[str, Any] = {
    "images": {"slots": 100}, "photographs": {"each": 100}, "k": 3, "threshold": PRESENCE_THRESHOLDS["geode"],
    "people": {"images": 100, "per_region": 1, "near": NEAR, "far": FAR, "scaled": False, "least": TaskOptions().least,
               "bucket": ClipOptions().width},
}  # fmt: skip
# What the paper says, and its code (DIG-In) of k; PRDC's own is 5
AS_THEY_ARE = "give=features"  # of an extractor whose vectors keep their length, as those of that code do
LEVELS = (("region",), ("region", "concept"))  # by what images are parted, besides who made them


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
    near: Annotated[int, rules_of(triplets_of, "near")] = NEAR
    far: Annotated[int, rules_of(triplets_of, "far")] = FAR
    scaled: Annotated[bool, rules_of(triplets_of, "scaled")] = True
    task1_answers: tuple[File, ...] = ()
    task2_answers: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None
    least: Annotated[float, rules_of(TaskOptions, "least")] = TaskOptions().least
    bins: Annotated[int, rules_of(task1, "bins")] = BINS
    bucket: Annotated[float, rules_of(ClipOptions, "width")] = ClipOptions().width
    per_hour: Annotated[float, Field(ge=1, description="Answers that a plan expects of one person in an hour.")] = (
        ANSWERS_PER_HOUR
    )
    hourly: Annotated[float, Field(ge=0, description="US dollars that a plan pays for an hour.")] = HOURLY

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
    preset: Annotated[
        Literal["authors"] | None, Field(description="Take what the paper and its code say for what is not stated.")
    ] = None
    places: Annotated[str, AfterValidator(lambda name: str(load_places(place_file(name))) and name)] = "study"
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

    @model_validator(mode="before")
    @classmethod
    def as_published(cls, given: Any) -> Any:  # noqa: ANN401 - what pydantic gives
        """Fill in what a preset says."""
        return with_published(given, PUBLISHED) if isinstance(given, dict) and given.get("preset") else given

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
        drawn, real = (min(people.images, count) for count in (self.images.slots, self.photographs.each))
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
            try:
                load_scheme(TASK2_SCHEME).of_regions(tuple(self.listed.regions))
            except UsageError as error:
                raise ValueError(f"people: {error}") from error
            if self.people.simulated is not None and not self.truthful:
                raise ValueError(f"simulated people know only what {OBJECTS} drew; real pictures need people's answers")
            refuse_few(self.people, drawn=self.images.slots, real=self.photographs.each)
        return self


def wire(recipe: Inclusion, run: Run) -> None:
    """Add the stages of a run."""
    _wire_prompts(recipe, run)
    for extractor in recipe.extractors:
        _wire_extractor(recipe, run, extractor)
    if len(recipe.extractors) > 1:
        tables = {one.name: run.table(folders.REALISM, variant=one.name) for one in recipe.extractors}
        run.add(stability.stage(Files(tables)), folders.EXTRACTORS)
    if recipe.published is not None:
        run.add(task2.stage(Path(recipe.published), options=TaskOptions(least=0)), folders.PUBLISHED)
    marks = None if recipe.people is None else _wire_people(recipe, run, recipe.people)
    _wire_names(recipe, run, marks)
    if recipe.people is not None and marks is not None:
        _wire_corrected(recipe, run, marks, recipe.people)
    add_sections_report(run, INCLUSION_PAGE)


def _wire_prompts(recipe: Inclusion, run: Run) -> None:
    """Write prompts, take in photographs, leave out objects that have too few of these, and have models draw."""
    places, least = place_file(recipe.places), recipe.photographs.least
    listed = {
        naming: run.add(geographic.stage(places, naming=naming), role if least is None else folders.LISTED,
                        variant="" if least is None else naming)
        for naming, role in NAMING.items()
    }  # fmt: skip
    photographs = Model(name=REAL_IMAGES, backend=recipe.photographs.backend)
    plan = ImagePlan(slots=recipe.photographs.each)
    shown = model_images(run, photographs, plan, roles.REAL, seed=recipe.seed, asked=listed["regions"],
                         prompts=lambda _: recipe.prompts)  # fmt: skip
    if least is not None:
        for naming, role in NAMING.items():
            run.add(photographed_stage(listed[naming], listed["regions"], shown, least=least), role)
    for model in recipe.models:
        model_images(run, model, recipe.images, seed=recipe.seed, prompts=lambda _: recipe.prompts)
        model_images(run, model, recipe.images, folders.PLAIN, seed=recipe.seed,
                     asked=run.table(folders.PLAIN_PROMPTS),
                     prompts=lambda _: len(recipe.listed.objects))  # fmt: skip


def _tables_of(run: Run) -> dict[str, list[Path]]:
    """Name the tables of images of each model, and of the photographs."""
    drawn = {name: [run.table(roles.IMAGES, name), run.table(folders.PLAIN, name)] for name in run.models}
    return {REAL_IMAGES: [run.table(roles.REAL)], **drawn}


def _folders_of(run: Run, extractor: str, name: str) -> list[Path]:
    """Name the vectors of a model's images: those that name a region first."""
    parts = ("", "-plain") if name in run.models else ("",)
    return [run.folder(folders.VECTORS, name, f"{extractor}{part}") for part in parts]


def _wire_extractor(recipe: Inclusion, run: Run, extractor: Extractor) -> None:
    """Embed all images by one extractor, and score how real those of each model look, region by region."""
    for name, tables in _tables_of(run).items():
        for table, part in zip(tables, ("", "-plain"), strict=False):
            stage = embed_stage(EmbedSource(table), encoder=extractor.encoder)
            run.add(stage, folders.VECTORS, name, f"{extractor.name}{part}")
    vectors = {name: run.folder(folders.VECTORS, name, extractor.name) for name in run.models}
    means = RealismMeans(by=LEVELS, scheme=OF_PROMPTS, benchmark=BENCHMARK)
    options = RealismOptions(k=recipe.k, means=means, per_cell=recipe.per_cell, balanced=True, seed=recipe.seed)
    stage = realism.stage(
        VectorFolder(run.folder(folders.VECTORS, REAL_IMAGES, extractor.name)), VectorFolders(vectors),
        ImageTables(run.by_model(roles.IMAGES)), run.table(roles.REAL), run.table(roles.PROMPTS), options=options,
    )  # fmt: skip
    run.add(stage, folders.REALISM, variant=extractor.name)


def _wire_names(recipe: Inclusion, run: Run, marks: Path | None) -> None:
    """Hold images against the names of their region and of their object; `marks` are what people see in them."""
    encoder = next(one.encoder for one in recipe.extractors if one.name == recipe.texts)
    prompts = run.table(roles.PROMPTS)
    for column, variant in (("group", "regions"), ("concept", "objects")):
        source = EmbedSource(texts=(prompts,), columns=TextColumns(column, column))
        run.add(embed_stage(source, encoder=encoder), folders.TEXTS, variant=variant)
    width = ClipOptions().width if recipe.people is None else recipe.people.bucket
    means = MeanOptions(by=LEVELS[:1], scheme=OF_PROMPTS, benchmark=BENCHMARK)
    named: tuple[tuple[Literal["region", "object"], Role, str], ...] = (
        ("region", folders.REGIONS, SEES_REGION), ("object", folders.OBJECTS, SEES_OBJECT),
    )  # fmt: skip
    for name, tables in _tables_of(run).items():
        thresholds = {"": recipe.threshold} | {of: known for of, known in recipe.thresholds.items() if of == name}
        vectors = VectorFolder(run.folder(folders.VECTORS, name, recipe.texts))
        for texts, role, criterion in named:
            names = VectorFolder(run.folder(folders.TEXTS, variant=f"{texts}s"))
            how = ClipOptions(
                texts, thresholds, criterion=criterion, encoder={"spec": encoder}, means=means, width=width
            )
            run.add(clip.stage(vectors, names, tables[0], prompts, marks, options=how), role, name)


def _wire_people(recipe: Inclusion, run: Run, wanted: Seen) -> Path | None:
    """Hand out triplets and images, import the answers, and score both tasks; give what people see in images."""
    tables, first = _tables_of(run), recipe.extractors[0].name
    prompts = Files([run.table(roles.PROMPTS), run.table(folders.PLAIN_PROMPTS)])
    drawn = [table for name in run.models for table in tables[name]]
    every = ImageTables([*tables[REAL_IMAGES], *drawn])
    vectors = {name: _folders_of(run, first, name) for name in tables}
    to_compare = triplets_of.stage(
        VectorFolders(vectors[REAL_IMAGES]), VectorFolders([one for name in run.models for one in vectors[name]]),
        ImageTables(tables[REAL_IMAGES]), ImageTables(drawn), prompts,
        near=wanted.near, far=wanted.far, scaled=wanted.scaled,
    )  # fmt: skip
    triplets = run.add(to_compare, folders.TRIPLETS, plan=works(partial(recipe.triplets, wanted), "triplets"))
    to_see = object_items_stage(every, prompts, each=wanted.images, seed=recipe.seed)
    run.add(to_see, folders.ITEMS, plan=works(partial(recipe.looked_at, wanted), "images"))
    items = run.table(folders.ITEMS, file="object_items.parquet")
    options = TaskOptions(wanted.least)
    compared = _answered(recipe, run, wanted, TASK1_SCHEME, every, triplets)
    if compared is not None:
        features = tuple(
            ExtractorVectors(one.name, NamedVectors(folder), part=f"{name}-{number}")
            for one in recipe.extractors for name in tables
            for number, folder in enumerate(_folders_of(run, one.name, name))
        )  # fmt: skip
        real = ExtractorVectors(first, NamedVectors(run.folder(folders.VECTORS, REAL_IMAGES, first)), alone=True)
        stage = task1.stage(compared, features, real, k=recipe.k, bins=wanted.bins, options=options)
        run.add(stage, folders.TASKS, variant="task1")
    seen = _answered(recipe, run, wanted, TASK2_SCHEME, every, items)
    if seen is None:
        return None
    run.add(task2.stage(seen, options=options), folders.TASKS, variant="task2")
    return run.add(seen_marks_stage(seen, least=wanted.least), folders.MARKS)


def _answered(
    recipe: Inclusion, run: Run, wanted: Seen, scheme: str, images: ImageTables, items: Path
) -> Path | None:  # fmt: skip
    """Hand out the form of a task to people of each region, and import the answers; None while there are none."""
    task, regions = TASKS[scheme], tuple(sorted(recipe.listed.regions))
    quotas = Quotas(wanted.per_region, wanted.per_region * (len(regions) - 1), regions, everywhere=True)
    options = ExportOptions(quotas, wanted.per_sheet, queues=True)
    form = export_stage(ExportFiles(images.places, items=items), scheme, options, shortlist=SHORTLIST, seed=recipe.seed)
    project = run.add(form, folders.FORMS, variant=task)
    given, how = wanted.task1_answers if scheme == TASK1_SCHEME else wanted.task2_answers, wanted.simulated
    viewers = None if how is None else object_viewers_stage(project, images.places, how, seed=recipe.seed)
    taken = imported_answers(run, project, given, viewers, answers=folders.ANSWERS, imported=folders.IMPORTED,
                             variant=task)  # fmt: skip
    if taken is None:
        return None
    run.add(tasks_stage(taken, items), folders.PEOPLE, variant=task)
    return run.table(folders.PEOPLE, variant=task, file=f"{task}.parquet")


def _wire_corrected(recipe: Inclusion, run: Run, marks: Path, wanted: Seen) -> None:
    """Correct what the encoder says of regions and objects by people in and out of each region; and what is true."""
    sample = Files([run.table(folders.ITEMS)])
    for variant, role, criterion in (
        ("regions", folders.REGIONS, SEES_REGION), ("objects", folders.OBJECTS, SEES_OBJECT),
    ):  # fmt: skip
        values = ValueTables([run.values_of(role, name) for name in run.models])
        how = JudgedOptions(criterion, TASK2_SCHEME, metrics=(METRICS[criterion],), by="in-region")
        run.add(judged.stage(values, marks, sample, options=how), folders.JUDGED, variant=variant)
    if recipe.truthful and wanted.simulated is not None:
        images = ImageTables(run.by_model(roles.IMAGES))
        run.add(object_truth_stage(images, Files([run.table(roles.PROMPTS)]), wanted.simulated), folders.TRUTH)


def plan_lines(recipe: Inclusion) -> Iterator[str]:
    """Say what people would do, and, with the authors' preset, what is not as published."""
    if (wanted := recipe.people) is not None and wanted.simulated is None:
        each = wanted.per_region * len(recipe.listed.regions)
        triplets, images = recipe.triplets(wanted) * each, recipe.looked_at(wanted) * each
        parts = {"about triplets": triplets, "about images": images}
        yield people_line(parts, per_hour=wanted.per_hour, hourly=wanted.hourly)
    if recipe.preset is not None:
        yield from deviations(recipe.model_dump(mode="json"), PUBLISHED)
        if scaled := [one.name for one in recipe.extractors if AS_THEY_ARE not in one.encoder]:
            yield (f"Not as published: vectors of {', '.join(scaled)} have length one, which changes what is far from "
                   f"a reference; ?{AS_THEY_ARE} leaves them as the model gives them")  # fmt: skip


INCLUSION = RecipeKind(Inclusion, wire, sections_headline(INCLUSION_PAGE), INCLUSION_PAGE, plan_lines)
