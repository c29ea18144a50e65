"""The `cube` recipe as stages: from the dump to the report, one folder each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from culturekit.builders.completion import CompletionInputs
from culturekit.builders.completion_questions import CompletionLimits
from culturekit.builders.prompt_options import PromptOptions
from culturekit.config.checks import dump_path, knows_truth
from culturekit.config.recipe import Model, Recipe
from culturekit.generation.runner import ImagePlan
from culturekit.index.build import IndexFiles, IndexOptions
from culturekit.index.diagnosis import DiagnosisOptions
from culturekit.index.mapping_options import MappingInputs
from culturekit.index.shuffled_pictures import SHUFFLED, ShuffleOptions
from culturekit.kg.concepts import Concept, load_concept
from culturekit.metrics.scoring.score_comparisons import ComparisonOptions
from culturekit.metrics.scoring.score_corrected import Correction
from culturekit.pipeline.audit_stages import simulated_audit_stage
from culturekit.pipeline.card_stage import card_stage
from culturekit.pipeline.complete_run import CompleteRun
from culturekit.pipeline.diagnosis_stages import diagnosis_stage, shuffle_stage
from culturekit.pipeline.filter_run import FilterRun
from culturekit.pipeline.generate_stage import generate_stage
from culturekit.pipeline.graph_stages import extract_stage, ingest_stage, prompts_stage, release_stage
from culturekit.pipeline.image_stages import quality_stage, truth_stage
from culturekit.pipeline.index_stages import index_stage
from culturekit.pipeline.map_stage import map_stage
from culturekit.pipeline.other_instruments import instrument_stages, stability_of
from culturekit.pipeline.qvs_stage import score_stage
from culturekit.pipeline.report_stage import report_stage
from culturekit.pipeline.scores.comparison_stage import comparison_stage
from culturekit.pipeline.scores.distribution_stage import distribution_stage
from culturekit.pipeline.stage import Stage
from culturekit.report.run_folders import COMPARISON, CULTURE_FREE, SHOWN, RunFolders

__all__ = ["completion_run", "cube_stages", "filter_run"]

COMPLETION = "completion"


def cube_stages(recipe: Recipe, workdir: Path) -> list[Stage]:
    """List the stages of a run, each after what it reads."""
    concepts = scoped_concepts(recipe)
    space = workdir / "cspace/cspace.parquet"
    return [
        ingest_stage([dump_path(name) for name in recipe.dump], recipe.ingest),
        extract_stage(workdir / "graph", concepts),
        filter_run(recipe, workdir).stage(),
        *completion_stages(recipe, workdir),
        release_stage([released_from(recipe, workdir)], concepts, recipe.popularity, recipe.release),
        *([] if recipe.card is None else [card_stage(workdir / "cspace", Path(recipe.card))]),
        prompts_stage(space, prompt_options(recipe, workdir), seed=recipe.seed),
        *index_stages(recipe, workdir),
        *(stage for model in recipe.models for stage in model_stages(recipe, model, workdir)),
        *diagnosis_stages(recipe, workdir),
        *instrument_stages(recipe, workdir),
        distribution_stage(list(matches_of(recipe, workdir).values()), name=SHOWN),
        scores_of(recipe, workdir),
        *comparison_of(recipe, workdir),
        *stability_of(recipe, workdir),
        report_stage(folders(recipe, workdir)),
    ]


def scoped_concepts(recipe: Recipe) -> Sequence[Concept]:
    """Load the root configs; the recipe's countries, where given, take the place of theirs."""
    concepts = [load_concept(name) for name in recipe.concepts]
    if recipe.countries is None:
        return concepts
    return [concept.model_copy(update={"countries": recipe.countries}) for concept in concepts]


def prompt_options(recipe: Recipe, workdir: Path) -> PromptOptions:
    """Say which prompts to build; statements of the public layout are those of the run, unless others are named."""
    if not recipe.prompts.public_layout or recipe.prompts.statements is not None:
        return recipe.prompts
    return replace(recipe.prompts, statements=str(released_from(recipe, workdir)))


def filter_run(recipe: Recipe, workdir: Path) -> FilterRun:
    """Describe the filter of a run; the graph tells the judge what the classes of candidates are called."""
    candidates, graph = workdir / "candidates/candidates.parquet", workdir / "graph"
    concepts = tuple(scoped_concepts(recipe))
    llm = replace(recipe.llm.options(), beside=() if recipe.completion is None else (workdir / COMPLETION,))
    return FilterRun(candidates, concepts, recipe.judge, workdir / "filter", graph, llm)


def completion_run(recipe: Recipe, workdir: Path) -> CompleteRun:
    """Describe the completion of a run; it has of the budget what the filter has left."""
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
        replace(recipe.llm.options(), beside=(workdir / "filter",)),
    )


def completion_stages(recipe: Recipe, workdir: Path) -> list[Stage]:
    """Complete what the filter kept, where the recipe asks for it."""
    return [] if recipe.completion is None else [completion_run(recipe, workdir).stage(COMPLETION)]


def released_from(recipe: Recipe, workdir: Path) -> Path:
    """Name the table that is released: the completed one, where there is one."""
    return workdir / ("filter/kept.parquet" if recipe.completion is None else f"{COMPLETION}/completed.parquet")


def index_stages(recipe: Recipe, workdir: Path) -> list[Stage]:
    """Draw the references and build the index from them."""
    space, prompts = workdir / "cspace/cspace.parquet", workdir / "prompts/prompts.parquet"
    references = generate_stage(
        prompts,
        ImagePlan(slots=recipe.references.per_artifact, kinds=("cube",)),
        backend=recipe.references.backend,
        model="references",
        seed=recipe.seed,
        name="references",
        cspace=space,
    )
    images = workdir / "references/images.parquet"
    files = IndexFiles(space, references=images, prompts=prompts)
    return [references, index_stage(files, IndexOptions(recipe.encoder, "image"))]


