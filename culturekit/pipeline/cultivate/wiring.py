"""The `cultivate` recipe as stages: from pages about activities to the report, one folder each."""

from functools import partial
from pathlib import Path

from culturekit.builders.judging.chosen_references import ChooseOptions, ChooseReads
from culturekit.builders.judging.image_judge import WeighOptions, WeighReads
from culturekit.builders.judging.scene_judge import LIKERT as SCALES
from culturekit.builders.judging.scene_judge import (
    MOST_STEREOTYPES,
    ExtractReads,
    RateReads,
    SceneOptions,
    StereotypeReads,
)
from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe_parts import Model
from culturekit.families.ahead import AheadOptions, AheadReads, PhraseVectors, ahead
from culturekit.families.gaps import GapOptions, GapReads, gaps
from culturekit.families.handles.inputs import Numbered, ValueTables
from culturekit.generation.runner import ImagePlan
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource
from culturekit.index.raters.score_pictures import QualityOptions
from culturekit.metrics.ahead.dimensions import DIMENSIONS
from culturekit.pipeline.cultivate.ground import wire_ground
from culturekit.pipeline.cultivate.people import by_folder, wire_people
from culturekit.pipeline.cultivate.recipe import VQASCORE, Cultivate
from culturekit.pipeline.parts.buying import asked, bought, model_images
from culturekit.pipeline.steps.index_stages import embed_stage
from culturekit.pipeline.steps.quality_stage import QualityReads, quality_stage
from culturekit.pipeline.steps.question_stages import vqascore_stage
from culturekit.pipeline.steps.report_stage import add_sections_report, sections_headline
from culturekit.pipeline.steps.scene_judge_stages import (
    choose_stage,
    extract_stage,
    likert_stage,
    stereotype_scores_stage,
)
from culturekit.pipeline.steps.scene_score_stages import (
    breakdown_stage,
)
from culturekit.pipeline.steps.scene_stages import scene_truth_stage
from culturekit.pipeline.steps.taken_stages import table_stage
from culturekit.records.schemas import DESCRIPTORS, PROMPTS, STEREOTYPES
from culturekit.stages import roles
from culturekit.stages import scene_roles as own
from culturekit.stages.roles import REAL_IMAGES
from culturekit.stages.run import Run

__all__ = ["CULTIVATE"]


def cultivate(recipe: Cultivate, run: Run) -> None:
    """Add the stages of a run."""
    wire_tables(recipe, run)
    for model in recipe.models:
        model_images(run, model, recipe.images, seed=recipe.seed, prompts=lambda _: recipe.prompts)
    wire_real(recipe, run)
    everybody = (*run.models, REAL_IMAGES)
    for name in everybody:
        wire_judges(recipe, run, name)
    wire_scores(recipe, run, everybody)
    if recipe.people is not None:
        wire_people(recipe, run)
    add_sections_report(run, "cultivate")


def wire_tables(recipe: Cultivate, run: Run) -> None:
    """Make prompts, descriptors and stereotypes, or take them in."""
    if recipe.ground is not None:
        wire_ground(run, recipe.ground, recipe.llm, descriptors=own.DESCRIPTORS, stereotypes=own.STEREOTYPES)
    elif recipe.tables is not None:
        run.add(table_stage(Path(recipe.tables.prompts), PROMPTS), roles.PROMPTS)
        run.add(table_stage(Path(recipe.tables.descriptors), DESCRIPTORS), own.DESCRIPTORS)
        run.add(table_stage(Path(recipe.tables.stereotypes), STEREOTYPES), own.STEREOTYPES)


def wire_real(recipe: Cultivate, run: Run) -> None:
    """Gather candidates for real images, score how well they show their prompts, and keep the best."""
    wanted, prompts = recipe.real, run.table(roles.PROMPTS)
    model = Model(name=REAL_IMAGES, backend=wanted.backend)
    images = model_images(run, model, ImagePlan(slots=wanted.per_prompt), own.CANDIDATES, seed=recipe.seed,
                          prompts=lambda _: recipe.prompts)  # fmt: skip
    if wanted.scorer.startswith(VQASCORE):
        options = WeighOptions(wanted.scorer.removeprefix(VQASCORE))
        stage = vqascore_stage(WeighReads(images, prompts), options, bought(run, recipe.llm, own.CANDIDATE_SCORES))
        scores = (
            run.add(stage, own.CANDIDATE_SCORES, plan=asked(recipe.prompts * wanted.per_prompt)) / "judgments.parquet"
        )
    else:
        stage = quality_stage(QualityReads(images, prompts), QualityOptions(wanted.scorer))
        scores = run.add(stage, own.CANDIDATE_SCORES) / "quality.parquet"
    chosen = ChooseOptions(wanted.per_prompt, wanted.at_least, wanted.keep)
    run.add(choose_stage(ChooseReads(images, prompts, scores), chosen), roles.REAL)


