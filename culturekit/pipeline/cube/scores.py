"""All models scored together and compared: diversity, routes, rankings, looks, and what stands within countries."""

from dataclasses import asdict
from pathlib import Path

from culturekit.config.realism import INCEPTION, Realism, features_of, lpips_of
from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import Audit
from culturekit.families.audited import AuditedOptions, AuditedReads, audited
from culturekit.families.compare import CompareReads, ComparisonOptions, compare
from culturekit.families.corrected import Correction
from culturekit.families.distribution import DistributionReads, distribution
from culturekit.families.gaps import GapOptions, GapReads, gaps
from culturekit.families.handles.inputs import (
    Files,
    ImageTables,
    Numbered,
    PairFolders,
    ProbabilityFolders,
    ValueTables,
    VectorFolder,
    VectorFolders,
)
from culturekit.families.qvs import QvsReads, qvs
from culturekit.families.ranks import RankOptions, RankReads, ranks
from culturekit.families.realism import RealismReads, realism
from culturekit.families.realism_cells import RealismMeans, RealismOptions
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.families.spread import PairOptions, PairReads, SpreadOptions, SpreadReads, pairs, spread
from culturekit.families.stability import StabilityReads, stability
from culturekit.families.within import WithinOptions, WithinReads, within
from culturekit.generation.runner import ImagePlan
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource
from culturekit.pipeline.cube.images import within_images
from culturekit.pipeline.planning.slots import makes
from culturekit.pipeline.steps.folder_stage import image_folder, stage_of
from culturekit.pipeline.steps.index_stages import embed_stage
from culturekit.registry import parse_spec
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.stages.run import Run

__all__ = ["compared", "wire_diversity", "wire_gaps", "wire_realism", "wire_routes", "wire_stability", "wire_within"]

MAIN = "main"
"""What the encoder that the scores are made with is called beside the others."""

FOLDER = "folder:"


def wire_diversity(recipe: Recipe, run: Run) -> None:
    """Count what is shown, score the models, and compare every two."""
    matches = run.tables(roles.MATCHES)
    run.add(distribution(DistributionReads(Files(tuple(matches.values())))), roles.SHOWN)
    audit = recipe.audit or Audit()
    given = QvsReads(
        Files(matches),
        Files(run.tables(roles.QUALITY)),
        Files(audits(recipe, run)),
        Files([Path(audit.sample)] if audit.sample else ()),
        Files(run.tables(roles.IMAGES)),
        truth=Files(run.tables(roles.TRUTH)),
        limits=Files(limits(recipe, run)),
    )
    correction = Correction(audit.pool, recipe.seed, required=False, design=audit.design)
    run.add(qvs(given, correction, recipe.scoring), roles.SCORES)
    alike = run.models_with(roles.TRUTH) == tuple(run.models)
    compared(recipe, run, roles.SCORES, roles.COMPARISON, [] if alike else list(run.tables(roles.IMAGES).values()))
    if recipe.audit is not None:
        looked_at(recipe, run, audit)


def looked_at(recipe: Recipe, run: Run, audit: Audit) -> None:
    """Say what the audit says by itself, and rank the models by what it corrected."""
    sample = Files([Path(audit.sample)] if audit.sample else ())
    given = AuditedReads(Files(run.tables(roles.MATCHES)), Files(audits(recipe, run)), sample)
    options = AuditedOptions(audit.pool, audit.design, recipe.scores.confidence)
    run.add(audited(given, options, required=False), roles.AUDITED)
    if len(recipe.models) > 1:
        run.add(ranks(RankReads(Numbered([run.table(roles.SCORES)])), RankOptions(), required=False), roles.RANKS)


def compared(recipe: Recipe, run: Run, scored: Role, role: Role, images: list[Path]) -> None:
    """Compare every two models; prompts that leave the culture open are few, and the same for everybody."""
    if len(recipe.models) < 2:
        return
    options = ComparisonOptions(
        target="these" if recipe.asks_few else "population", confidence=recipe.scores.confidence, seed=recipe.seed
    )
    given = CompareReads(ValueTables([run.table(scored, file="values.parquet")]), Numbered(images))
    run.add(compare(given, options), role)


def audits(recipe: Recipe, run: Run) -> dict[str, Path]:
    """Name the audits of a run: one file of people's answers, or those of each model's simulated raters."""
    stated = recipe.audit is not None and recipe.audit.file
    return {"audits": Path(stated)} if stated else run.tables(roles.AUDIT)


def limits(recipe: Recipe, run: Run) -> dict[str, Path]:
    """Name the matches that are floor and ceiling of the scores."""
    if recipe.diagnosis is None:
        return {}
    floors = {roles.MATCHES.folder(floor): run.table(roles.MATCHES, floor) for floor in roles.FLOORS}
    return {**floors, "ceiling": run.table(roles.DIAGNOSIS)}


def wire_routes(recipe: Recipe, run: Run) -> None:
    """Hold the tags against the nearest artifacts, where there are tags."""
    if recipe.tags is None:
        return
    sides = {"a": run.by_model(roles.MATCHES), "b": run.by_model(roles.TAGS, file="matches.parquet")}
    beside = {"judgments": run.by_model(roles.TAGS), "quality": run.by_model(roles.QUALITY)}
    files = {
        side: Files({f"{side}-{model}": path for model, path in tables.items()})
        for side, tables in {**sides, **beside}.items()
    }
    run.add(routes(RouteReads(**files), RouteOptions(**asdict(recipe.scoring))), roles.ROUTES)


