"""The `c3` recipe as stages: captions grow, models draw them, strategies choose pairs, people rate both."""

from collections.abc import Sequence
from pathlib import Path

from culturekit.annotate.export import ExportOptions
from culturekit.annotate.quotas import Quotas
from culturekit.builders.captions.caption_files import CaptionsToCount
from culturekit.builders.captions.cultures import culture_file
from culturekit.builders.captions.expanding import ExpandOptions
from culturekit.builders.captions.exporting_pairs import PairFiles, PairOptions
from culturekit.builders.captions.objects import ObjectsOptions, ObjectsReads
from culturekit.builders.captions.sampling import SampleOptions
from culturekit.builders.captions.selecting import SelectOptions
from culturekit.builders.captions.translating import TranslateOptions, TranslateReads
from culturekit.builders.judging.image_judge import WeighOptions, WeighReads
from culturekit.builders.judging.scene_judge import ExtractReads, SceneOptions
from culturekit.config.kinds import RecipeKind
from culturekit.defaults import SHORTLIST
from culturekit.families.c3 import C3Options, C3Reads, c3
from culturekit.families.compare import CompareReads, ComparisonOptions, compare
from culturekit.families.handles.inputs import Files, Numbered, ValueTables, VectorFolder
from culturekit.families.judged import JudgedOptions, JudgedReads, judged
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.families.questions import QuestionOptions, QuestionReads, questions
from culturekit.families.ratings import RatingOptions, RatingReads, ratings
from culturekit.generation.runner import ImagePlan
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource, TextColumns
from culturekit.metrics.statistics.intervals import FEWEST_PROMPTS
from culturekit.pipeline.c3.recipe import C3, Finetune, Pairs, People, SimulatedPairs
from culturekit.pipeline.parts.buying import asked, bought, model_images
from culturekit.pipeline.parts.forms import imported_answers
from culturekit.pipeline.planning.slots import asks, makes
from culturekit.pipeline.steps.annotate_stages import (
    ExportFiles,
    export_stage,
    rated_sample_stage,
)
from culturekit.pipeline.steps.caption_stages import (
    CaptionsRead,
    CultureRead,
    caption_stats_stage,
    expand_stage,
    objects_stage,
    sample_stage,
    translate_stage,
)
from culturekit.pipeline.steps.caption_world_stages import (
    alt_texts_stage,
    collection_prompts_stage,
    image_truth_stage,
    pair_truth_stage,
    simulated_ratings_stage,
)
from culturekit.pipeline.steps.finetune_stage import FinetuneReads, finetune_stage
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.index_stages import embed_stage
from culturekit.pipeline.steps.pair_stages import (
    SelectReads,
    captioned_images_stage,
    export_pairs_stage,
    pair_items_stage,
    ranked_values_stage,
    select_stage,
    worth_stage,
)
from culturekit.pipeline.steps.question_stages import vqascore_stage
from culturekit.pipeline.steps.report_stage import add_sections_report, sections_headline
from culturekit.pipeline.steps.scene_judge_stages import extract_stage
from culturekit.pipeline.steps.taken_stages import table_stage
from culturekit.records.schemas import CAPTIONS
from culturekit.stages import caption_roles as own
from culturekit.stages import roles
from culturekit.stages.caption_roles import PAIRS
from culturekit.stages.run import Run

__all__ = ["C3_KIND"]

VQASCORE, PRESENCE = "vqascore", "object_presence"
"""The judge's score of images, and the question of the form that puts it right."""


def wire(recipe: C3, run: Run) -> None:
    """Add the stages of a run."""
    wire_captions(recipe, run)
    for model in recipe.models:
        images = model_images(run, model, recipe.images, seed=recipe.seed, prompts=lambda _: recipe.captions.sample)
        wire_model(recipe, run, model.name, images)
    if recipe.pairs is not None:
        wire_pairs(recipe, run, recipe.pairs)
    if recipe.finetune is not None:
        wire_finetune(recipe, run, recipe.finetune)
    reads = QuestionReads(
        Numbered(run.tables(roles.IMAGES)), Numbered(run.tables(roles.VQASCORE)), prompts=run.table(roles.PROMPTS)
    )
    run.add(questions(reads, QuestionOptions()), roles.FAITHFULNESS)
    if recipe.truthful:
        run.add(image_truth_stage(list(run.by_model(roles.IMAGES).values()), run.table(roles.PROMPTS)), own.TRUTH)
    if recipe.finetune is not None:
        many = recipe.captions.sample >= FEWEST_PROMPTS
        how = ComparisonOptions(target="population" if many else "these", seed=recipe.seed)
        run.add(compare(CompareReads(ValueTables([run.values_of(roles.FAITHFULNESS)])), how), own.COMPARED)
    if recipe.people is not None:
        wire_ratings(recipe, run, recipe.people)
    add_sections_report(run, "c3")


