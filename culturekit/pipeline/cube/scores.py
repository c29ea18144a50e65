"""All models scored together and compared: diversity, routes, rankings, looks, people, and what is within countries."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from culturekit.annotate.aggregate import AggregateOptions
from culturekit.annotate.care import known_flags
from culturekit.annotate.export import ExportOptions
from culturekit.annotate.quotas import Quotas
from culturekit.config.annotations import Annotations
from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import Audit
from culturekit.defaults import SHORTLIST
from culturekit.families.audited import AuditedOptions, AuditedReads, audited
from culturekit.families.collection_scores import QvsOptions
from culturekit.families.compare import CompareReads, ComparisonOptions, compare
from culturekit.families.corrected import PAIRS_ORDER, Correction
from culturekit.families.distribution import DistributionReads, distribution
from culturekit.families.gaps import GapOptions, GapReads, gaps
from culturekit.families.handles.image_levels import MeanOptions
from culturekit.families.handles.inputs import Files, Numbered, ValueTables
from culturekit.families.judged import JudgedReads, judged
from culturekit.families.meta import MetaOptions, MetaReads, meta
from culturekit.families.qvs import QvsReads, qvs
from culturekit.families.ranks import RankOptions, RankReads, ranks
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.families.spread import SpreadOptions
from culturekit.families.stability import StabilityReads, stability
from culturekit.families.within import WithinOptions, WithinReads, within
from culturekit.metrics.statistics.intervals import Target
from culturekit.pipeline.cube.images import prompt_count
from culturekit.pipeline.parts.buying import bought
from culturekit.pipeline.parts.faithfulness import FaithfulnessLooks, faithfulness_scores, looks_scored
from culturekit.pipeline.parts.forms import imported_answers
from culturekit.pipeline.steps.aggregate_stage import AggregateFiles, AggregateReads, aggregate_stage
from culturekit.pipeline.steps.annotate_stages import (
    ExportFiles,
    export_stage,
    rated_sample_stage,
    simulated_answers_stage,
)
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = [
    "wire_diversity",
    "wire_faithfulness",
    "wire_gaps",
    "wire_people",
    "wire_realism",
    "wire_routes",
    "wire_stability",
    "wire_within",
]

MAIN = "main"
"""What the encoder that the scores are made with is called beside the others."""

LEVELS = (("concept",), ("country",))
"""Of what the means of faithfulness are, besides all prompts of a model."""


def wire_diversity(recipe: Recipe, run: Run) -> None:
    """Count what is shown, score the models, and compare every two."""
    matches, images, audit = run.tables(roles.MATCHES), run.tables(roles.IMAGES), recipe.audit or Audit()
    run.add(distribution(DistributionReads(Files(tuple(matches.values())))), roles.SHOWN)
    given = QvsReads(
        Files(matches),
        Files(run.tables(roles.QUALITY)),
        Files({"audits": Path(audit.file)} if audit.file else run.tables(roles.AUDIT)),
        Files([Path(audit.sample)] if audit.sample else ()),
        Files(images),
        truth=Files(run.tables(roles.TRUTH)),
        limits=Files(limits(run)),
    )
    correction = Correction(audit.pool, recipe.seed, required=False, design=audit.design)
    run.add(qvs(given, correction, with_corrected_order(recipe)), roles.SCORES)
    alike = run.models_with(roles.TRUTH) == tuple(run.models)
    compared(recipe, run, roles.SCORES, roles.COMPARISON, [] if alike else list(images.values()))
    if given.audits:
        options = AuditedOptions(audit.pool, audit.design, recipe.scores.confidence)
        looked_at = AuditedReads(given.matches, given.audits, given.sample)
        run.add(audited(looked_at, options), roles.AUDITED)
    if given.audits and len(recipe.models) > 1:
        run.add(ranks(RankReads(Numbered([run.table(roles.SCORES)])), RankOptions()), roles.RANKS)


def limits(run: Run) -> dict[str, Path]:
    """Name the matches that are floor and ceiling of the scores, where the instrument is diagnosed."""
    if not run.has(roles.DIAGNOSIS):
        return {}
    floors = {roles.MATCHES.folder(floor): run.table(roles.MATCHES, floor) for floor in roles.FLOORS}
    return {**floors, "ceiling": run.table(roles.DIAGNOSIS)}


def with_corrected_order(recipe: Recipe) -> QvsOptions:
    """Score the order at which kernels with artifacts are corrected as well, so that both stand at one order."""
    options = recipe.scoring
    if recipe.audit is None or PAIRS_ORDER in options.orders or not any(kernel[2] for kernel in options.kernels):
        return options
    return replace(options, other_orders=(*options.other_orders, PAIRS_ORDER))


def compared(recipe: Recipe, run: Run, scored: Role, role: Role, images: Sequence[Path] = ()) -> None:
    """Compare every two models; prompts that leave the culture open are few, and the same for everybody."""
    if len(recipe.models) < 2:
        return
    target: Target = "these" if recipe.asks_few else "population"
    options = ComparisonOptions(target=target, confidence=recipe.scores.confidence, seed=recipe.seed)
    run.add(compare(CompareReads(ValueTables([run.values_of(scored)]), Numbered(images)), options), role)


def wire_faithfulness(recipe: Recipe, run: Run) -> None:
    """Score whether images show what their prompts ask for."""
    if (wanted := recipe.faithfulness) is None:
        return
    asking = partial(bought, run, recipe.llm)
    looks = FaithfulnessLooks(run, wanted, recipe.images, partial(prompt_count, recipe, run), asking)
    scores = recipe.scores
    means = MeanOptions(LEVELS, scheme="", groups={}, confidence=scores.confidence, benchmark=scores.benchmark)
    faithfulness_scores(looks, means)
    compared(recipe, run, roles.FAITHFULNESS, roles.FAITHFULNESS_COMPARISON)


def wire_people(recipe: Recipe, run: Run) -> None:
    """Let people rate images, and hold metrics and judges against them."""
    asked = recipe.annotations
    if asked is not None and (rated := ratings(run, asked, seed=recipe.seed)) is not None:
        held_against_people(run, asked, rated, seed=recipe.seed)


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


def wire_routes(recipe: Recipe, run: Run) -> None:
    """Hold the tags against the nearest artifacts, where there are tags."""
    if recipe.tags is None:
        return
    files = {
        "a": run.by_model(roles.MATCHES),
        "b": run.by_model(roles.TAGS, file="matches.parquet"),
        "judgments": run.by_model(roles.TAGS),
        "quality": run.by_model(roles.QUALITY),
    }
    given = {side: Files({f"{side}-{model}": path for model, path in own.items()}) for side, own in files.items()}
    run.add(routes(RouteReads(**given), RouteOptions(**asdict(recipe.scoring))), roles.ROUTES)


def wire_stability(recipe: Recipe, run: Run) -> None:
    """Compare the rankings of all instruments, where there are several."""
    if recipe.instruments:
        others = {one.name: run.table(roles.SCORES_BY, variant=one.name) for one in recipe.instruments}
        ranked = StabilityReads(Files({MAIN: run.table(roles.SCORES), **others}))
        run.add(stability(ranked), roles.STABILITY)


def wire_realism(recipe: Recipe, run: Run) -> None:
    """Score how real and how unlike images look."""
    if recipe.realism is not None:
        options = SpreadOptions(recipe.scores.size, recipe.scores.target, recipe.scores.confidence)
        looks_scored(run, recipe.realism, options, seed=recipe.seed)


def wire_within(recipe: Recipe, run: Run) -> None:
    """Score diversity within countries, of images of prompts that name one."""
    if recipe.within is None and recipe.scores.within == "none":
        return
    made = run.by_model(roles.WITHIN_MATCHES) or run.by_model(roles.MATCHES)
    matches = {roles.MATCHES.folder(model): path for model, path in made.items()}
    given = WithinReads(Files(matches), run.table(roles.PROMPTS))
    run.add(within(given, WithinOptions(**asdict(recipe.scores))), roles.WITHIN)


def wire_gaps(recipe: Recipe, run: Run) -> None:
    """Score the gaps of a scheme on the values within countries, where the recipe asks for it."""
    if (wanted := recipe.gaps) is None:
        return
    groups = None if wanted.file is None else Path(wanted.file)
    options = GapOptions(wanted.scheme, groups, confidence=recipe.scores.confidence, seed=recipe.seed)
    run.add(gaps(GapReads(ValueTables([run.values_of(roles.WITHIN)])), options), roles.GAPS)
