"""The `c3` recipe: its keys, and its stages: captions grow, models draw them, strategies choose pairs, people rate."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, Self, TypeAlias

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.captions import caption_files
from culturekit.builders.captions.expanding import PER_ROUND, PUBLISHED, SIMILARITY, culture_file, expand, load_culture
from culturekit.builders.captions.pairs import SelectOptions, Strategy, export, select
from culturekit.builders.judging.image_judge import vqascore
from culturekit.builders.judging.scene_judge import extract
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.builders.space.cspace import table_stage
from culturekit.config.checks import existing_table
from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe_parts import AskingRecipe, BackendSpec, EncoderSpec, File, JudgeSpec, ModelName
from culturekit.core import roles
from culturekit.core.choices import RATERS, RESAMPLES, SHORTLIST
from culturekit.core.declared import rules_of
from culturekit.core.inputs import Files, Numbered
from culturekit.core.registry import Spec, parse_spec
from culturekit.core.run import Run
from culturekit.core.schemas import CAPTIONS, IMAGES
from culturekit.core.stage import Stage
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.generation.backend import DIFFUSERS
from culturekit.generation.diffusion.training import TAKEN, TuningOptions, finetune_stage
from culturekit.generation.runner import ImagePlan
from culturekit.generation.simulated.scenes.scenes_backend import world
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.index.embedding.embed_table import EmbedSource, TextColumns, embed_stage
from culturekit.kg.concepts import CountryCode
from culturekit.llm.answers import LlmOptions
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS
from culturekit.people.export import ExportOptions
from culturekit.people.stages import ExportFiles, export_stage, rated_sample_stage
from culturekit.people.tasks import Quotas
from culturekit.recipes.c3 import roles as folders
from culturekit.recipes.c3.page import C3_PAGE
from culturekit.recipes.c3.pairs import (
    captioned_images_stage,
    difficulty_stage,
    followed_stage,
    pair_items_stage,
    ranked_values_stage,
    worth_stage,
)
from culturekit.recipes.c3.roles import PAIRS
from culturekit.recipes.c3.scores import C3Options, c3
from culturekit.recipes.c3.world import (
    alt_texts_stage,
    collection_prompts_stage,
    image_truth_stage,
    pair_truth_stage,
    simulated_ratings_stage,
)
from culturekit.recipes.parts import SCENES, add_asking, all_scenes, asked, imported_answers, model_images
from culturekit.recipes.planning import makes, works
from culturekit.report.report_stage import add_sections_report, sections_headline
from culturekit.scores.compare import ComparisonOptions, compare
from culturekit.scores.faithfulness import questions
from culturekit.scores.inputs import ValueTables, VectorFolder
from culturekit.scores.judged import JudgedOptions, judged
from culturekit.scores.meta import MetaOptions
from culturekit.scores.ratings import ratings

_Given: TypeAlias = Literal["text", "tokens", "mean"]
Share = Annotated[float, Field(ge=0, le=1)]

EVERY: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")


def _known_culture(name: str) -> str:
    """Accept a file of a culture, or a shipped one."""
    culture_file(name)
    return name


class Captions(StrictModel):
    """How captions grow from the seeds of a culture, and how many of them models draw; or `file` with captions."""

    proposer: Annotated[JudgeSpec | None, Field(description="Who proposes captions, as a SPEC.")] = None
    count: Annotated[int, rules_of(expand, "captions")] = PUBLISHED
    per_round: Annotated[int, rules_of(expand, "per_round")] = PER_ROUND
    encoder: Annotated[EncoderSpec | None, rules_of(expand, "encoder")] = None
    similarity: Annotated[float, rules_of(expand, "similarity")] = SIMILARITY
    sample: Annotated[int, rules_of(caption_files.sample, "size")] = 500
    file: Annotated[
        Annotated[str, AfterValidator(existing_table(CAPTIONS))] | None,
        Field(description="A table CAPTIONS that was expanded elsewhere."),
    ] = None
    beside: Annotated[
        Mapping[Annotated[str, Field(pattern="^[a-z][a-z0-9]*$")], File],
        Field(description="Other captions whose statistics stand beside, by name: such as COCO's JSON."),
    ] = {}
    drawn_beside: Annotated[
        int,
        Field(ge=0, description="Captions of each set beside that models draw and people rate, too; 500 in the paper."),
    ] = 0

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Check that captions come from one place."""
        if (self.proposer is None) == (self.file is None):
            raise ValueError("captions are expanded (captions.proposer) or given (captions.file); give one of them")
        if taken := {PAIRS, folders.OF_MODELS, "expanded", "sample"} & set(self.beside):
            raise ValueError(f"captions.beside: folders call something else {', '.join(sorted(taken))}")
        return self


