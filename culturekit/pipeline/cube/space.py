"""From the dump to the prompts: graph, candidates, filter, completion, cultural space."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from culturekit.builders.completing.completion import CompletionInputs
from culturekit.builders.completing.completion_questions import CompletionLimits
from culturekit.builders.prompting.prompt_options import PromptOptions
from culturekit.config.checks import dump_path, hand_path
from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import Review
from culturekit.kg.concepts import Concept, load_concept
from culturekit.pipeline.complete_run import CompleteRun
from culturekit.pipeline.cube.run import COMPLETION, REVIEW, CubeRun
from culturekit.pipeline.filter_run import FilterRun
from culturekit.pipeline.steps.card_stage import card_stage
from culturekit.pipeline.steps.graph_stages import extract_stage, ingest_stage, prompts_stage, release_stage
from culturekit.pipeline.steps.review_stages import ReviewFiles, review_stage
from culturekit.pipeline.steps.taken_stages import taken_prompts_stage, taken_space_stage
from culturekit.stages.stage import Stage

__all__ = ["completion_run", "filter_run", "space_stages"]


def space_stages(run: CubeRun) -> list[Stage]:
    """List the stages that make the cultural space, or take in a published one, and the prompts."""
    published = run.recipe.cspace
    space = making_stages(run) if published is None else [taken_space_stage(Path(published))]
    return [*space, asked_stage(run)]


def asked_stage(run: CubeRun) -> Stage:
    """Build the prompts, or take in those of a file."""
    recipe = run.recipe
    if recipe.prompts.file is not None:
        return taken_prompts_stage(Path(recipe.prompts.file), run.space, recipe.images.kinds)
    if recipe.cspace is not None:
        return prompts_stage(run.space, prompt_options(run), seed=recipe.seed, released=Path(recipe.cspace))
    return prompts_stage(run.space, prompt_options(run), seed=recipe.seed, concepts=scoped_concepts(recipe))


def making_stages(run: CubeRun) -> list[Stage]:
    """List the stages that make the cultural space from a dump."""
    recipe, workdir = run.recipe, run.workdir
    concepts = scoped_concepts(recipe)
    included = () if recipe.include is None else (recipe.include,)
    return [
        ingest_stage([dump_path(name) for name in recipe.dump], recipe.ingest),
        extract_stage(workdir / "graph", concepts),
        filter_run(run).stage(),
        *([] if recipe.completion is None else [completion_run(run).stage(COMPLETION)]),
        *([] if recipe.review is None else [review_stage(judged_table(run), review_files(recipe.review), name=REVIEW)]),
        release_stage([released_from(run)], concepts, recipe.popularity, recipe.release, include=included),
        *([] if recipe.card is None else [card_stage(workdir / "cspace", hand_path(recipe.card))]),
    ]


def scoped_concepts(recipe: Recipe) -> Sequence[Concept]:
    """Load the root configs; the recipe's countries, where given, take the place of theirs."""
    concepts = [load_concept(name) for name in recipe.concepts]
    if recipe.countries is None:
        return concepts
    return [concept.model_copy(update={"countries": recipe.countries}) for concept in concepts]


def prompt_options(run: CubeRun) -> PromptOptions:
    """Say which prompts to build; statements of the public layout are those of the run, unless others are named."""
    prompts, stated = run.recipe.prompts.built(), run.recipe.prompts.statements
    if not prompts.public_layout or stated is not None or run.recipe.cspace is not None:
        return prompts
    return replace(prompts, statements=str(released_from(run)))


def released_from(run: CubeRun) -> Path:
    """Name the table that is released: the one that people have reviewed, where they have."""
    return run.workdir / REVIEW / "kept.parquet" if run.recipe.review is not None else judged_table(run)


def review_files(review: Review) -> ReviewFiles:
    """Name what people sent back."""
    project = None if review.project is None else Path(review.project)
    return ReviewFiles(tuple(Path(name) for name in review.files), project, review.by, review.on)


def judged_table(run: CubeRun) -> Path:
    """Name the table of what a judge kept: the completed one, where there is one."""
    folder = "filter/kept.parquet" if run.recipe.completion is None else f"{COMPLETION}/completed.parquet"
    return run.workdir / folder


def filter_run(run: CubeRun) -> FilterRun:
    """Describe the filter of a run; the graph tells the judge what the classes of candidates are called."""
    recipe, workdir = run.recipe, run.workdir
    candidates, graph = workdir / "candidates/candidates.parquet", workdir / "graph"
    llm = replace(recipe.llm.options(), beside=run.asking(besides="filter"))
    return FilterRun(candidates, tuple(scoped_concepts(recipe)), recipe.judge, workdir / "filter", graph, llm)


def completion_run(run: CubeRun) -> CompleteRun:
    """Describe the completion of a run; it has of the budget what the filter has left."""
    recipe, workdir = run.recipe, run.workdir
    inputs = CompletionInputs(
        workdir / "filter/kept.parquet",
        workdir / "candidates/candidates.parquet",
        workdir / "filter/drops.parquet",
        workdir / "graph",
    )
    return CompleteRun(
        inputs,
        tuple(scoped_concepts(recipe)),
        recipe.judge,
        workdir / COMPLETION,
        recipe.completion or CompletionLimits(),
        replace(recipe.llm.options(), beside=run.asking(besides=COMPLETION)),
    )
