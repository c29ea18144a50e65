"""The `cultivate` recipe: its keys, and its stages from pages about activities to the report."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.activities import extracting, page_list
from culturekit.builders.activities.extracting import FIXED, LOOKED_FOR, PER_CATEGORY
from culturekit.builders.descriptors.proposing import propose, refine, stereotypes
from culturekit.builders.judging.image_judge import choose, vqascore
from culturekit.builders.judging.scene_judge import LIKERT as SCALES
from culturekit.builders.judging.scene_judge import MOST_STEREOTYPES, extract, likert, stereotypes_shown
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.space.cspace import table_stage
from culturekit.config.checks import checked_spec, existing_table, unique_names
from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe_parts import (
    Annotations,
    AskingRecipe,
    EncoderSpec,
    File,
    JudgeSpec,
    Llm,
    Model,
    ModelName,
)
from culturekit.core import roles
from culturekit.core.choices import CONFIDENCE, RESAMPLES, SHORTLIST
from culturekit.core.declared import rules_of
from culturekit.core.inputs import Files, Numbered
from culturekit.core.inputs import roles as named_roles
from culturekit.core.roles import REAL_IMAGES
from culturekit.core.run import Run
from culturekit.core.schemas import DESCRIPTORS, PROMPTS, STEREOTYPES
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.generation.backend import BACKENDS
from culturekit.generation.runner import ImagePlan
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.raters.quality import SCORERS, quality_stage
from culturekit.kg.countries import countries, country_files
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.prices import shut_among
from culturekit.metrics.ahead.descriptor_scores import Aggregate, Reduce
from culturekit.metrics.ahead.matching import DIMENSIONS
from culturekit.metrics.statistics.intervals import Target
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.export import ExportOptions
from culturekit.people.stages import AggregateFiles, ExportFiles, aggregate_stage, export_stage, rated_sample_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.cultivate import roles as folders
from culturekit.recipes.cultivate.baselines import (
    Baselines,
    ablations_stage,
    baseline_values_stage,
    candidates_stage,
    compared_stage,
    wire_baselines,
)
from culturekit.recipes.cultivate.breakdown import breakdown_stage, gaps_of_scores_stage, grouped_values_stage
from culturekit.recipes.cultivate.marks import MARKED, SCALE, marks_stage, others_stage, raters_stage, scene_items_stage
from culturekit.recipes.cultivate.page import CULTIVATE_PAGE
from culturekit.recipes.cultivate.preset import GROUND, deviating, filled_in, people_lines
from culturekit.recipes.cultivate.scores import AheadOptions, PhraseVectors, ahead
from culturekit.recipes.cultivate.world import scene_truth_stage, simulated_marks_stage, simulated_pages_stage
from culturekit.recipes.parts import SCENES, add_asking, all_scenes, asked, bought, imported_answers, model_images
from culturekit.report.report_stage import add_sections_report, sections_headline
from culturekit.scores.family import Confidence
from culturekit.scores.gaps import GapOptions, gaps
from culturekit.scores.image_levels import country_groups
from culturekit.scores.inputs import ValueTables
from culturekit.scores.judged import JudgedOptions, judged
from culturekit.scores.meta import ALL, MetaOptions, meta


def _every_country() -> tuple[str, ...]:
    """Name the countries of the paper."""
    return tuple(sorted(iso for iso, each in countries().items() if "cultivate" in each.groups))


class Ground(StrictModel):
    """Pages about countries, and who makes activities, descriptors and stereotypes of them."""

    preset: Annotated[
        Literal["authors"] | None,
        Field(description=f"Models that are not named are the authors'. As published: {shut_among('cultivate')}."),
    ] = None
    pages: Annotated[
        File | None,
        Field(description="List of pages, as `activities read` takes it. [pages about the simulated world]"),
    ] = None
    contact: Annotated[str, rules_of(page_list.read, "contact")] = ""
    countries: Annotated[tuple[str, ...], AfterValidator(not_empty)] = Field(default_factory=_every_country)
    per_category: Annotated[int, rules_of(extracting.merge, "per_category")] = PER_CATEGORY
    encoder: Annotated[
        EncoderSpec | None,
        Field(description="Encoder that tells near-duplicate activities. [names are compared by words alone]"),
    ] = None
    reader: JudgeSpec
    proposers: Annotated[tuple[JudgeSpec, ...], AfterValidator(not_empty)]
    refiner: JudgeSpec
    stereotypes: JudgeSpec
    at_most: Annotated[int, rules_of(propose, "at_most")] = 10

    @property
    def prompts(self) -> int:
        """Count the prompts that there will be, if no activity is missing."""
        return len(self.countries) * (len(LOOKED_FOR) * self.per_category + sum(map(len, FIXED.values())))

    @model_validator(mode="before")
    @classmethod
    def filled(cls, given: Any) -> Any:  # noqa: ANN401 - as YAML has it
        """Fill in the models of a preset."""
        return {**GROUND, **given} if isinstance(given, dict) and given.get("preset") == "authors" else given


def _known_scheme(name: str) -> str:
    """Accept a scheme that groups countries."""
    country_groups(name)
    return name


VQASCORE = "vqascore:"  # How a scorer of candidates begins that is a vision model's probability of yes


def _scorer_of_candidates(spec: str) -> str:
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

    backend: Annotated[str, AfterValidator(checked_spec(BACKENDS))]
    per_prompt: Annotated[int, Field(ge=1, le=255)] = 10
    scorer: Annotated[str, AfterValidator(_scorer_of_candidates)]
    at_least: Annotated[float, rules_of(choose, "at_least")] = 0.0
    keep: Annotated[int, rules_of(choose, "keep")] = 5

    @model_validator(mode="after")
    def chosen_of_more(self) -> Self:
        """Reject to keep more than there are: then the scorer would choose nothing."""
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
        """Reject two thresholds."""
        if self.tau is not None and self.quantile is not None:
            raise ValueError("scores.tau states the threshold and scores.quantile finds it; give one of them")
        return self


class People(StrictModel):
    """People who rate and mark the first `images` images of each model of `prompts` prompts: forms out, answers in.

    Their ratings stand beside the metrics, and what they mark puts the judge's scores right. Without `files` the forms
    are handed out and wait; with `simulated` people answer them who know what simulated scenes show. `countries`,
    `models` and `activities`, so many of each category and country, in place of `prompts`, say what is rated;
    `photographs` are countries of which the same prompts' real images are rated too.
    """

    prompts: Annotated[int, Field(ge=1, le=1_000_000)] = 120
    images: Annotated[int, Field(ge=1, le=255)] = 2
    countries: tuple[str, ...] = ()
    models: tuple[ModelName, ...] = ()
    activities: Annotated[int | None, Field(ge=1, le=100)] = None
    photographs: tuple[str, ...] = ()
    in_region: Annotated[int, Field(ge=1, le=50)] = 3
    files: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None
    resamples: Annotated[int, Field(ge=99, le=1_000_000)] = RESAMPLES

    @property
    def asked(self) -> Annotations:
        """Give it as the forms of recipes take it."""
        return Annotations(scheme="cultivate", prompts=self.prompts, in_region=self.in_region, resamples=self.resamples)

    def drawn(self, countries: int) -> int:
        """Count the prompts that are rated, of so many countries."""
        return self.prompts if self.activities is None else countries * len((*LOOKED_FOR, *FIXED)) * self.activities

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Check that answers come from one place, and that prompts are counted one way."""
        if self.activities is not None and "prompts" in self.model_fields_set:
            raise ValueError("people.activities and people.prompts both say how many prompts are rated; give one")
        if self.files and self.simulated is not None:
            raise ValueError("people has both simulated people and files of answers; give one of them")
        return self


