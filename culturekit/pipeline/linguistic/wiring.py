"""The `linguistic` recipe as stages: prompts of three kinds, their images, what machines and people say of them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from culturekit.annotate.export import ExportOptions
from culturekit.annotate.quotas import ANYWHERE, Quotas
from culturekit.config.kinds import RecipeKind
from culturekit.defaults import SHORTLIST
from culturekit.families.dialects import DialectOptions, DialectReads, dialects
from culturekit.families.handles.inputs import Files, NamedVectors, Numbered, ValueTables
from culturekit.families.judged import JudgedOptions, JudgedReads, judged
from culturekit.families.neutral import NeutralOptions, NeutralReads, neutral
from culturekit.families.question_pairs import QuestionPairOptions, QuestionPairReads, question_pairs
from culturekit.families.ratings import RatingOptions, RatingReads, ratings
from culturekit.families.tones import ToneOptions, ToneReads, tones
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource
from culturekit.index.raters.score_pictures import QualityOptions
from culturekit.pipeline.linguistic.recipe import Linguistic, People
from culturekit.pipeline.parts.buying import model_images
from culturekit.pipeline.parts.forms import imported_answers
from culturekit.pipeline.planning.slots import asks
from culturekit.pipeline.steps.annotate_stages import ExportFiles, export_stage
from culturekit.pipeline.steps.index_stages import embed_stage
from culturekit.pipeline.steps.linguistic_prompt_stages import (
    NounOptions,
    NounReads,
    dialects_stage,
    joined_prompts_stage,
    neutral_stage,
    specific_stage,
)
from culturekit.pipeline.steps.linguistic_stages import (
    DIALECT_FORM,
    PLACE_FORM,
    even_sample_stage,
    known_truth_stage,
    question_captions_stage,
    simulated_choices_stage,
)
from culturekit.pipeline.steps.quality_stage import QualityReads, quality_stage
from culturekit.pipeline.steps.report_stage import add_sections_report, sections_headline
from culturekit.pipeline.steps.taken_stages import table_stage
from culturekit.records.schemas import PROMPTS
from culturekit.stages import linguistic_roles as own
from culturekit.stages import roles
from culturekit.stages.run import Run
from culturekit.stages.stage import Stage

__all__ = ["LINGUISTIC"]

PERSONS, PLACES = "persons", "places"
"""What people are asked about, and the forms that they fill in."""

TRUE_ENCODER = "simulated-portraits"
"""Reads labels without blur or prejudice."""


def wire(recipe: Linguistic, run: Run) -> None:
    """Add the stages of a run."""
    wire_prompts(recipe, run)
    for model in recipe.models:
        model_images(run, model, recipe.plan_of(model), seed=recipe.seed, prompts=lambda _: recipe.prompt_count())
    if recipe.truthful:
        run.add(known_truth_stage(list(run.tables(roles.IMAGES).values())), own.KNOWN)
    said = {} if recipe.people is None else wire_people(recipe, run, recipe.people)
    if "dialects" in recipe.prompts.kinds:
        wire_dialects(recipe, run, said.get(PERSONS))
    if "neutral" in recipe.prompts.kinds:
        wire_neutral(recipe, run)
    if "specific" in recipe.prompts.kinds:
        wire_specific(recipe, run, said.get(PLACES))
    add_sections_report(run, "linguistic")


def wire_prompts(recipe: Linguistic, run: Run) -> None:
    """Write the prompts of each kind, or take them in, and put them together."""
    asked = recipe.prompts
    built: dict[str, Callable[[], Stage]] = {
        "dialects": lambda: dialects_stage(asked.pairs.given(), asked.pairs.options(), recipe.llm.options()),
        "neutral": lambda: neutral_stage(NounReads(), NounOptions(asked.nouns)),
        "specific": specific_stage,
    }
    for kind in asked.kinds:
        given, proposed = getattr(asked, kind), kind == "dialects" and asked.pairs.proposer is not None
        stage = built[kind]() if given is None else table_stage(Path(given), PROMPTS)
        run.add(stage, own.OF_KIND, variant=kind, plan=asks() if proposed else None)
    parts = {str(kind): run.table(own.OF_KIND, variant=kind) for kind in recipe.prompts.kinds}
    run.add(joined_prompts_stage(parts), roles.PROMPTS)


def images_of(run: Run) -> Numbered:
    """Name the images of all models."""
    return Numbered(run.tables(roles.IMAGES))


def wire_people(recipe: Linguistic, run: Run, wanted: People) -> dict[str, Path]:
    """Draw images of persons and of places, hand out their forms, and import answers where there are some."""
    asked = {
        PERSONS: ("dialects", DIALECT_FORM, wanted.persons, wanted.person_answers),
        PLACES: ("specific", PLACE_FORM, wanted.places, wanted.place_answers),
    }
    imported, images = {}, list(run.tables(roles.IMAGES).values())
    for what, (kind, form, count, answers) in asked.items():
        if kind not in recipe.prompts.kinds:
            continue
        prompts = run.table(own.OF_KIND, variant=kind)
        drawn = even_sample_stage(images, prompts, count=count, seed=recipe.seed)
        sample = run.add(drawn, own.DRAWN, variant=what)
        options = ExportOptions(Quotas(0, wanted.raters, (ANYWHERE,)))
        files = ExportFiles(images, prompts, sample=sample)
        exported = export_stage(files, form, options, shortlist=SHORTLIST, seed=recipe.seed)
        project = run.add(exported, own.FORMS, variant=what)
        how = wanted.simulated
        people = None if how is None else simulated_choices_stage(project, run.table(own.KNOWN), how, seed=recipe.seed)
        imported[what] = imported_answers(
            run, project, answers, people, answers=own.ANSWERS, imported=own.IMPORTED, variant=what
        )
    return {what: path for what, path in imported.items() if path is not None}


def wire_dialects(recipe: Linguistic, run: Run, people: Path | None) -> None:
    """Compare dialects by a score, by people, and in truth; and find the tones of the persons they show."""
    prompts, images = run.table(own.OF_KIND, variant="dialects"), images_of(run)
    for model in run.models:
        reads = QualityReads(run.table(roles.IMAGES, model), prompts)
        run.add(quality_stage(reads, QualityOptions(recipe.scorer)), own.CLIPSCORE, model)
    quality = Numbered(run.tables(own.CLIPSCORE))
    pairs = recipe.prompts.pairs
    options = DialectOptions(pairs.standard, pairs.other, confidence=recipe.confidence, seed=recipe.seed)
    run.add(dialects(DialectReads(images, prompts, quality, people), options), own.DIALECTS)
    sample = Files([] if people is None else [run.table(own.DRAWN, variant=PERSONS)])
    for detector in recipe.detectors:
        how = ToneOptions(detector, recipe.confidence)
        run.add(tones(ToneReads(images, prompts, people, sample), how), own.TONES, variant=detector)
    if recipe.truthful:
        known = run.table(own.KNOWN)
        run.add(dialects(DialectReads(images, prompts, annotations=known), options), own.TRUE_DIALECTS)
        run.add(tones(ToneReads(images, prompts, known), ToneOptions(confidence=recipe.confidence)), own.TRUE_TONES)


def wire_neutral(recipe: Linguistic, run: Run) -> None:
    """Hold neutral pictures of each model against those of groups, by the encoder and by one that does not err."""
    prompts = run.table(own.OF_KIND, variant="neutral")
    encoders = {own.NEUTRAL: recipe.encoder} | ({own.NEUTRAL_TRUTH: TRUE_ENCODER} if recipe.truthful else {})
    for model in run.models:
        images = run.table(roles.IMAGES, model)
        for role, encoder in encoders.items():
            variant = "images" if role is own.NEUTRAL else "truth"
            vectors = run.add(
                embed_stage(EmbedSource(images=images), EmbedOptions(encoder)), own.VECTORS, model, variant
            )
            reads = NeutralReads(Numbered([images]), prompts, NamedVectors(vectors))
            run.add(neutral(reads, NeutralOptions(encoder=encoder, confidence=recipe.confidence)), role, model)


def wire_specific(recipe: Linguistic, run: Run, people: Path | None) -> None:
    """Ask images of groups about their age, have people rate them, and put the encoder right by people."""
    prompts, asked = run.table(own.OF_KIND, variant="specific"), recipe.questions
    captions = run.add(question_captions_stage(asked.pairs), own.CAPTIONS)
    told = run.add(embed_stage(EmbedSource(texts=(captions,)), EmbedOptions(recipe.encoder)), own.QUESTION_VECTORS)
    options = QuestionPairOptions(asked.pairs, asked.logit_scale, recipe.encoder, recipe.confidence)
    for model in run.models:
        images = run.table(roles.IMAGES, model)
        if not run.has(own.VECTORS, model, "images"):
            run.add(embed_stage(EmbedSource(images=images), EmbedOptions(recipe.encoder)), own.VECTORS, model, "images")
        vectors = NamedVectors(run.table(own.VECTORS, model, "images"))
        reads = QuestionPairReads(Numbered([images]), prompts, vectors, NamedVectors(told))
        run.add(question_pairs(reads, options), own.QUESTIONS, model)
    scoring = partial(ratings, options=RatingOptions(PLACE_FORM, recipe.confidence))
    if people is not None:
        run.add(scoring(RatingReads(people, images_of(run), prompts)), own.RATINGS)
        values = ValueTables([run.values_of(own.QUESTIONS, model) for model in run.models])
        how = JudgedOptions("current_date", None, None, 1.0, 5.0, ("question_share",), by="region",
                            confidence=recipe.confidence)  # fmt: skip
        sample = Files([run.table(own.DRAWN, variant=PLACES)])
        run.add(judged(JudgedReads(values, people, sample), how), own.JUDGED)
    if recipe.truthful:
        run.add(scoring(RatingReads(run.table(own.KNOWN), images_of(run), prompts)), own.TRUE_RATINGS)


LINGUISTIC = RecipeKind(Linguistic, wire, sections_headline("linguistic"))