class Objects(StrictModel):
    """Who lists the objects that captions name and pictures show; a detector may look at pictures instead."""

    lister: JudgeSpec
    dimensions: Annotated[tuple[str, ...], rules_of(extract, "dimensions")] = ("objects",)
    detector: Annotated[str | None, rules_of(caption_files.objects, "detector")] = None
    labels: Annotated[File | None, rules_of(caption_files.objects, "labels")] = None
    threshold: Annotated[float, rules_of(caption_files.objects, "threshold")] = 0.5

    @model_validator(mode="after")
    def detector_has_labels(self) -> Self:
        """Reject a detector that does not know what to look for."""
        if (self.detector is None) != (self.labels is None):
            raise ValueError("objects.detector looks for what objects.labels lists; give both or neither")
        return self


class Encoders(StrictModel):
    """Who turns texts and pictures into vectors: LaBSE and CLIP in the paper."""

    text: EncoderSpec
    image: EncoderSpec
    tokens: Annotated[
        bool, Field(description="Compare single tokens of captions, as the equations do, not a vector of each caption.")
    ] = False
    patches: Annotated[
        bool, Field(description="Compare patches of images, not a vector of each: `image` is transformers:CLIP-FOLDER.")
    ] = False


class SimulatedPairs(StrictModel):
    """Pictures of a country with captions, as the web of the simulated world has them."""

    country: CountryCode
    backend: BackendSpec
    each: Annotated[int, Field(ge=1, le=65_535, description="Pictures of each activity.")] = 10
    names: Annotated[Share, Field(description="How much of a picture its caption names.")] = 0.6
    wrong: Annotated[Share, Field(description="How much of what captions name is not shown, on average.")] = 0.3