def wire_stability(recipe: Recipe, run: Run) -> None:
    """Compare the rankings of all instruments, where there are several."""
    if recipe.instruments:
        others = {one.name: run.table(roles.SCORES_BY, variant=one.name) for one in recipe.instruments}
        run.add(stability(StabilityReads(Files({MAIN: run.table(roles.SCORES), **others}))), roles.STABILITY)


def wire_realism(recipe: Recipe, run: Run) -> None:
    """Embed real and generated images, measure batches, and score both."""
    wanted = recipe.realism
    if wanted is None:
        return
    real, encoder = real_images(run, wanted), features_of(wanted.encoder)
    run.add(embed_stage(EmbedSource(real), EmbedOptions(encoder)), roles.VECTORS, roles.REAL_IMAGES)
    for name, images in run.by_model(roles.IMAGES).items():
        run.add(embed_stage(EmbedSource(images), EmbedOptions(encoder)), roles.VECTORS, name)
        if wanted.classes is not None:
            run.add(embed_stage(EmbedSource(images), EmbedOptions(features_of(wanted.classes))), roles.CLASSES, name)
        if wanted.lpips is not None:
            options = PairOptions(lpips_of(wanted.lpips), recipe.scores.size)
            run.add(pairs(PairReads(images), options), roles.PAIRS, name)
    realness(recipe, run, wanted, real)
    looks(recipe, run)


def real_images(run: Run, wanted: Realism) -> Path:
    """Find the table of real images, and make it where they are a folder of pictures."""
    if wanted.real is None:
        return run.table(roles.REFERENCES)
    path = Path(wanted.real)
    if wanted.real.startswith(FOLDER) or (path.is_dir() and not (path / "images.parquet").is_file()):
        spec = wanted.real if wanted.real.startswith(FOLDER) else f"{FOLDER}{wanted.real}"
        stage = stage_of(image_folder(spec, None, model=roles.REAL_IMAGES))
        return run.add(stage, roles.REAL, plan=makes(ImagePlan(), spec, seed=0))
    return path / "images.parquet" if path.is_dir() else path


def realness(recipe: Recipe, run: Run, wanted: Realism, real: Path) -> None:
    """Score generated images beside real ones."""
    probs: dict[str, Path] = {}
    if wanted.classes is not None or parse_spec(wanted.encoder).name == INCEPTION:
        found = run.by_model(roles.VECTORS if wanted.classes is None else roles.CLASSES, file="probabilities.npy")
        probs = {f"probs-{name}": path for name, path in found.items()}
    given = RealismReads(
        VectorFolder(run.folder(roles.VECTORS, roles.REAL_IMAGES)),
        VectorFolders(run.tables(roles.VECTORS)),
        ImageTables(run.tables(roles.IMAGES)),
        references=real,
        prompts=run.table(roles.PROMPTS),
        probs=ProbabilityFolders(probs),
    )
    by = (("concept",),) if wanted.per_concept else ()
    options = RealismOptions(
        k=wanted.k,
        splits=wanted.splits,
        seed=recipe.seed,
        most=wanted.images,
        balanced=True,
        fewest=wanted.fewest,
        means=RealismMeans(by, scheme="", groups={}, confidence=recipe.scores.confidence),
    )
    run.add(realism(given, options), roles.REALISM)


def looks(recipe: Recipe, run: Run) -> None:
    """Score how unlike the images of a batch look."""
    given = SpreadReads(
        ImageTables(run.tables(roles.IMAGES)),
        VectorFolders(run.tables(roles.VECTORS)),
        PairFolders(run.tables(roles.PAIRS)),
        run.table(roles.PROMPTS),
    )
    scores = recipe.scores
    options = SpreadOptions(size=scores.size, target=scores.target, confidence=scores.confidence)
    run.add(spread(given, options), roles.SPREAD)


def wire_within(recipe: Recipe, run: Run) -> None:
    """Score diversity within countries, of images of prompts that name one."""
    if recipe.within is None and recipe.scores.within == "none":
        return
    matches = run.tables(roles.MATCHES)
    if within_images(recipe, run):
        made = run.by_model(roles.WITHIN_MATCHES)
        matches = {roles.MATCHES.folder(model): path for model, path in made.items()}
    given = WithinReads(Files(matches), run.table(roles.PROMPTS))
    run.add(within(given, WithinOptions(**asdict(recipe.scores))), roles.WITHIN)


def wire_gaps(recipe: Recipe, run: Run) -> None:
    """Score the gaps of a scheme on the values within countries, where the recipe asks for it."""
    wanted = recipe.gaps
    if wanted is None:
        return
    options = GapOptions(
        scheme=wanted.scheme,
        groups=None if wanted.file is None else Path(wanted.file),
        confidence=recipe.scores.confidence,
        seed=recipe.seed,
    )
    run.add(gaps(GapReads(ValueTables([run.table(roles.WITHIN, file="values.parquet")])), options), roles.GAPS)
