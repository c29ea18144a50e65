"""The `cube` recipe as stages: from the dump to the report, one folder each."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from culturekit.builders.completing.completion import CompletionInputs
from culturekit.builders.space.cspace import ReleaseOptions
from culturekit.config.checks import dump_path, hand_path
from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe import Recipe
from culturekit.families.named_in_recipe import bound_stage
from culturekit.kg.concepts import Concept, load_concept
from culturekit.pipeline.cube import images, scores
from culturekit.pipeline.parts.buying import bought
from culturekit.pipeline.planning.slots import works
from culturekit.pipeline.served_audit import with_answers
from culturekit.pipeline.steps.extract_stages import extract_stage
from culturekit.pipeline.steps.filter_stage import (
    CompletionOptions,
    FilterOptions,
    FilterReads,
    complete_stage,
    filter_stage,
)
from culturekit.pipeline.steps.graph_stages import prompts_stage, release_stage
from culturekit.pipeline.steps.ingest_stage import ingest_stage
from culturekit.pipeline.steps.report_stage import card_stage, report_stage
from culturekit.pipeline.steps.review_stages import ReviewFiles, review_stage
from culturekit.pipeline.steps.taken_stages import taken_prompts_stage, taken_space_stage
from culturekit.report.headline import headline_lines
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.stages.run import Run
from culturekit.stages.stage import Stage

__all__ = ["CUBE"]


def wire_space(recipe: Recipe, run: Run) -> None:
    """Make the cultural space, or import a published one, and the prompts."""
    kept = None if recipe.cspace is not None else built_space(recipe, run)
    if recipe.cspace is not None:
        run.add(taken_space_stage(Path(recipe.cspace)), roles.CSPACE)
    run.add(prompts_of(recipe, run, statements=kept), roles.PROMPTS)


def built_space(recipe: Recipe, run: Run) -> Path:
    """Make the cultural space from a dump; give the table that was released."""
    concepts, dumps = scoped_concepts(recipe), [dump_path(name) for name in recipe.dump]
    size = works(lambda: sum(path.stat().st_size for path in dumps), "bytes")
    graph = run.add(ingest_stage(dumps, recipe.ingest), roles.GRAPH, plan=size)
    candidates = run.add(extract_stage(graph, concepts), roles.CANDIDATES)
    kept = filtered(recipe, run, concepts, candidates)
    if (review := recipe.review) is not None:
        project = None if review.project is None else Path(review.project)
        files = ReviewFiles(tuple(map(Path, review.files)), project, review.by, review.on)
        removed = run.table(roles.FILTER, file="removed.parquet")
        kept = run.add(review_stage(kept, files, removed=removed), roles.REVIEW)
    options = ReleaseOptions(concepts, recipe.popularity, recipe.release, recipe.include)
    run.add(release_stage([kept], options), roles.CSPACE)
    if recipe.card is not None:
        run.add(card_stage(run.folder(roles.CSPACE), hand_path(recipe.card)), roles.CARD)
    return kept


def filtered(recipe: Recipe, run: Run, concepts: tuple[Concept, ...], candidates: Path) -> Path:
    """Let a judge look through the candidates, and propose what they lack."""
    given, options = FilterReads(candidates, run.folder(roles.GRAPH)), FilterOptions(concepts, recipe.judge)
    kept = run.add(filter_stage(given, options, bought(run, recipe.llm, roles.FILTER)), roles.FILTER)
    if recipe.completion is None:
        return kept
    looked_up = CompletionInputs(kept, candidates, run.table(roles.FILTER, file="drops.parquet"), given.graph)
    further = CompletionOptions(concepts, recipe.judge, recipe.completion)
    return run.add(complete_stage(looked_up, further, bought(run, recipe.llm, roles.COMPLETION)), roles.COMPLETION)


def scoped_concepts(recipe: Recipe) -> tuple[Concept, ...]:
    """Load the root configs; the recipe's countries, where given, take the place of theirs."""
    concepts = tuple(map(load_concept, recipe.concepts))
    if recipe.countries is None:
        return concepts
    return tuple(concept.model_copy(update={"countries": recipe.countries}) for concept in concepts)


def prompts_of(recipe: Recipe, run: Run, *, statements: Path | None) -> Stage:
    """Build the prompts, or import those of a file; the public layout has the run's statements unless others."""
    cspace, prompts = run.table(roles.CSPACE), recipe.prompts.built()
    if recipe.prompts.file is not None:
        return taken_prompts_stage(Path(recipe.prompts.file), cspace, recipe.images.kinds)
    if recipe.cspace is not None:
        return prompts_stage(cspace, prompts, seed=recipe.seed, released=Path(recipe.cspace))
    if prompts.public_layout and prompts.statements is None:
        prompts = replace(prompts, statements=str(statements))
    return prompts_stage(cspace, prompts, seed=recipe.seed, concepts=scoped_concepts(recipe))


def wire_metrics(recipe: Recipe, run: Run) -> None:
    """Add a stage for every family; what it reads are tables of the run, by the names of its fields."""
    tables = {
        "images": run.tables(roles.IMAGES),
        "matches": run.tables(roles.MATCHES),
        "prompts": {"prompts": run.table(roles.PROMPTS)},
        "quality": run.tables(roles.QUALITY),
        "values": {"values-0": run.values_of(roles.SCORES)},
    }
    for name, stated in recipe.metrics.items():
        run.add(bound_stage(name, stated, tables, seed=recipe.seed), roles.METRIC, variant=name)


EVALUATION = (
    images.wire_index,
    images.wire_models,
    images.wire_diagnosis,
    images.wire_instruments,
    images.wire_tags,
    scores.wire_diversity,
    scores.wire_routes,
    scores.wire_stability,
    scores.wire_faithfulness,
    scores.wire_realism,
    images.wire_within_images,
    scores.wire_within,
    scores.wire_gaps,
    wire_metrics,
    scores.wire_people,
)
"""The parts of a run that evaluates models, each after what it reads."""


def cube(recipe: Recipe, run: Run) -> None:
    """Add the stages of a run; without models it ends with release and prompts."""
    wire_space(recipe, run)
    if recipe.models:
        recipe = with_answers(recipe, run)
        for part in EVALUATION:
            part(recipe, run)
        run.add(report_stage(RunFolders(run.root, run.models, run.stages)), roles.REPORT)


def headline(run: Run) -> Iterable[str]:
    """Say how diverse what each model shows is, where the run has come so far."""
    return headline_lines(RunFolders(run.root, run.models, run.stages)) if run.has(roles.SCORES) else ()


CUBE = RecipeKind(Recipe, cube, headline)