class Pairs(StrictModel):
    """Pictures with captions in another language, from which strategies choose those to train on.

    `images` and `captions` (id of the image, text) are tables of the user; `simulated` makes them.
    """

    images: Annotated[str, AfterValidator(existing_table(IMAGES))] | None = None
    captions: File | None = None
    rights: Annotated[File | None, Field(description="Licence and source by image_id.")] = None
    simulated: SimulatedPairs | None = None
    translator: Annotated[JudgeSpec, Field(description="Who translates captions into English, as a SPEC.")]
    keep: Annotated[int, rules_of(SelectOptions, "keep")] = 300_000
    strategies: Annotated[tuple[Strategy, ...], AfterValidator(not_empty)] = EVERY
    missing: Annotated[Literal["sum", "leave-out"], rules_of(SelectOptions, "missing")] = SelectOptions(1).missing
    listed: Annotated[Literal["all", "kept"], rules_of(SelectOptions, "listed")] = SelectOptions(1).listed
    forms: Annotated[tuple[Literal["imagefolder", "webdataset"], ...], rules_of(export, "forms")] = ("imagefolder",)
    unlicensed: Annotated[Literal["refuse", "leave-out", "include"], rules_of(export, "unlicensed")] = "refuse"

    @property
    def count(self) -> int:
        """Count the pairs."""
        if self.simulated is not None:
            return self.simulated.each * len(world().activities)
        return int(pl.scan_parquet(str(self.images)).select(pl.len()).collect().item())

    def given(self) -> tuple[Path, Path, Path | None]:
        """Name the user's tables of images, captions and rights."""
        return Path(str(self.images)), Path(str(self.captions)), None if self.rights is None else Path(self.rights)

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Check that pairs come from one place."""
        if (self.simulated is None) == (self.images is None) or (self.images is None) != (self.captions is None):
            raise ValueError("pairs are pairs.simulated, or pairs.images with pairs.captions; give one of them")
        return self


class Finetune(StrictModel):
    """A training on the pairs that a strategy exports: `model` is one of `models`, which stands beside itself as NAME.

    What it draws of the same captions before and after is judged, aligned and rated alike, and compared.
    """

    model: Annotated[str, Field(description="Which of the models is trained: one of diffusers:FOLDER.")]
    name: Annotated[ModelName, Field(description="What it is called with what it learnt.")] = "tuned"
    strategy: Strategy = "c3"
    strategies: Annotated[
        tuple[Strategy, ...],
        Field(description="Strategies whose pairs train a model each, called NAME-STRATEGY. [only `strategy`]"),
    ] = ()
    learns: Annotated[Literal["lora", "full"], rules_of(TuningOptions, "learns")] = TuningOptions("").learns
    epochs: Annotated[float | None, rules_of(TuningOptions, "epochs")] = None
    processes: Annotated[int, rules_of(TuningOptions, "processes")] = 1
    steps: Annotated[int, rules_of(TuningOptions, "steps")] = TuningOptions("").steps
    rank: Annotated[int, rules_of(TuningOptions, "rank")] = TuningOptions("").rank
    rate: Annotated[float, rules_of(TuningOptions, "rate")] = TuningOptions("").rate
    batch: Annotated[int, rules_of(TuningOptions, "batch")] = TuningOptions("").batch
    accumulate: Annotated[int, rules_of(TuningOptions, "accumulate")] = TuningOptions("").accumulate
    size: Annotated[int, rules_of(TuningOptions, "size")] = TuningOptions("").size
    every: Annotated[int, rules_of(TuningOptions, "every")] = TuningOptions("").every
    recompute: Annotated[bool, rules_of(TuningOptions, "recompute")] = False

    @property
    def tuned(self) -> Mapping[str, Strategy]:
        """What the trained models are called, and whose pairs each is trained on."""
        return {f"{self.name}-{one}": one for one in self.strategies} or {self.name: self.strategy}

    def options(self, backend: str, seed: int) -> TuningOptions:
        """Give the options of the training: how the model draws decides nothing of it."""
        spec = parse_spec(backend)
        kept = {name: value for name, value in spec.options.items() if name in TAKEN}
        stated = self.model_dump(exclude={"model", "name", "strategy", "strategies"})
        return TuningOptions(str(Spec(spec.name, spec.target, kept)), **stated, seed=seed)


class People(StrictModel):
    """People who rate in six criteria: images of `prompts` captions, and `pairs` translated captions.

    Without answers the forms are handed out and wait; with `simulated` people answer them who know the truth.
    """

    prompts: Annotated[int, Field(ge=1, le=1_000_000)] = 120
    pairs: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    raters: Annotated[int, Field(ge=1, le=50, description="People who rate each item.")] = RATERS
    image_answers: tuple[File, ...] = ()
    pair_answers: tuple[File, ...] = ()
    beside_answers: Annotated[
        Mapping[str, tuple[File, ...]], Field(description="Answers about images of captions.beside, by the set's name.")
    ] = {}
    simulated: SimulatedPeople | None = None
    resamples: Annotated[int, rules_of(MetaOptions, "resamples"), Field(le=1_000_000)] = RESAMPLES

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Check that answers come from one place."""
        if self.simulated is not None and (self.image_answers or self.pair_answers or self.beside_answers):
            raise ValueError("people has both simulated people and files of answers; give one of them")
        return self