def model_stages(recipe: Recipe, model: Model, workdir: Path) -> list[Stage]:
    """Make, map and rate the images of one model; folders carry its name."""
    space, prompts = workdir / "cspace/cspace.parquet", workdir / "prompts/prompts.parquet"
    name, backend = model.name, model.backend
    images = workdir / f"images-{name}/images.parquet"
    stages = [
        generate_stage(
            prompts, recipe.images, backend=backend, model=name, seed=recipe.seed, name=f"images-{name}",
            cspace=space, llm=model.buying.options(),
        ),
        map_stage(MappingInputs(workdir / "index", images, prompts), recipe.mapping, name=f"matches-{name}"),
        quality_stage(images, scorer=recipe.quality, name=f"quality-{name}"),
    ]  # fmt: skip
    if knows_truth(backend):
        stages.append(truth_stage(images, space, name=f"truth-{name}"))
    if recipe.audit is not None and recipe.audit.file is None:
        matches, truth = workdir / f"matches-{name}/matches.parquet", workdir / f"truth-{name}/matches.parquet"
        stages.append(
            simulated_audit_stage(matches, truth, space, recipe.audit, seed=recipe.seed, name=f"audit-{name}")
        )
    return stages


def diagnosis_stages(recipe: Recipe, workdir: Path) -> list[Stage]:
    """Map pictures that show nothing, and look at the instrument itself."""
    if recipe.diagnosis is None:
        return []
    space, prompts, index = workdir / "cspace/cspace.parquet", workdir / "prompts/prompts.parquet", workdir / "index"
    repeats = min(recipe.diagnosis.floor_repeats, recipe.images.repeats)
    blank = generate_stage(
        prompts, replace(recipe.images, repeats=repeats), backend="simulated?noise=1", model=CULTURE_FREE,
        seed=recipe.seed, name=f"images-{CULTURE_FREE}", cspace=space,
    )  # fmt: skip
    first = workdir / f"images-{recipe.models[0].name}/images.parquet"
    mixed = shuffle_stage(first, ShuffleOptions(repeats=repeats), seed=recipe.seed, name=f"images-{SHUFFLED}")
    floors = [
        map_stage(
            MappingInputs(index, workdir / f"images-{name}/images.parquet", prompts), recipe.mapping,
            name=f"matches-{name}",
        )
        for name in (CULTURE_FREE, SHUFFLED)
    ]  # fmt: skip
    matches = matches_of(recipe, workdir)
    options = DiagnosisOptions(recipe.scores.size, recipe.diagnosis.ceiling_repeats)
    return [blank, mixed, *floors, diagnosis_stage(index, matches, recipe.mapping, options, seed=recipe.seed)]


def folders(recipe: Recipe, workdir: Path) -> RunFolders:
    """Describe the run's folders to its report."""
    truthful = frozenset(model.name for model in recipe.models if knows_truth(model.backend))
    audited = recipe.audit is not None and recipe.audit.file is None
    names = tuple(model.name for model in recipe.models)
    return RunFolders(
        workdir,
        names,
        truthful,
        audited,
        diagnosed=recipe.diagnosis is not None,
        compared=bool(recipe.instruments),
        counted=True,
        differed=len(names) > 1,
        completed=recipe.completion is not None,
    )


def matches_of(recipe: Recipe, workdir: Path) -> dict[str, Path]:
    """Name the matches of each model."""
    return {f"matches-{model.name}": workdir / f"matches-{model.name}/matches.parquet" for model in recipe.models}


def comparison_of(recipe: Recipe, workdir: Path) -> list[Stage]:
    """Compare every two models; prompts that leave the culture open are few, and the same for everybody."""
    if len(recipe.models) < 2:
        return []
    options = ComparisonOptions(
        target="these" if recipe.images.kinds == ("underspecified",) else "population",
        confidence=recipe.scores.confidence,
        seed=recipe.seed,
    )
    return [comparison_stage([workdir / "scores/values.parquet"], options, name=COMPARISON)]


def scores_of(recipe: Recipe, workdir: Path) -> Stage:
    """Score all models together."""
    names = [model.name for model in recipe.models]
    truthful = [model.name for model in recipe.models if knows_truth(model.backend)]
    return score_stage(
        matches_of(recipe, workdir),
        {f"quality-{name}": workdir / f"quality-{name}/quality.parquet" for name in names},
        recipe.scores,
        truth={f"truth-{name}": workdir / f"truth-{name}/matches.parquet" for name in truthful},
        audits=audits_of(recipe, workdir),
        limits=limits_of(recipe, workdir),
        images={f"images-{name}": workdir / f"images-{name}/images.parquet" for name in names},
        correction=Correction(recipe.audit.pool if recipe.audit else None, recipe.seed, required=False),
    )


def limits_of(recipe: Recipe, workdir: Path) -> dict[str, Path]:
    """Name the matches that are floor and ceiling of the scores."""
    if recipe.diagnosis is None:
        return {}
    floors = {f"matches-{name}": workdir / f"matches-{name}/matches.parquet" for name in (CULTURE_FREE, SHUFFLED)}
    return {**floors, "ceiling": workdir / "diagnosis/matches.parquet"}


def audits_of(recipe: Recipe, workdir: Path) -> dict[str, Path]:
    """Name the audits of a run: one file of people's answers, or those of each model's simulated raters."""
    if recipe.audit is None:
        return {}
    if recipe.audit.file is not None:
        return {"audits": Path(recipe.audit.file)}
    return {f"audit-{model.name}": workdir / f"audit-{model.name}/audits.parquet" for model in recipe.models}