class Painter(Model):
    """A model that is evaluated, perhaps with fewer images of each prompt than the others."""

    images: Annotated[
        int | None,
        Field(ge=1, le=255, description="Images of each prompt; 1 of paid models in the paper. [images.slots]"),
    ] = None


class Extraction(StrictModel):
    """What the extractor is given: room for its reply, and, where `prompted`, the activity and country of an image."""

    reply_tokens: Annotated[int, rules_of(extract, "reply_tokens")] = 256
    prompted: bool = False


class Wordings(StrictModel):
    """Files of instructions that are given in place of the shipped ones, by what is asked."""

    activities: File | None = None
    propose: File | None = None
    refine: File | None = None
    stereotypes: File | None = None
    extract: File | None = None
    weigh: File | None = None
    rate: File | None = None

    def file(self, name: str) -> Path | None:
        """Give the file for one of them, where there is one."""
        given = getattr(self, name)
        return None if given is None else Path(given)


class Cultivate(AskingRecipe):
    """How well models know social activities of countries: AHEaD, from pages about them to the report."""

    recipe: Literal["cultivate"]
    tables: Tables | None = None
    ground: Annotated[
        Ground | None, Field(description="Pages, and who makes activities, descriptors and stereotypes of them.")
    ] = None
    preset: Annotated[
        Literal["authors"] | None, Field(description="What is not said is as published; `plan` lists what is not.")
    ] = None
    models: Annotated[tuple[Painter, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    images: ImagePlan = ImagePlan(slots=10)
    real: RealImages
    extractor: Annotated[JudgeSpec, Field(description="Who says what images show, in phrases by dimension.")]
    extraction: Extraction = Extraction()
    wordings: Wordings = Wordings()
    scorer: Annotated[JudgeSpec, Field(description="Who says how probable it is that stereotypes are shown.")]
    raters: Annotated[
        tuple[JudgeSpec, ...], Field(description="Who rates images from 1 to 5, beside the metrics, as SPECs.")
    ] = ()
    baselines: Baselines | None = None
    encoder: Annotated[EncoderSpec, Field(description="Who turns phrases into vectors, as a SPEC.")]
    scores: Scores = Scores()
    people: People | None = None
    scheme: Annotated[str, AfterValidator(_known_scheme), Field(description="Scheme that groups countries.")] = (
        "cultivate"
    )

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        return all_scenes([self.real.backend, *(model.backend for model in self.models)])

    @property
    def has_groups(self) -> bool:
        """Whether its countries are of several groups, between which there can be gaps."""
        return len({group for iso, group in country_groups(self.scheme).items() if iso in self.countries}) > 1

    @property
    def countries(self) -> tuple[str, ...]:
        """The countries of its prompts."""
        if self.tables is not None:
            named = pl.read_parquet(self.tables.prompts, columns=["country"])["country"]
            return tuple(named.drop_nulls().unique().sort())
        return () if self.ground is None else self.ground.countries

    @property
    def prompts(self) -> int:
        """Count the prompts, or, before they are made, those that there will be."""
        if self.tables is not None:
            return int(pl.scan_parquet(self.tables.prompts).select(pl.len()).collect().item())
        return 0 if self.ground is None else self.ground.prompts

    def images_of(self, model: str) -> int:
        """Count the images of a model, or the real ones that are kept."""
        plan = ImagePlan(slots=self.real.keep) if model == REAL_IMAGES else self.plan_of(model)
        return self.prompts * plan.repeats * plan.slots

    def plan_of(self, model: str) -> ImagePlan:
        """Say what a model makes of each prompt."""
        fewer = next((each.images for each in self.models if each.name == model), None)
        return self.images if fewer is None else replace(self.images, repeats=1, slots=fewer)

    @model_validator(mode="before")
    @classmethod
    def filled(cls, given: Any) -> Any:  # noqa: ANN401 - as YAML has it
        """Fill in what the authors published."""
        return filled_in(given) if isinstance(given, dict) and given.get("preset") == "authors" else given

    @model_validator(mode="after")
    def parts_fit_together(self) -> Self:
        """Reject what comes from two sources, names that stand for two things, and people who cannot know."""
        wanted, models, known = self.people or People(), {model.name for model in self.models}, set(self.countries)
        for named, there in ((wanted.models, models), (wanted.countries, known),
                             (wanted.photographs, set(wanted.countries) or known)):  # fmt: skip
            if strange := sorted(set(named) - there):
                raise ValueError(
                    f"people rates what is not there: {', '.join(strange)}; known: {', '.join(sorted(there))}"
                )
        if (self.tables is None) == (self.ground is None):
            raise ValueError("prompts and descriptors are made (ground) or given (tables); give one of them")
        if taken := sorted(models & {ALL, REAL_IMAGES}):
            raise ValueError(f"no model can be called {taken[0]}: tables call all models, and real images, so")
        names = self.raters if self.ground is None else (*self.raters, *self.ground.countries)
        if twice := sorted({str(name) for name in names if names.count(name) > 1}):
            raise ValueError(f"named twice: {', '.join(twice)}")
        if wanted.simulated is not None and not self.truthful:
            raise ValueError(f"simulated people know only what {SCENES} drew; real images need people.files")
        return self


# The stages of a run.


def wire(recipe: Cultivate, run: Run) -> None:
    """Add the stages of a run."""
    if recipe.ground is not None:
        wire_ground(run, recipe.ground, recipe.llm, recipe.wordings)
    elif recipe.tables is not None:
        run.add(table_stage(Path(recipe.tables.prompts), PROMPTS), roles.PROMPTS)
        run.add(table_stage(Path(recipe.tables.descriptors), DESCRIPTORS), folders.DESCRIPTORS)
        run.add(table_stage(Path(recipe.tables.stereotypes), STEREOTYPES), folders.STEREOTYPES)
    for model in recipe.models:
        model_images(run, model, recipe.plan_of(model.name), seed=recipe.seed, prompts=lambda _: recipe.prompts)
    _wire_real(recipe, run)
    images = {**run.by_model(roles.IMAGES), REAL_IMAGES: run.table(roles.REAL)}
    for name in images:
        _wire_judges(recipe, run, name, images[name])
    if recipe.baselines is not None:
        counts = {name: recipe.images_of(name) for name in run.models}
        wire_baselines(run, recipe.baselines, counts, recipe.prompts, partial(bought, run, recipe.llm))
        for kind in recipe.baselines.exag:
            _wire_exag(recipe, run, kind, images)
    _wire_scores(recipe, run, images)
    if recipe.people is not None:
        _wire_people(recipe, run, recipe.people)
    add_sections_report(run, CULTIVATE_PAGE)


def wire_ground(run: Run, ground: Ground, llm: Llm, words: Wordings) -> None:
    """Add the stages from pages to prompts, descriptors and stereotypes; each can be planned before the others ran."""
    add = partial(add_asking, run, llm)
    grid: Any = {"grid": ground.countries, "per_category": ground.per_category}
    if ground.pages is not None:
        reads = page_list.read.stage(Path(ground.pages), contact=ground.contact)
    else:  # those about the simulated world are written by a stage before
        run.add(simulated_pages_stage(countries=ground.countries), folders.PAGES)
        folder = run.folder(folders.PAGES)
        reads = replace(page_list.read.stage(folder / "pages.yaml"), inputs={"pages": folder, **country_files()})
    sources = run.add(reads, folders.SOURCES)
    reading = partial(extracting.extract.stage, sources, reader=ground.reader, wording=words.file("activities"))
    merging = extracting.merge.stage(
        add(reading, folders.MENTIONS), sources, countries=ground.countries, per_category=ground.per_category,
        encoder=ground.encoder,
    )  # fmt: skip
    prompts = run.add(extracting.prompts.stage(run.add(merging, folders.ACTIVITIES)), roles.PROMPTS)
    proposals = []
    for number, proposer in enumerate(ground.proposers, start=1):
        proposing = partial(propose.stage, prompts, proposer=proposer, at_most=ground.at_most,
                            wording=words.file("propose"), **grid)  # fmt: skip
        proposals.append(add(proposing, folders.PROPOSALS, variant=str(number)))
    refining = partial(refine.stage, prompts, Numbered(tuple(proposals)), refiner=ground.refiner,
                       at_most=ground.at_most, wording=words.file("refine"), **grid)  # fmt: skip
    add(refining, folders.DESCRIPTORS)
    naming = partial(stereotypes.stage, prompts, proposer=ground.stereotypes, wording=words.file("stereotypes"), **grid)
    add(naming, folders.STEREOTYPES)


def _wire_real(recipe: Cultivate, run: Run) -> None:
    """Gather candidates for real images, score how well they show their prompts, and keep the best."""
    wanted, prompts, role = recipe.real, run.table(roles.PROMPTS), folders.CANDIDATE_SCORES
    model = Model.model_construct(name=REAL_IMAGES, backend=wanted.backend)
    images = model_images(run, model, ImagePlan(slots=wanted.per_prompt), folders.CANDIDATES, seed=recipe.seed,
                          prompts=lambda _: recipe.prompts)  # fmt: skip
    if wanted.scorer.startswith(VQASCORE):
        judging = partial(vqascore.stage, images, prompts, judge=wanted.scorer.removeprefix(VQASCORE))
        add_asking(run, recipe.llm, judging, role, plan=asked(recipe.prompts * wanted.per_prompt))
        scores = run.table(role, file="judgments.parquet")
    else:
        run.add(quality_stage(images, prompts, scorer=wanted.scorer), role)
        scores = run.table(role, file="quality.parquet")
    chosen = choose.stage(
        images, prompts, scores, per_language=wanted.per_prompt, at_least=wanted.at_least, keep=wanted.keep
    )
    run.add(chosen, roles.REAL)


def _wire_judges(recipe: Cultivate, run: Run, model: str, images: Path) -> None:
    """Have the images of a model described, searched for stereotypes and rated; and write down the truth."""
    add, count = partial(add_asking, run, recipe.llm), recipe.images_of(model)
    prompts, stereotypes = run.table(roles.PROMPTS), run.table(folders.STEREOTYPES)
    words, room = recipe.wordings, recipe.extraction
    describing = partial(
        extract.stage, images, prompts if room.prompted else None, judge=recipe.extractor,
        wording=words.file("extract"), reply_tokens=room.reply_tokens,
    )  # fmt: skip
    add(describing, folders.EXTRACTED, model, plan=asked(count, each=len(DIMENSIONS)))
    weighing = partial(
        stereotypes_shown.stage, images, prompts, stereotypes, judge=recipe.scorer, wording=words.file("weigh")
    )
    add(weighing, folders.STEREOTYPED, model, plan=asked(count, each=MOST_STEREOTYPES))
    for number, rater in enumerate(recipe.raters if model != REAL_IMAGES else (), start=1):
        rating = partial(likert.stage, images, prompts, judge=rater, wording=words.file("rate"))
        add(rating, folders.LIKERT, model, str(number), plan=asked(count, each=len(SCALES)))
    if recipe.truthful:
        run.add(scene_truth_stage(images, prompts, stereotypes), folders.TRUTH, model)


def _wire_exag(recipe: Cultivate, run: Run, kind: str, images: Mapping[str, Path]) -> None:
    """Measure exaggeration once more, by other candidates than stereotypes."""
    prompts, limit = run.table(roles.PROMPTS), None if recipe.baselines is None else recipe.baselines.per_prompt
    source = [run.table(folders.DESCRIPTORS)] if kind == "references" else run.every(folders.EXTRACTED).values()
    listed = candidates_stage(Numbered(list(source)), prompts, candidates=kind)
    candidates = run.add(listed, folders.CANDIDATE_TOKENS, variant=kind)
    for name in images:
        asking = partial(
            stereotypes_shown.stage, images[name], prompts, candidates, judge=recipe.scorer, per_prompt=limit,
            wording=recipe.wordings.file("weigh"),
        )  # fmt: skip
        count = min(recipe.images_of(name), (limit or 10**9) * recipe.prompts)
        plan = asked(count, each=MOST_STEREOTYPES)
        add_asking(run, recipe.llm, asking, folders.EXAG_BY, name, kind, plan=plan)


def _wire_scores(recipe: Cultivate, run: Run, images: Mapping[str, Path]) -> None:
    """Compare descriptions of images, and what they truly show, with what they should show."""
    found, true = run.every(folders.EXTRACTED), run.every(folders.TRUTH)
    texts = (run.table(folders.DESCRIPTORS), *found.values(), *true.values(), *run.every(folders.PROPOSALS).values())
    run.add(embed_stage(EmbedSource(texts=texts), encoder=recipe.encoder), folders.PHRASES)
    options = AheadOptions(
        REAL_IMAGES, recipe.scores.tau, recipe.scores.quantile, recipe.scores.aggregate, recipe.scores.reduce,
        recipe.scores.target, recipe.scheme, encoder=recipe.encoder, confidence=recipe.scores.confidence,
    )  # fmt: skip
    scoring = partial(
        ahead.stage, Numbered({f"images-{model}": path for model, path in images.items()}), run.table(roles.PROMPTS),
        run.table(folders.DESCRIPTORS), phrases=PhraseVectors(run.folder(folders.PHRASES)), options=options,
    )  # fmt: skip
    stereotyped = Numbered(run.every(folders.STEREOTYPED))
    run.add(scoring(extracted=Numbered(found), stereotypes=stereotyped), folders.AHEAD)
    if recipe.truthful:
        like = None if options.quantile is None else run.table(folders.AHEAD)
        exact = scoring(extracted=Numbered(true), stereotypes=Numbered(true), like=like)
        run.add(exact, folders.AHEAD_TRUTH)
    matches = run.table(folders.AHEAD, file="descriptor_matches.parquet")
    parts = breakdown_stage(run.values_of(folders.AHEAD), matches, run.table(roles.PROMPTS), models=run.models)
    run.add(parts, folders.BREAKDOWN)
    if recipe.has_groups:
        how = GapOptions(recipe.scheme, confidence=recipe.scores.confidence, seed=recipe.seed)
        run.add(gaps.stage(ValueTables([run.values_of(folders.AHEAD)]), options=how), roles.GAPS)


# People: forms out, answers in, scores corrected, and metrics held against ratings.

CORRECTED = {**MARKED, "exag": "exag"}  # The question of the form, or what follows from it, that puts a metric right


def _wire_people(recipe: Cultivate, run: Run, wanted: People) -> None:
    """Hand out forms, import answers, hold metrics against them, and put the judge right."""
    prompts, descriptors, seed = run.table(roles.PROMPTS), run.table(folders.DESCRIPTORS), recipe.seed
    rated = wanted.models or run.models
    images = [run.table(roles.IMAGES, model) for model in run.models if model in rated]
    count = wanted.drawn(len(wanted.countries or recipe.countries))
    drawn = rated_sample_stage(images, prompts, count=count, seed=seed, each=wanted.images, countries=wanted.countries)
    sample = run.add(drawn, roles.RATED_SAMPLE)
    samples = [sample]
    if wanted.photographs:
        real = [run.table(roles.REAL)]
        alike = rated_sample_stage(real, prompts, count=count, seed=seed, countries=wanted.photographs, like=sample)
        samples.append(run.add(alike, folders.RATED_PHOTOGRAPHS))
        images = [*images, *real]
    extracted, truth = (
        [path for name, path in run.every(role).items()
         if wanted.photographs or name != role.folder(REAL_IMAGES)] for role in (folders.EXTRACTED, folders.TRUTH)
    )  # fmt: skip
    drawn_by = Files({"sample": sample, **named_roles("more-samples", samples[1:])})
    items = run.add(scene_items_stage(drawn_by, prompts, descriptors, Numbered(extracted)), folders.ITEMS)
    export = ExportOptions(Quotas(wanted.in_region, 0))
    forms = export_stage(ExportFiles(images, prompts, items=items), "cultivate", export, shortlist=SHORTLIST, seed=seed)
    project, people = run.add(forms, roles.TO_RATE), None
    if wanted.simulated is not None:
        shown = run.values_of(folders.AHEAD_TRUTH)
        people = simulated_marks_stage(project, items, truth, shown, wanted.simulated, seed=seed)
    answers = imported_answers(
        run, project, wanted.files, people, answers=roles.SIMULATED_ANSWERS, imported=roles.IMPORTED
    )
    if answers is None:
        return
    phrases = PhraseVectors(run.folder(folders.PHRASES))
    marks = run.add(marks_stage(answers, items, descriptors, phrases, run.table(folders.AHEAD)), folders.MARKS)
    _wire_corrected(recipe, run, marks, sample)
    _follow(recipe, run, marks, wanted.asked)


def _wire_corrected(recipe: Cultivate, run: Run, marks: Path, sample: Path) -> None:
    """Put scores and gaps right by what people marked."""
    grouping = grouped_values_stage(run.values_of(folders.AHEAD), scheme=recipe.scheme, metrics=tuple(CORRECTED))
    values = run.add(grouping, folders.BY_GROUP)
    for metric, criterion in CORRECTED.items():
        low, high = SCALE if criterion == metric else (None, None)
        options = JudgedOptions(
            criterion, None, None, low, high, (metric,), "countries", confidence=recipe.scores.confidence
        )
        stage = judged.stage(ValueTables([values]), marks, Files([sample]), options=options)
        run.add(stage, folders.JUDGED_BY, variant=metric)
    if recipe.has_groups:
        tables = Numbered([run.table(folders.JUDGED_BY, variant=metric) for metric in CORRECTED])
        truth = run.table(folders.AHEAD_TRUTH) if recipe.truthful else None
        run.add(gaps_of_scores_stage(tables, truth, scheme=recipe.scheme), folders.CORRECTED_GAPS)


def _follow(recipe: Cultivate, run: Run, marks: Path, asked: Annotations) -> None:
    """Hold metrics and raters against people, and against each other."""
    aside, checks = (run.table(roles.IMPORTED, file=f"{name}.parquet") for name in ("quarantine", "annotation_checks"))
    about = run.table(roles.IMPORTED, file="rated_items.parquet")
    files = AggregateFiles(marks, about, quarantine=(aside,), checks=(checks,))
    options = AggregateOptions(asked.pools, (), asked.confidence, asked.resamples, recipe.seed, ())
    rated = run.add(aggregate_stage(files, options), roles.RATINGS)
    drawn, real, prompts = run.by_model(roles.IMAGES), run.table(roles.REAL), run.table(roles.PROMPTS)
    images, values = Numbered(list(drawn.values())), run.values_of(folders.AHEAD)
    raters = run.add(raters_stage(Files(run.every(folders.LIKERT)), images, prompts, marks), folders.RATERS)
    others = run.add(others_stage(images, prompts, marks), folders.OTHERS)
    how = MetaOptions(
        by="in-region", scheme=recipe.scheme, methods=("spearman", "kendall"), confidence=asked.confidence,
        resamples=asked.resamples, seed=recipe.seed,
    )  # fmt: skip
    ours = run.add(compared_stage(values, models=run.models), folders.COMPARED)
    beside = [run.values_of(roles.FAITHFULNESS)] if run.has(roles.FAITHFULNESS) else []
    wanted = recipe.baselines
    if wanted is not None and (wanted.cure is not None or wanted.exag):
        cosines = list(run.every(folders.CURE).values())
        exag = {str(kind): list(run.every(folders.EXAG_BY, kind).values()) for kind in wanted.exag}
        cure = {} if wanted.cure is None else {wanted.cure: cosines}
        beside.append(
            run.add(baseline_values_stage(drawn, real, prompts, cure=cure, exag=exag), folders.BASELINE_VALUES)
        )
    varied = ablations_stage(
        images, real, prompts, run.table(folders.DESCRIPTORS), Files(run.every(folders.PROPOSALS)),
        Numbered(list(run.every(folders.EXTRACTED).values())), PhraseVectors(run.folder(folders.PHRASES)),
        models=list(drawn), tau=None if recipe.scores.quantile else AheadOptions(tau=recipe.scores.tau).threshold,
    )  # fmt: skip
    ablated = run.add(varied, folders.ABLATIONS)
    run.add(meta.stage(ValueTables([ours, raters]), rated, ValueTables([others]), options=how), roles.META)
    held = replace(how, people_only=True)
    run.add(meta.stage(ValueTables([ablated, *beside]), rated, options=held), folders.BASELINES)


def plan_lines(recipe: Cultivate) -> Iterator[str]:
    """Say what people would do, and, with the authors' preset, what is not as published."""
    if recipe.people is not None and recipe.people.simulated is None:
        wanted, places = recipe.people, len(recipe.people.countries or recipe.countries)
        prompts = min(wanted.drawn(places), recipe.prompts)
        forms = prompts * sum(
            min(wanted.images, recipe.plan_of(each.name).slots)
            for each in recipe.models
            if each.name in (wanted.models or [each.name])
        )
        yield from people_lines(forms, prompts * len(wanted.photographs) // max(1, places), wanted.in_region)
    if recipe.preset is not None:
        yield from deviating(recipe)


CULTIVATE = RecipeKind(Cultivate, wire, sections_headline(CULTIVATE_PAGE), CULTIVATE_PAGE, plan_lines)