def images_of(run: Run, model: str) -> Path:
    """Name the images of a model, or the real ones."""
    return run.table(roles.REAL) if model == REAL_IMAGES else run.table(roles.IMAGES, model)


def wire_judges(recipe: Cultivate, run: Run, model: str) -> None:
    """Have the images of a model described, searched for stereotypes and rated; and write down the truth."""
    count = recipe.images_of(model)
    images, prompts, stereotypes = images_of(run, model), run.table(roles.PROMPTS), run.table(own.STEREOTYPES)
    extract = extract_stage(
        ExtractReads(images), SceneOptions(recipe.extractor), bought(run, recipe.llm, own.EXTRACTED, model)
    )
    run.add(extract, own.EXTRACTED, model, plan=asked(count, each=len(DIMENSIONS)))
    stereotyped = stereotype_scores_stage(
        StereotypeReads(images, prompts, stereotypes), SceneOptions(recipe.scorer),
        bought(run, recipe.llm, own.STEREOTYPED, model),
    )  # fmt: skip
    run.add(stereotyped, own.STEREOTYPED, model, plan=asked(count, each=MOST_STEREOTYPES))
    for number, rater in enumerate(recipe.raters if model != REAL_IMAGES else (), start=1):
        llm = bought(run, recipe.llm, own.LIKERT, model, str(number))
        stage = likert_stage(RateReads(images, prompts), SceneOptions(rater), llm)
        run.add(stage, own.LIKERT, model, str(number), plan=asked(count, each=len(SCALES)))
    if recipe.truthful:
        run.add(scene_truth_stage(images, prompts, stereotypes), own.TRUTH, model)


def wire_scores(recipe: Cultivate, run: Run, everybody: tuple[str, ...]) -> None:
    """Compare what was said of images, and what they truly show, with what they should show."""
    said, true = (by_folder(run, role, everybody) for role in (own.EXTRACTED, own.TRUTH))
    texts = (run.table(own.DESCRIPTORS), *said.values(), *(true.values() if recipe.truthful else ()))
    run.add(embed_stage(EmbedSource(texts=texts), EmbedOptions(recipe.encoder)), own.PHRASES)
    options = AheadOptions(
        REAL_IMAGES, recipe.scores.tau, recipe.scores.quantile, recipe.scores.aggregate, recipe.scores.reduce,
        recipe.scores.target, recipe.scheme, encoder=recipe.encoder, confidence=recipe.scores.confidence,
    )  # fmt: skip
    reads = partial(
        AheadReads,
        Numbered({f"images-{model}": images_of(run, model) for model in everybody}),
        run.table(roles.PROMPTS),
        run.table(own.DESCRIPTORS),
        phrases=PhraseVectors(run.folder(own.PHRASES)),
    )
    stereotyped = Numbered(by_folder(run, own.STEREOTYPED, everybody))
    run.add(ahead(reads(extracted=Numbered(said), stereotypes=stereotyped), options), own.AHEAD)
    if recipe.truthful:
        exact = reads(extracted=Numbered(true), stereotypes=Numbered(true))
        run.add(ahead(exact, options, like=None if options.quantile is None else run.table(own.AHEAD)), own.AHEAD_TRUTH)
    matches = run.table(own.AHEAD, file="descriptor_matches.parquet")
    run.add(breakdown_stage(run.values_of(own.AHEAD), matches, run.table(roles.PROMPTS), run.models), own.BREAKDOWN)
    if recipe.has_groups:
        how = GapOptions(recipe.scheme, confidence=recipe.scores.confidence, seed=recipe.seed)
        run.add(gaps(GapReads(ValueTables([run.values_of(own.AHEAD)])), how), roles.GAPS)


CULTIVATE = RecipeKind(Cultivate, cultivate, sections_headline("cultivate"))