class C3(AskingRecipe):
    """How well models draw what is hard about a culture, and which captioned pictures would teach them."""

    recipe: Literal["c3"]
    culture: Annotated[str, AfterValidator(_known_culture)] = "chinese"
    captions: Captions
    images: ImagePlan = ImagePlan()
    judge: Annotated[
        JudgeSpec, Field(description="Who says how probable it is that an image shows its caption, as a SPEC.")
    ]
    objects: Objects
    encoders: Encoders
    pairs: Pairs | None = None
    finetune: Finetune | None = None
    people: People | None = None

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The names of the models, and of those that are trained."""
        return (*super().evaluated, *(() if self.finetune is None else self.finetune.tuned))

    def images_of(self, name: str) -> int:
        """Count the images of a model, or the pairs."""
        if name == PAIRS:
            return 0 if self.pairs is None else self.pairs.count
        return self.captions.sample * self.images.repeats * self.images.slots

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        return all_scenes(model.backend for model in self.models)

    @model_validator(mode="after")
    def enough_of_each(self) -> Self:
        """Reject to draw, rate or keep more than there will be."""
        wanted = []
        if self.captions.file is None:
            wanted.append(("captions.sample", self.captions.sample, self.captions.count, "captions"))
        if self.people is not None:
            wanted.append(("people.prompts", self.people.prompts, self.captions.sample, "captions in the sample"))
        if self.pairs is not None and self.pairs.simulated is not None:
            there = self.pairs.count
            rated = 0 if self.people is None else self.people.pairs
            wanted += [("pairs.keep", self.pairs.keep, there, "pairs"), ("people.pairs", rated, there, "pairs")]
        for name, count, known, of in wanted:
            if count > known:
                raise ValueError(f"{name} asks for {count:,} of {known:,} {of}")
        return self

    @model_validator(mode="after")
    def trains_one_of_its_models(self) -> Self:
        """Reject a training of what is no model of the recipe, or on what it does not export."""
        if (wanted := self.finetune) is None:
            return self
        trained = next((model for model in self.models if model.name == wanted.model), None)
        if trained is None or parse_spec(trained.backend).name != DIFFUSERS:
            raise ValueError(f"finetune.model is to be one of the models, of {DIFFUSERS}:FOLDER; got {wanted.model}")
        chosen, there = wanted.tuned.values(), () if self.pairs is None else self.pairs.strategies
        if self.pairs is None or not set(chosen) <= set(there) or "imagefolder" not in self.pairs.forms:
            raise ValueError(f"finetune trains on pairs as an imagefolder, chosen by {', '.join(chosen)}: see pairs")
        if taken := set(wanted.tuned) & {model.name for model in self.models}:
            raise ValueError(f"finetune.name is a model already: {', '.join(taken)}")
        return self

    @model_validator(mode="after")
    def names_and_truth(self) -> Self:
        """Reject a model that is called as pairs are, and simulated people who could not know what is true."""
        if PAIRS in self.evaluated:
            raise ValueError(f"no model can be called {PAIRS}: folders call pairs of captions and pictures so")
        simulated = self.people is not None and self.people.simulated is not None
        if simulated and not (self.truthful and (self.pairs is None or self.pairs.simulated is not None)):
            raise ValueError(f"simulated people know only what {SCENES} drew; real pictures need people's answers")
        return self


_SLOTS = 255
VQASCORE, PRESENCE = "vqascore", "object_presence"
"""The judge's score of images, and the question of the form that puts it right."""


def wire(recipe: C3, run: Run) -> None:
    """Add the stages of a run."""
    _wire_captions(recipe, run)
    for model in recipe.models:
        images = model_images(run, model, recipe.images, seed=recipe.seed, prompts=lambda _: recipe.captions.sample)
        _wire_model(recipe, run, model.name, images)
    if recipe.pairs is not None:
        _wire_pairs(recipe, run, recipe.pairs)
    if recipe.finetune is not None:
        _wire_finetune(recipe, run, recipe.finetune)
    every, probabilities = Numbered(run.tables(roles.IMAGES)), Numbered(run.tables(roles.VQASCORE))
    run.add(questions.stage(every, probabilities, prompts=run.table(roles.PROMPTS)), roles.FAITHFULNESS)
    if recipe.truthful:
        run.add(image_truth_stage(list(run.by_model(roles.IMAGES).values()), run.table(roles.PROMPTS)), folders.TRUTH)
    rated = recipe.people is not None and _wire_ratings(recipe, run, recipe.people)
    judged_and_rated = [run.values_of(roles.FAITHFULNESS), *([run.values_of(folders.RATINGS)] if rated else [])]
    run.add(difficulty_stage(run.table(roles.PROMPTS), Numbered(judged_and_rated)), folders.DIFFICULTY)
    for name, file in recipe.captions.beside.items() if recipe.captions.drawn_beside else ():
        _wire_beside(recipe, run, name, Path(file))
    if recipe.finetune is not None:
        many = recipe.captions.sample >= FEWEST_PROMPTS
        how = ComparisonOptions(target="population" if many else "these", seed=recipe.seed)
        run.add(compare.stage(ValueTables(judged_and_rated), options=how), folders.COMPARED)
    add_sections_report(run, C3_PAGE)


