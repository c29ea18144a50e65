"""What people say of the images of a run: forms out, answers in, tables of ratings, and metrics held against them."""

from pathlib import Path

from culturekit.annotate.aggregate import AggregateOptions
from culturekit.annotate.care import known_flags
from culturekit.annotate.export import ExportOptions
from culturekit.annotate.quotas import Quotas
from culturekit.config.annotations import Annotations
from culturekit.families.inputs import Numbered, ValueTables
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.annotate_stages import (
    AggregateFiles,
    ExportFiles,
    aggregate_stage,
    export_stage,
    import_stage,
)
from culturekit.pipeline.steps.rating_stages import ANSWERS_FILE, rated_sample_stage, simulated_answers_stage
from culturekit.report.stage_names import FAITHFULNESS, META, RATINGS
from culturekit.stages.stage import Stage

__all__ = ["people_stages"]

SAMPLE, TO_RATE, SIMULATED, ANSWERS = "rated-sample", "to-rate", "simulated-answers", "taken-in"


def people_stages(run: CubeRun) -> list[Stage]:
    """Hand out forms, take answers in, put them together, and hold metrics of single images against them."""
    asked = run.recipe.annotations
    if asked is None:
        return []
    stages = [*handed_out(run, asked), *taken_in(run, asked)]
    if not asked.files and asked.simulated is None:
        return stages
    answers = answers_of(run, asked)
    options = AggregateOptions(
        asked.pools,
        known_flags(asked.keep),
        asked.confidence,
        asked.resamples,
        run.recipe.seed,
        tuple(sorted(asked.only)),
    )
    return [*stages, aggregate_stage(answers, options, name=RATINGS), meta_of(run, asked)]


def handed_out(run: CubeRun, asked: Annotations) -> list[Stage]:
    """Draw images and make their forms, where the tasks are those of the run itself."""
    if asked.tables or asked.project is not None:
        return []
    images = [run.images(name) for name in run.names]
    sample = rated_sample_stage(images, run.prompts, count=asked.prompts, seed=run.recipe.seed, name=SAMPLE)
    files = ExportFiles(images, run.prompts, sample=run.workdir / SAMPLE / "audit_sample.parquet", cspace=run.space)
    options = ExportOptions(Quotas(asked.in_region, asked.out_of_region))
    return [sample, export_stage(files, asked.scheme, options, shortlist=12, seed=run.recipe.seed, name=TO_RATE)]


def taken_in(run: CubeRun, asked: Annotations) -> list[Stage]:
    """Take exports in: those of people, or of simulated people who answer first."""
    if asked.tables:
        return []
    if asked.files:
        project = run.workdir / TO_RATE if asked.project is None else Path(asked.project)
        return [import_stage(project, [Path(name) for name in asked.files], pool=None, name=ANSWERS)]
    if asked.simulated is None:
        return []
    project, truth = run.workdir / TO_RATE, [run.truth(name) for name in run.names]
    answered = simulated_answers_stage(
        project, truth, run.prompts, run.space, asked.simulated, seed=run.recipe.seed, name=SIMULATED
    )
    return [answered, import_stage(project, [run.workdir / SIMULATED / ANSWERS_FILE], pool=None, name=ANSWERS)]


def answers_of(run: CubeRun, asked: Annotations) -> AggregateFiles:
    """Name the answers, what they are about, and what of them was set aside."""
    if asked.tables:
        first, *more = [Path(name) for name in asked.files]
        return AggregateFiles.beside(first, more=more)
    folder = run.workdir / ANSWERS
    return AggregateFiles(
        folder / "annotations.parquet",
        quarantine=(folder / "quarantine.parquet",),
        checks=(folder / "annotation_checks.parquet",),
    )


def meta_of(run: CubeRun, asked: Annotations) -> Stage:
    """Hold the scores of single images against what people said of them; faithfulness has its own."""
    values = [] if run.recipe.faithfulness is None else [run.workdir / FAITHFULNESS / "values.parquet"]
    given = MetaReads(
        ValueTables(values),
        run.workdir / RATINGS / "annotations.parquet",
        quality=Numbered([run.workdir / f"quality-{name}/quality.parquet" for name in run.names]),
        matches=Numbered([run.matches(name) for name in run.names]),
        prompts=run.prompts,
    )
    options = MetaOptions(
        by=asked.pools, confidence=asked.confidence, resamples=asked.resamples, seed=run.recipe.seed,
        choices=tuple(asked.choices), people_only=True,
    )  # fmt: skip
    return meta(given, options, name=META)