def wire_captions(recipe: C3, run: Run) -> None:
    """Expand the seeds of a culture, or take captions in; draw the sample; count words and objects of each set."""
    wanted = recipe.captions
    if wanted.proposer is not None:
        options = ExpandOptions(wanted.proposer, wanted.count, wanted.per_round, wanted.encoder, wanted.similarity,
                                recipe.seed)  # fmt: skip
        given = CultureRead(culture_file(recipe.culture))
        captions = run.add(
            expand_stage(given, options, bought(run, recipe.llm, own.CAPTIONS)), own.CAPTIONS, plan=asks()
        )
    else:
        captions = run.add(table_stage(Path(str(wanted.file)), CAPTIONS), own.CAPTIONS)
    run.add(sample_stage(CaptionsRead(captions), SampleOptions(wanted.sample, recipe.seed)), roles.PROMPTS)
    sample = run.table(roles.PROMPTS, file="captions.parquet")
    sets = {"expanded": captions, **{name: Path(file) for name, file in wanted.beside.items()}}
    for name, file in sets.items():
        llm = bought(run, recipe.llm, own.NAMED_OBJECTS, variant=name)
        listed = objects_stage(ObjectsReads(captions=file), ObjectsOptions(recipe.objects.lister), llm)
        plan = asked(wanted.count if file == captions else None)
        objects = run.add(listed, own.NAMED_OBJECTS, variant=name, plan=plan)
        for part, counted in {name: file, **({"sample": sample} if file == captions else {})}.items():
            run.add(caption_stats_stage(CaptionsToCount(counted, objects)), own.STATS, variant=part)


def wire_model(recipe: C3, run: Run, model: str, images: Path) -> None:
    """Have the images of a model judged, and aligned with their captions."""
    prompts = run.table(roles.PROMPTS)
    judging = vqascore_stage(
        WeighReads(images, prompts), WeighOptions(recipe.judge), bought(run, recipe.llm, roles.VQASCORE, model)
    )
    run.add(judging, roles.VQASCORE, model, plan=asked(recipe.images_of(model)))
    captions = run.add(captioned_images_stage(images, prompts), own.CAPTIONED, model)
    align(recipe, run, model, images, captions)


def wire_finetune(recipe: C3, run: Run, wanted: Finetune) -> None:
    """Train a model on the pairs that a strategy chose, and have it draw the same captions once more."""
    backend = next(model.backend for model in recipe.models if model.name == wanted.model)
    given = FinetuneReads(run.folder(own.EXPORTED, variant=wanted.strategy))
    run.add(finetune_stage(given, wanted.options(backend, recipe.seed)), own.FINETUNED, wanted.model)
    prompts, adapter = run.table(roles.PROMPTS), run.folder(own.FINETUNED, wanted.model)
    drawing = generate_stage(
        prompts, recipe.images, backend=backend, model=wanted.name, seed=recipe.seed, adapter=adapter
    )
    images = run.add(drawing, roles.IMAGES, wanted.name, plan=makes(lambda _: recipe.captions.sample))
    wire_model(recipe, run, wanted.name, images)


def align(recipe: C3, run: Run, name: str, images: Path, captions: Path, *, source: str = "") -> Path:
    """Score how images, and the objects in them, fit captions; and these their originals, in the column `source`."""
    objects = run.add(objects_stage(*seen_by(recipe, run, name, images)), own.OBJECTS, name)
    texts, pictures = recipe.encoders.text, recipe.encoders.image

    def embedded(variant: str, source: EmbedSource, encoder: str) -> VectorFolder:
        return VectorFolder(run.add(embed_stage(source, EmbedOptions(encoder)), own.VECTORS, name, variant))

    told = EmbedSource(texts=(captions,))
    original = EmbedSource(texts=(captions,), columns=TextColumns("id", source))
    given = C3Reads(
        source=embedded("source", original, texts) if source else None,
        target=embedded("target", told, texts),
        objects=embedded("objects", EmbedSource(texts=(objects,), required=False), texts),
        image=embedded("image", EmbedSource(images=images), pictures),
        image_target=embedded("image-target", told, pictures),
    )
    run.add(c3(given, C3Options(model="captions" if name == PAIRS else name)), own.ALIGNED, name)
    return run.values_of(own.ALIGNED, name)


def seen_by(recipe: C3, run: Run, name: str, images: Path) -> tuple[ObjectsReads, ObjectsOptions]:
    """Say who lists the objects in images: a detector, or a vision model, which is asked by another stage."""
    looking = recipe.objects
    if looking.detector is not None and looking.labels is not None:
        reads = ObjectsReads(images=images, labels=Path(looking.labels))
        return reads, ObjectsOptions(None, looking.detector, looking.threshold)
    llm = bought(run, recipe.llm, own.SEEN, name)
    stage = extract_stage(ExtractReads(images, looking.dimensions), SceneOptions(looking.lister), llm)
    return ObjectsReads(
        judgments=run.add(stage, own.SEEN, name, plan=asked(recipe.images_of(name), each=len(looking.dimensions)))
    ), ObjectsOptions()


