"""Pictures of artifacts and of models: the index, what each model shows, and other ways to look at the same images."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from culturekit.builders.judging.geo_tag import TagOptions, TagReads
from culturekit.builders.judging.image_sample import ImageSample
from culturekit.builders.prompting.prompts import wordings_of
from culturekit.builders.space.imported_space import count_of_kinds
from culturekit.config.checks import knows_truth
from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import Model, References
from culturekit.families.handles.inputs import Files, Numbered
from culturekit.families.qvs import QvsReads, qvs
from culturekit.generation.folder.folder_options import FOLDER
from culturekit.generation.runner import ImagePlan
from culturekit.index.diagnosis.diagnosis import DiagnosisOptions
from culturekit.index.diagnosis.shuffled_pictures import ShuffleOptions
from culturekit.index.folder.build import IndexFiles, IndexOptions
from culturekit.index.matching.mapping_options import MappingInputs
from culturekit.index.raters.score_pictures import QualityOptions
from culturekit.kg.concepts import load_concept
from culturekit.pipeline.parts.buying import bought, model_images
from culturekit.pipeline.planning.slots import asks, works
from culturekit.pipeline.steps.folder_stage import image_folder, stage_of
from culturekit.pipeline.steps.generate_stage import generate_stage
from culturekit.pipeline.steps.index_stages import index_stage
from culturekit.pipeline.steps.judge_stage import tag_stage
from culturekit.pipeline.steps.mapping_stages import (
    DiagnosisReads,
    ShuffleReads,
    diagnosis_stage,
    map_stage,
    shuffle_stage,
    simulated_audit_stage,
    truth_stage,
)
from culturekit.pipeline.steps.quality_stage import QualityReads, quality_stage
from culturekit.pipeline.steps.taken_stages import named_artifacts_stage
from culturekit.records.choices import PromptKind
from culturekit.registry import parse_spec
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = [
    "prompt_count",
    "wire_diagnosis",
    "wire_index",
    "wire_instruments",
    "wire_models",
    "wire_tags",
    "wire_within_images",
]


def known_prompts(recipe: Recipe, kinds: Sequence[PromptKind]) -> int | None:
    """Count the prompts of some kinds before they are built: those of a file, or of templates that alone decide."""
    if recipe.prompts.file is not None:
        return count_of_kinds(Path(recipe.prompts.file), kinds)
    if set(kinds) != {"underspecified"} or recipe.cspace is not None:
        return None
    concepts = [load_concept(name) for name in recipe.concepts]
    wordings = wordings_of(recipe.prompts.built(), concepts)
    return sum(len(each.leaving_open(one.concept)) for each in wordings for one in concepts)


def prompt_count(recipe: Recipe, run: Run, kinds: Sequence[PromptKind]) -> int | None:
    """Count the prompts of some kinds."""
    table = run.table(roles.PROMPTS)
    return count_of_kinds(table, kinds) if table.is_file() else known_prompts(recipe, kinds)


def all_images(recipe: Recipe, run: Run, plan: ImagePlan) -> int | None:
    """Count the images that a model makes of its prompts."""
    prompts = prompt_count(recipe, run, plan.kinds)
    return None if prompts is None else prompts * plan.repeats * plan.slots


def wire_index(recipe: Recipe, run: Run) -> None:
    """Gather the references and build the index from them; without any, artifacts are known by their names."""
    if recipe.references is not None:
        if recipe.names_artifacts:
            run.add(named_artifacts_stage(run.table(roles.CSPACE)), roles.REFERENCE_PROMPTS)
        references(recipe, run, recipe.references)
    indexed(run, roles.INDEX, IndexOptions(recipe.encoder, "text" if recipe.references is None else "image"))


def references(recipe: Recipe, run: Run, wanted: References) -> None:
    """Draw the pictures, or take those of a folder: as many as it has, unless the recipe says how many."""
    prompts, space = reference_prompts(run), run.table(roles.CSPACE)
    images, backend = wanted.images, wanted.backend
    if parse_spec(backend).name == FOLDER and not wanted.counted:
        stage = stage_of(image_folder(backend, prompts, model="references", cspace=space))
    else:
        stage = generate_stage(prompts, images, backend=backend, model="references", seed=recipe.seed, cspace=space)
    run.add(stage, roles.REFERENCES)


def reference_prompts(run: Run) -> Path:
    """Name the prompts that the references answer."""
    return run.table(roles.REFERENCE_PROMPTS if run.has(roles.REFERENCE_PROMPTS) else roles.PROMPTS)


def indexed(run: Run, role: Role, options: IndexOptions, variant: str = "") -> Path:
    """Build an index, from the references unless it knows names alone."""
    files = IndexFiles(run.table(roles.CSPACE))
    if options.channel != "text":
        files = replace(files, references=run.table(roles.REFERENCES), prompts=reference_prompts(run))
    return run.add(index_stage(files, options), role, variant=variant)


def wire_models(recipe: Recipe, run: Run) -> None:
    """Make, map and rate the images of each model."""
    space, audit = run.table(roles.CSPACE), recipe.audit
    for model in recipe.models:
        name, images = model.name, drawn(recipe, run, model, recipe.images)
        matches = mapped(recipe, run, images, roles.MATCHES, name)
        run.add(quality_stage(QualityReads(images), QualityOptions(recipe.quality)), roles.QUALITY, name)
        if knows_truth(model.backend):
            run.add(truth_stage(images, space), roles.TRUTH, name)
        if audit is not None and audit.file is None:
            truth = run.table(roles.TRUTH, name)
            run.add(simulated_audit_stage(matches, truth, space, audit, seed=recipe.seed), roles.AUDIT, name)


def drawn(recipe: Recipe, run: Run, model: Model, images: ImagePlan, role: Role = roles.IMAGES) -> Path:
    """Have a model make images; templates may tell how many before there are prompts."""
    return model_images(run, model, images, role, seed=recipe.seed, prompts=partial(known_prompts, recipe))


def mapped(recipe: Recipe, run: Run, images: Path, role: Role, model: str, variant: str = "") -> Path:
    """Map images to their nearest artifacts, by the index of a variant where there are several."""
    index = run.folder(roles.INDEX_BY, variant=variant) if variant else run.folder(roles.INDEX)
    stage = map_stage(MappingInputs(index, images, run.table(roles.PROMPTS)), recipe.mapping)
    return run.add(stage, role, model, variant)


def wire_within_images(recipe: Recipe, run: Run) -> None:
    """Make and map images of prompts that name a country, where the others are of no such prompts."""
    wanted = recipe.within
    if wanted is None or set(wanted.kinds) <= set(recipe.images.kinds):
        return
    plan = replace(recipe.images, **wanted.model_dump())
    for model in recipe.models:
        mapped(recipe, run, drawn(recipe, run, model, plan, roles.WITHIN_IMAGES), roles.WITHIN_MATCHES, model.name)


def wire_diagnosis(recipe: Recipe, run: Run) -> None:
    """Map pictures that show nothing, and look at the instrument itself."""
    if (wanted := recipe.diagnosis) is None:
        return
    plan = replace(recipe.images, repeats=min(wanted.floor_repeats, recipe.images.repeats))
    drawn(recipe, run, Model(name=roles.CULTURE_FREE, backend="simulated?noise=1"), plan)
    pictures = ShuffleReads(run.table(roles.IMAGES, run.models[0]))
    shuffled = shuffle_stage(pictures, ShuffleOptions(repeats=plan.repeats, seed=recipe.seed))
    run.add(shuffled, roles.IMAGES, roles.SHUFFLED, plan=works(partial(all_images, recipe, run, plan)))
    for floor in roles.FLOORS:
        mapped(recipe, run, run.table(roles.IMAGES, floor), roles.MATCHES, floor)
    options = DiagnosisOptions(recipe.mapping, recipe.scores.size, wanted.ceiling_repeats, recipe.seed)
    given = DiagnosisReads(run.folder(roles.INDEX), Numbered(run.tables(roles.MATCHES)))
    run.add(diagnosis_stage(given, options), roles.DIAGNOSIS)


def wire_instruments(recipe: Recipe, run: Run) -> None:
    """Index, map and score with each of the other instruments; the folders carry its name."""
    for one in recipe.instruments:
        indexed(run, roles.INDEX_BY, IndexOptions(one.encoder, one.channel), one.name)
        for model in run.models:
            mapped(recipe, run, run.table(roles.IMAGES, model), roles.MATCHES_BY, model, one.name)
        matches = QvsReads(Files(run.tables(roles.MATCHES_BY, one.name)))
        run.add(qvs(matches, options=recipe.scoring), roles.SCORES_BY, variant=one.name)


def wire_tags(recipe: Recipe, run: Run) -> None:
    """Let a vision model name what the images of each model show; what the others have spent is off the budget."""
    wanted = recipe.tags
    if wanted is None:
        return
    sample = ImageSample(None if wanted.images == "all" else wanted.images, recipe.seed)
    options, slot = TagOptions(wanted.judge, sample), asks(count=partial(most_images, recipe, run, sample.images))
    for name in run.models:
        given = TagReads(run.table(roles.IMAGES, name), run.table(roles.CSPACE))
        llm = bought(run, wanted, roles.TAGS, name, budget="tags")
        run.add(tag_stage(given, options, llm), roles.TAGS, name, plan=slot)


def most_images(recipe: Recipe, run: Run, sample: int | None) -> int | None:
    """Say how many images of a model there are at most to ask about, where the prompts are known."""
    every = all_images(recipe, run, recipe.images)
    return every if every is None or sample is None else min(every, sample * len(recipe.concepts))
