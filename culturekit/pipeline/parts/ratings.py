"""People who rate the images of a run: forms out, answers in, tables of ratings, and what is held against these."""

from pathlib import Path

from culturekit.annotate.aggregate import AggregateOptions
from culturekit.annotate.care import known_flags
from culturekit.annotate.export import ExportOptions
from culturekit.annotate.quotas import Quotas
from culturekit.config.annotations import Annotations
from culturekit.defaults import SHORTLIST
from culturekit.families.handles.inputs import Files, Numbered, ValueTables
from culturekit.families.judged import JudgedReads, judged
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.pipeline.parts.forms import imported_answers
from culturekit.pipeline.steps.aggregate_stage import AggregateFiles, AggregateReads, aggregate_stage
from culturekit.pipeline.steps.annotate_stages import (
    ExportFiles,
    export_stage,
    rated_sample_stage,
    simulated_answers_stage,
)
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["held_against_people", "ratings"]


def ratings(run: Run, asked: Annotations, *, seed: int) -> Path | None:
    """Hand out forms, import answers and put them together; None while nobody has answered."""
    files = imported_before(asked) if asked.tables else imported(run, asked, seed=seed)
    if files is None:
        return None
    flags, only = known_flags(asked.keep), tuple(sorted(asked.only))
    options = AggregateOptions(asked.pools, flags, asked.confidence, asked.resamples, seed, only)
    return run.add(aggregate_stage(files, options), roles.RATINGS)


def held_against_people(run: Run, asked: Annotations, rated: Path, *, seed: int) -> None:
    """Hold metrics of single images against ratings, and put what judges say right by the answers of people."""
    given = MetaReads(
        ValueTables([run.values_of(roles.FAITHFULNESS)] if run.has(roles.FAITHFULNESS) else []),
        rated,
        quality=Numbered(list(run.tables(roles.QUALITY).values())),
        matches=Numbered(list(run.tables(roles.MATCHES).values())),
        prompts=run.table(roles.PROMPTS),
    )
    options = MetaOptions(
        asked.choices, people_only=True, by=asked.pools, confidence=asked.confidence, resamples=asked.resamples,
        seed=seed,
    )  # fmt: skip
    run.add(meta(given, options), roles.META)
    if asked.judged is not None:
        drawn = Files([run.table(roles.RATED_SAMPLE)] if asked.project is None and run.has(roles.RATED_SAMPLE) else [])
        people = JudgedReads(ValueTables([run.values_of(roles.FAITHFULNESS)]), rated, drawn)
        run.add(judged(people, asked.judged), roles.JUDGED)


def imported_before(asked: Annotations) -> AggregateFiles:
    """Name answers that were imported elsewhere, with what lies beside them."""
    first, *more = map(Path, asked.files)
    return AggregateFiles.beside(AggregateReads(first), more=more)


def imported(run: Run, asked: Annotations, *, seed: int) -> AggregateFiles | None:
    """Import answers, of people or of simulated people who answer first, to the run's own forms unless others."""
    project = handed_out(run, asked, seed=seed) if asked.project is None else Path(asked.project)
    people = None
    if asked.simulated is not None:
        truth, space, prompts = run.tables(roles.TRUTH), run.table(roles.CSPACE), run.table(roles.PROMPTS)
        people = simulated_answers_stage(project, list(truth.values()), prompts, space, asked.simulated, seed=seed)
    simulated = roles.SIMULATED_ANSWERS
    answers = imported_answers(run, project, asked.files, people, answers=simulated, imported=roles.IMPORTED)
    if answers is None:
        return None
    aside, checks = (run.table(roles.IMPORTED, file=f"{name}.parquet") for name in ("quarantine", "annotation_checks"))
    return AggregateFiles(answers, quarantine=(aside,), checks=(checks,))


def handed_out(run: Run, asked: Annotations, *, seed: int) -> Path:
    """Draw images and make their forms; give the folder of the project."""
    images, prompts = list(run.tables(roles.IMAGES).values()), run.table(roles.PROMPTS)
    sample = run.add(rated_sample_stage(images, prompts, count=asked.prompts, seed=seed), roles.RATED_SAMPLE)
    files = ExportFiles(images, prompts, sample=sample, cspace=run.table(roles.CSPACE))
    options = ExportOptions(Quotas(asked.in_region, asked.out_of_region))
    return run.add(export_stage(files, asked.scheme, options, shortlist=SHORTLIST, seed=seed), roles.TO_RATE)