def wire_pairs(recipe: C3, run: Run, wanted: Pairs) -> None:
    """Translate the captions of pictures, align the pairs, keep the best by each strategy, and write these."""
    images, captions, rights = (
        wanted.given() if wanted.simulated is None else simulated_pairs(recipe, run, wanted.simulated)
    )
    llm = bought(run, recipe.llm, own.TRANSLATED)
    translating = translate_stage(TranslateReads(captions), TranslateOptions(wanted.translator), llm)
    translated = run.add(translating, own.TRANSLATED, plan=asked(wanted.count))
    values = align(recipe, run, PAIRS, images, translated, source="source")
    options = SelectOptions(wanted.keep, wanted.strategies, wanted.missing, recipe.seed)
    selected = run.add(select_stage(SelectReads(values), options), own.SELECTED)
    if wanted.simulated is not None:
        run.add(pair_truth_stage(images, translated), own.PAIR_TRUTH)
    given = PairFiles(selected, translated, images, rights)
    for strategy in wanted.strategies:
        how = PairOptions(strategy, wanted.forms, wanted.unlicensed)
        run.add(export_pairs_stage(given, how), own.EXPORTED, variant=strategy)
    if recipe.people is None:
        run.add(worth_stage(selected, None, run.values_of(own.PAIR_TRUTH)), own.WORTH) if wanted.simulated else None
        return
    people = recipe.people
    items = run.add(pair_items_stage(images, translated, count=people.pairs, seed=recipe.seed), own.PAIR_ITEMS)
    truth = run.values_of(own.PAIR_TRUTH) if wanted.simulated is not None else None
    answers = rated(recipe, run, people, PAIRS, ExportFiles([images], items=items), truth, people.pair_answers)
    if answers is None and truth is None:
        return
    run.add(worth_stage(selected, answers, truth), own.WORTH)
    if answers is not None:
        ranked = run.add(ranked_values_stage(selected), own.RANKED)
        pearson = MetaOptions(methods=("pearson",), people_only=True, resamples=people.resamples, seed=recipe.seed)
        run.add(meta(MetaReads(ValueTables([ranked]), answers), pearson), own.PEARSON)


def simulated_pairs(recipe: C3, run: Run, made: SimulatedPairs) -> tuple[Path, Path, Path]:
    """Let the web of the simulated world have pictures with captions, and say under which licence."""
    prompts = run.add(collection_prompts_stage(made.country), own.COLLECTION_PROMPTS)
    plan = ImagePlan(slots=made.each)
    images = run.add(
        generate_stage(prompts, plan, backend=made.backend, model=own.WEB, seed=recipe.seed), own.COLLECTION
    )
    captions = run.add(alt_texts_stage(images, names=made.names, wrong=made.wrong, seed=recipe.seed), own.ALT_TEXTS)
    return images, captions, run.table(own.ALT_TEXTS, file="rights.parquet")


def wire_ratings(recipe: C3, run: Run, wanted: People) -> None:
    """Let people rate images of some captions, and put the judge right."""
    images, prompts = list(run.by_model(roles.IMAGES).values()), run.table(roles.PROMPTS)
    sample = run.add(rated_sample_stage(images, prompts, count=wanted.prompts, seed=recipe.seed), roles.RATED_SAMPLE)
    truth = run.values_of(own.TRUTH) if recipe.truthful else None
    forms = ExportFiles(images, prompts, sample=sample)
    answers = rated(recipe, run, wanted, own.OF_MODELS, forms, truth, wanted.image_answers)
    if answers is not None:
        about = RatingReads(answers, Numbered(run.tables(roles.IMAGES)), prompts)
        run.add(ratings(about, RatingOptions()), own.RATINGS)
        reads = JudgedReads(ValueTables([run.values_of(roles.FAITHFULNESS)]), answers, Files([sample]))
        how = JudgedOptions(PRESENCE, None, None, 1.0, 5.0, (VQASCORE,), by="in-region")
        run.add(judged(reads, how), own.JUDGED)


def rated(
    recipe: C3, run: Run, wanted: People, what: str, files: ExportFiles, truth: Path | None, said: Sequence[str]
) -> Path | None:
    """Hand out the forms of what is to be rated, and import the answers; None where there are none yet."""
    scheme = "c3_captions" if what == PAIRS else "c3_images"
    options = ExportOptions(Quotas(wanted.raters, 0))
    project = run.add(export_stage(files, scheme, options, shortlist=SHORTLIST, seed=recipe.seed), own.FORMS, what)
    people = None
    if wanted.simulated is not None and truth is not None:
        people = simulated_ratings_stage(project, truth, wanted.simulated, seed=recipe.seed)
    return imported_answers(run, project, said, people, answers=own.ANSWERS, imported=own.IMPORTED, model=what)


C3_KIND = RecipeKind(C3, wire, sections_headline("c3"))