def _wire_captions(recipe: C3, run: Run) -> None:
    """Expand the seeds of a culture, or take captions in; draw the sample; count words and objects of each set."""
    wanted = recipe.captions
    if wanted.proposer is not None:
        growing = partial(
            expand.stage, culture_file(recipe.culture), proposer=wanted.proposer, captions=wanted.count,
            per_round=wanted.per_round, encoder=wanted.encoder, similarity=wanted.similarity, seed=recipe.seed,
        )  # fmt: skip
        captions = add_asking(run, recipe.llm, growing, folders.CAPTIONS)
    else:
        captions = run.add(table_stage(Path(str(wanted.file)), CAPTIONS), folders.CAPTIONS)
    run.add(caption_files.sample.stage(captions, size=wanted.sample, seed=recipe.seed), roles.PROMPTS)
    sample = run.table(roles.PROMPTS, file="captions.parquet")
    sets = {"expanded": captions, **{name: Path(file) for name, file in wanted.beside.items()}}
    for name, file in sets.items():
        listing = partial(caption_files.objects.stage, captions=file, lister=recipe.objects.lister)
        plan = asked(wanted.count if file == captions else None)
        objects = add_asking(run, recipe.llm, listing, folders.NAMED_OBJECTS, variant=name, plan=plan)
        for part, counted in {name: file, **({"sample": sample} if file == captions else {})}.items():
            run.add(caption_files.stats.stage(counted, objects), folders.STATS, variant=part)


def _wire_model(recipe: C3, run: Run, model: str, images: Path) -> None:
    """Have the images of a model judged, and aligned with their captions."""
    prompts = run.table(roles.PROMPTS)
    judging = partial(vqascore.stage, images, prompts, judge=recipe.judge)
    add_asking(run, recipe.llm, judging, roles.VQASCORE, model, plan=asked(recipe.images_of(model)))
    captions = run.add(captioned_images_stage(images, prompts), folders.CAPTIONED, model)
    _align(recipe, run, model, images, captions)


def _wire_beside(recipe: C3, run: Run, name: str, file: Path) -> None:
    """Have models draw captions of another set, such as COCO's, a judge weigh the images and people rate them."""
    count, culture = recipe.captions.drawn_beside, load_culture(culture_file(recipe.culture)).culture
    sampling = caption_files.sample.stage(file, size=count, culture=culture, seed=recipe.seed)
    prompts = run.add(sampling, folders.BESIDE_PROMPTS, variant=name)
    images, weighed = dict[str, Path](), dict[str, Path]()
    for model in recipe.models:
        drawn = model_images(run, model, recipe.images, folders.BESIDE_IMAGES, seed=recipe.seed,
                             prompts=lambda _: count, asked=prompts, variant=name)  # fmt: skip
        images[folders.BESIDE_IMAGES.folder(model.name, name)] = drawn
        weighing, role = partial(vqascore.stage, drawn, prompts, judge=recipe.judge), folders.BESIDE_WEIGHED
        plan = asked(count * recipe.images.repeats * recipe.images.slots)
        weighed[role.folder(model.name, name)] = add_asking(
            run, recipe.llm, weighing, role, model.name, name, plan=plan
        )
    run.add(questions.stage(Numbered(images), Numbered(weighed), prompts=prompts), folders.BESIDE_JUDGED, variant=name)
    truth = None
    if recipe.truthful:
        run.add(image_truth_stage(list(images.values()), prompts), folders.BESIDE_TRUTH, variant=name)
        truth = run.table(folders.BESIDE_TRUTH, variant=name, file="values.parquet")
    if (people := recipe.people) is not None:
        drawing = rated_sample_stage(list(images.values()), prompts, count=min(people.prompts, count), seed=recipe.seed)
        sample = run.add(drawing, folders.BESIDE_SAMPLE, variant=name)
        forms = ExportFiles(list(images.values()), prompts, sample=sample)
        rated(recipe, run, people, name, forms, truth, people.beside_answers.get(name, ()))


