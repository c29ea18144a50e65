"""People in a `cultivate` run: forms out, answers in, scores put right, and metrics held against ratings."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from culturekit.annotate.aggregate import AggregateOptions
from culturekit.annotate.export import ExportOptions
from culturekit.annotate.quotas import Quotas
from culturekit.defaults import SHORTLIST
from culturekit.families.handles.inputs import Files, ValueTables
from culturekit.families.judged import JudgedOptions, JudgedReads, judged
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.pipeline.cultivate.recipe import Cultivate
from culturekit.pipeline.parts.forms import imported_answers
from culturekit.pipeline.steps.aggregate_stage import AggregateFiles, aggregate_stage
from culturekit.pipeline.steps.annotate_stages import (
    ExportFiles,
    export_stage,
    rated_sample_stage,
)
from culturekit.pipeline.steps.scene_people_stages import (
    MARKED,
    SCALE,
    marks_stage,
    scene_items_stage,
    simulated_marks_stage,
)
from culturekit.pipeline.steps.scene_score_stages import (
    gaps_of_scores_stage,
    grouped_values_stage,
    others_stage,
    raters_stage,
)
from culturekit.stages import roles
from culturekit.stages import scene_roles as own
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = ["CORRECTED", "by_folder", "wire_people"]

CORRECTED = {**MARKED, "exag": "exag"}
"""The question of the form, or what follows from it, that puts a metric right."""


def by_folder(run: Run, role: Role, models: Iterable[str]) -> Mapping[str, Path]:
    """Name the tables of a role by folder, those of real images among them."""
    return {role.folder(model): run.table(role, model) for model in models}


def wire_people(recipe: Cultivate, run: Run) -> None:
    """Hand out forms, import answers, hold metrics against them, and put the judge right."""
    wanted, prompts, descriptors = recipe.people, run.table(roles.PROMPTS), run.table(own.DESCRIPTORS)
    if wanted is None:
        return
    images = list(run.tables(roles.IMAGES).values())
    drawn = rated_sample_stage(images, prompts, count=wanted.prompts, seed=recipe.seed, each=wanted.images)
    sample = run.add(drawn, roles.RATED_SAMPLE)
    said = list(by_folder(run, own.EXTRACTED, run.models).values())
    items = run.add(scene_items_stage(sample, prompts, descriptors, said), own.ITEMS)
    forms = ExportFiles(images, prompts, items=items)
    export = ExportOptions(Quotas(wanted.in_region, 0))
    project = run.add(export_stage(forms, "cultivate", export, shortlist=SHORTLIST, seed=recipe.seed), roles.TO_RATE)
    people = None
    if wanted.simulated is not None:
        truth = [run.table(own.TRUTH, model) for model in run.models]
        shown = run.values_of(own.AHEAD_TRUTH)
        people = simulated_marks_stage(project, items, truth, shown, wanted.simulated, seed=recipe.seed)
    given, simulated = wanted.files, roles.SIMULATED_ANSWERS
    answers = imported_answers(run, project, given, people, answers=simulated, imported=roles.IMPORTED)
    if answers is None:
        return
    marks = run.add(marks_stage(answers, items, descriptors, run.folder(own.PHRASES), run.table(own.AHEAD)), own.MARKS)
    corrected(recipe, run, marks, sample)
    follow(recipe, run, marks)


def corrected(recipe: Cultivate, run: Run, marks: Path, sample: Path) -> None:
    """Put scores and gaps right by what people marked."""
    values = run.add(grouped_values_stage(run.values_of(own.AHEAD), recipe.scheme, tuple(CORRECTED)), own.BY_GROUP)
    for metric, criterion in CORRECTED.items():
        low, high = SCALE if criterion == metric else (None, None)
        options = JudgedOptions(
            criterion, None, None, low, high, (metric,), "countries", confidence=recipe.scores.confidence
        )
        run.add(judged(JudgedReads(ValueTables([values]), marks, Files([sample])), options), own.JUDGED_BY,
                variant=metric)  # fmt: skip
    if recipe.has_groups:
        tables = {metric: run.table(own.JUDGED_BY, variant=metric) for metric in CORRECTED}
        truth = run.table(own.AHEAD_TRUTH) if recipe.truthful else None
        run.add(gaps_of_scores_stage(tables, truth, recipe.scheme), own.CORRECTED_GAPS)


def follow(recipe: Cultivate, run: Run, marks: Path) -> None:
    """Hold metrics and raters against people, and against each other."""
    if recipe.people is None:
        return
    aside, checks = (run.table(roles.IMPORTED, file=f"{name}.parquet") for name in ("quarantine", "annotation_checks"))
    about = run.table(roles.IMPORTED, file="rated_items.parquet")
    files = AggregateFiles(marks, about, quarantine=(aside,), checks=(checks,))
    asked = recipe.people.asked
    options = AggregateOptions(asked.pools, (), asked.confidence, asked.resamples, recipe.seed, ())
    rated = run.add(aggregate_stage(files, options), roles.RATINGS)
    images, prompts = list(run.tables(roles.IMAGES).values()), run.table(roles.PROMPTS)
    likert = {
        own.LIKERT.folder(model, variant): run.table(own.LIKERT, model, variant)
        for model in run.models
        for variant in run.variants(own.LIKERT, model)
    }
    raters = run.add(raters_stage(likert, images, prompts, marks), own.RATERS)
    others = run.add(others_stage(images, prompts, marks), own.OTHERS)
    how = MetaOptions(
        by="in-region", scheme=recipe.scheme, methods=("spearman", "kendall"), confidence=asked.confidence,
        resamples=asked.resamples, seed=recipe.seed,
    )  # fmt: skip
    values = ValueTables([run.values_of(own.AHEAD), raters])
    run.add(meta(MetaReads(values, rated, human=ValueTables([others])), how), roles.META)
