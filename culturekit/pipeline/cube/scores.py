"""All models scored together, and compared."""

from pathlib import Path

from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import Audit
from culturekit.families.compare import CompareReads, ComparisonOptions, compare
from culturekit.families.corrected import Correction
from culturekit.families.distribution import DistributionReads, distribution
from culturekit.families.inputs import Files, Numbered, ValueTables
from culturekit.families.qvs import QvsReads, qvs
from culturekit.pipeline.cube.diagnosis import limits_of
from culturekit.pipeline.cube.run import CubeRun
from culturekit.report.stage_names import COMPARISON, SHOWN
from culturekit.stages.stage import Stage

__all__ = ["few_prompts", "score_stages"]


def score_stages(run: CubeRun) -> list[Stage]:
    """Count what is shown, score the models, and compare every two."""
    matches = Files(tuple(run.all_matches().values()))
    return [distribution(DistributionReads(matches), name=SHOWN), scores_of(run), *comparison_of(run)]


def scores_of(run: CubeRun) -> Stage:
    """Score all models together."""
    recipe, workdir = run.recipe, run.workdir
    given = QvsReads(
        Files(run.all_matches()),
        Files({f"quality-{name}": workdir / f"quality-{name}/quality.parquet" for name in run.names}),
        Files(audits_of(run)),
        Files([Path(recipe.audit.sample)] if recipe.audit and recipe.audit.sample else ()),
        Files({f"images-{name}": run.images(name) for name in run.names}),
        truth=Files({f"truth-{name}": run.truth(name) for name in run.truthful}),
        limits=Files(limits_of(run)),
    )
    audit = recipe.audit or Audit()
    correction = Correction(audit.pool, recipe.seed, required=False, design=audit.design)
    return qvs(given, correction, run.scoring)


def comparison_of(run: CubeRun) -> list[Stage]:
    """Compare every two models; prompts that leave the culture open are few, and the same for everybody."""
    recipe = run.recipe
    if len(recipe.models) < 2:
        return []
    options = ComparisonOptions(
        target="these" if few_prompts(recipe) else "population",
        confidence=recipe.scores.confidence,
        seed=recipe.seed,
    )
    alike = len(run.truthful) == len(run.names)
    images = [] if alike else [run.images(name) for name in run.names]
    given = CompareReads(ValueTables([run.workdir / "scores/values.parquet"]), Numbered(images))
    return [compare(given, options, name=COMPARISON)]


def few_prompts(recipe: Recipe) -> bool:
    """Tell whether the prompts are the same few for everybody, as those are that leave the culture open."""
    return recipe.images.kinds == ("underspecified",) and recipe.scores.target == "these"


def audits_of(run: CubeRun) -> dict[str, Path]:
    """Name the audits of a run: one file of people's answers, or those of each model's simulated raters."""
    audit = run.recipe.audit
    if audit is None:
        return {}
    if audit.file is not None:
        return {"audits": Path(audit.file)}
    return {f"audit-{name}": run.workdir / f"audit-{name}/audits.parquet" for name in run.names}