def _wire_finetune(recipe: C3, run: Run, wanted: Finetune) -> None:
    """Train a model on the pairs that each strategy chose, and have it draw the same captions once more."""
    backend = next(model.backend for model in recipe.models if model.name == wanted.model)
    prompts = run.table(roles.PROMPTS)
    for name, strategy in wanted.tuned.items():
        pairs = run.folder(folders.EXPORTED, variant=strategy)
        trained = name if wanted.strategies else wanted.model
        run.add(finetune_stage(pairs, wanted.options(backend, recipe.seed)), folders.FINETUNED, trained)
        adapter = run.folder(folders.FINETUNED, trained)
        drawing = generate_stage(prompts, recipe.images, backend=backend, model=name, seed=recipe.seed, adapter=adapter)
        images = run.add(drawing, roles.IMAGES, name, plan=makes(lambda _: recipe.captions.sample))
        _wire_model(recipe, run, name, images)


def _align(recipe: C3, run: Run, name: str, images: Path, captions: Path, *, source: str = "") -> Path:
    """Score how images, and the objects in them, fit captions; and these their originals, in the column `source`."""
    objects = run.add(_objects_in(recipe, run, name, images), folders.OBJECTS, name)
    texts, pictures = recipe.encoders.text, recipe.encoders.image
    seen = f"{pictures}{'&' if '?' in pictures else '?'}give=patches" if recipe.encoders.patches else pictures

    plan = works(lambda: recipe.images_of(name), "pairs" if name == PAIRS else "images")
    give: _Given = "tokens" if recipe.encoders.tokens else "text"
    whole: _Given = "mean" if recipe.encoders.tokens else "text"

    def embedded(variant: str, source: EmbedSource, encoder: str, give: _Given = "text") -> VectorFolder:
        embedding = embed_stage(source, encoder=encoder, give=give)
        return VectorFolder(run.add(embedding, folders.VECTORS, name, variant, plan=plan))

    translated = EmbedSource(texts=(captions,))
    original = EmbedSource(texts=(captions,), columns=TextColumns("id", source))
    scoring = c3.stage(
        source=embedded("source", original, texts, give) if source else None,
        target=embedded("target", translated, texts, give),
        objects=embedded("objects", EmbedSource(texts=(objects,), required=False), texts, whole),
        image=embedded("image", EmbedSource(images=images), seen),
        image_target=embedded("image-target", translated, pictures, give),
        options=C3Options(model="captions" if name == PAIRS else name),
    )
    run.add(scoring, folders.ALIGNED, name, plan=plan)
    return run.values_of(folders.ALIGNED, name)


def _objects_in(recipe: C3, run: Run, name: str, images: Path) -> Stage:
    """List the objects in images by a detector, or by a vision model, which is asked by another stage."""
    wanted = recipe.objects
    if wanted.detector is not None and wanted.labels is not None:
        labels = Path(wanted.labels)
        return caption_files.objects.stage(
            images=images, labels=labels, detector=wanted.detector, threshold=wanted.threshold
        )
    seeing = partial(extract.stage, images, dimensions=wanted.dimensions, judge=wanted.lister)
    plan = asked(recipe.images_of(name), each=len(wanted.dimensions))
    return caption_files.objects.stage(judgments=add_asking(run, recipe.llm, seeing, folders.SEEN, name, plan=plan))


def _wire_pairs(recipe: C3, run: Run, wanted: Pairs) -> None:
    """Translate the captions of pictures, align the pairs, keep the best by each strategy, and write these."""
    images, captions, rights = (
        wanted.given() if wanted.simulated is None else _simulated_pairs(recipe, run, wanted.simulated)
    )
    translating = partial(caption_files.translate.stage, captions, translator=wanted.translator)
    translated = add_asking(run, recipe.llm, translating, folders.TRANSLATED, plan=asked(wanted.count))
    values = _align(recipe, run, PAIRS, images, translated, source="source")
    options = SelectOptions(wanted.keep, wanted.strategies, wanted.missing, wanted.listed, recipe.seed)
    selected = run.add(
        select.stage(values, options=options), folders.SELECTED, plan=works(lambda: wanted.count, "pairs")
    )
    truth = answers = None
    if wanted.simulated is not None:
        run.add(pair_truth_stage(images, translated), folders.PAIR_TRUTH)
        truth = run.values_of(folders.PAIR_TRUTH)
    for strategy in wanted.strategies:
        exporting = export.stage(
            selected, translated, images, rights, strategy=strategy, forms=wanted.forms, unlicensed=wanted.unlicensed
        )
        run.add(exporting, folders.EXPORTED, variant=strategy)
    if (people := recipe.people) is not None:
        drawing = pair_items_stage(images, translated, count=people.pairs, seed=recipe.seed)
        files = ExportFiles([images], items=run.add(drawing, folders.PAIR_ITEMS))
        answers = rated(recipe, run, people, PAIRS, files, truth, people.pair_answers)
    if answers is not None or truth is not None:
        run.add(worth_stage(selected, answers, truth), folders.WORTH)
    if people is not None and answers is not None:
        items = run.table(folders.PAIR_ITEMS)
        ranked = run.add(ranked_values_stage(values, items, options=options), folders.RANKED)
        run.add(followed_stage(ranked, answers, resamples=people.resamples, seed=recipe.seed), folders.PEARSON)


def _simulated_pairs(recipe: C3, run: Run, wanted: SimulatedPairs) -> tuple[Path, Path, Path]:
    """Let the web of the simulated world have pictures with captions, and say under which licence."""
    prompts = run.add(collection_prompts_stage(country=wanted.country), folders.COLLECTION_PROMPTS)
    few = wanted.each <= _SLOTS  # more are repeats: a slot is a byte
    plan = ImagePlan(slots=wanted.each) if few else ImagePlan(repeats=wanted.each)
    llm = LlmOptions(go_on=recipe.llm.go_on)
    drawing = generate_stage(prompts, plan, backend=wanted.backend, model=folders.WEB, seed=recipe.seed, llm=llm)
    images = run.add(drawing, folders.COLLECTION)
    captions = run.add(
        alt_texts_stage(images, names=wanted.names, wrong=wanted.wrong, seed=recipe.seed), folders.ALT_TEXTS
    )
    return images, captions, run.table(folders.ALT_TEXTS, file="rights.parquet")


def _wire_ratings(recipe: C3, run: Run, wanted: People) -> bool:
    """Let people rate images of some captions, and put the judge right; tell whether there are answers."""
    images, prompts = list(run.by_model(roles.IMAGES).values()), run.table(roles.PROMPTS)
    sample = run.add(rated_sample_stage(images, prompts, count=wanted.prompts, seed=recipe.seed), roles.RATED_SAMPLE)
    truth = run.values_of(folders.TRUTH) if recipe.truthful else None
    forms = ExportFiles(images, prompts, sample=sample)
    answers = rated(recipe, run, wanted, folders.OF_MODELS, forms, truth, wanted.image_answers)
    if answers is not None:
        run.add(ratings.stage(answers, Numbered(run.tables(roles.IMAGES)), prompts), folders.RATINGS)
        values = ValueTables([run.values_of(roles.FAITHFULNESS)])
        how = JudgedOptions(PRESENCE, None, None, 1.0, 5.0, (VQASCORE,), by="in-region")
        run.add(judged.stage(values, answers, Files([sample]), options=how), folders.JUDGED)
    return answers is not None


def rated(
    recipe: C3, run: Run, wanted: People, what: str, files: ExportFiles, truth: Path | None, given: Sequence[str]
) -> Path | None:
    """Hand out the forms of what is to be rated, and import the answers; None where there are none yet."""
    scheme = "c3_captions" if what == PAIRS else "c3_images"
    options = ExportOptions(Quotas(wanted.raters, 0))
    project = run.add(export_stage(files, scheme, options, shortlist=SHORTLIST, seed=recipe.seed), folders.FORMS, what)
    people = None
    if wanted.simulated is not None and truth is not None:
        people = simulated_ratings_stage(project, truth, wanted.simulated, seed=recipe.seed)
    return imported_answers(run, project, given, people, answers=folders.ANSWERS, imported=folders.IMPORTED, model=what)


C3_KIND = RecipeKind(C3, wire, sections_headline(C3_PAGE), C3_PAGE)
