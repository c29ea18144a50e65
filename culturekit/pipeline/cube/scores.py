"""All models scored together and compared: diversity, routes, rankings, looks, and what stands within countries."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

from culturekit.config.realism import INCEPTION, Realism, features_of, lpips_of
from culturekit.config.recipe import Recipe
from culturekit.config.recipe_parts import Audit
from culturekit.families.audited import AuditedOptions, AuditedReads, audited
from culturekit.families.collection_scores import QvsOptions
from culturekit.families.compare import CompareReads, ComparisonOptions, compare
from culturekit.families.corrected import PAIRS_ORDER, Correction
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
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.families.spread import PairOptions, PairReads, SpreadOptions, SpreadReads, pairs, spread
from culturekit.families.stability import StabilityReads, stability
from culturekit.families.within import WithinOptions, WithinReads, within
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource
from culturekit.metrics.statistics.intervals import Target
from culturekit.pipeline.cube.images import within_images
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
        run.add(
            audited(AuditedReads(given.matches, given.audits, given.sample), options, required=False), roles.AUDITED
        )
    if given.audits and len(recipe.models) > 1:
        run.add(ranks(RankReads(Numbered([run.table(roles.SCORES)])), RankOptions(), required=False), roles.RANKS)


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
        run.add(stability(StabilityReads(Files({MAIN: run.table(roles.SCORES), **others}))), roles.STABILITY)


def wire_realism(recipe: Recipe, run: Run) -> None:
    """Embed real and generated images, measure batches, and score how real and how unlike images look."""
    if (wanted := recipe.realism) is None:
        return
    scores = recipe.scores
    real, encoder = real_images(run, wanted), EmbedOptions(features_of(wanted.encoder))
    run.add(embed_stage(EmbedSource(real), encoder), roles.VECTORS, roles.REAL_IMAGES)
    for name, table in run.by_model(roles.IMAGES).items():
        run.add(embed_stage(EmbedSource(table), encoder), roles.VECTORS, name)
        if wanted.classes is not None:
            run.add(embed_stage(EmbedSource(table), EmbedOptions(features_of(wanted.classes))), roles.CLASSES, name)
        if wanted.lpips is not None:
            run.add(pairs(PairReads(table), PairOptions(lpips_of(wanted.lpips), scores.size)), roles.PAIRS, name)
    images, prompts = ImageTables(run.tables(roles.IMAGES)), run.table(roles.PROMPTS)
    vectors = VectorFolders(run.tables(roles.VECTORS))
    reads = RealismReads(
        VectorFolder(run.folder(roles.VECTORS, roles.REAL_IMAGES)), vectors, images, real, prompts,
        ProbabilityFolders(probabilities(run, wanted)),
    )  # fmt: skip
    run.add(realism(reads, wanted.scoring(seed=recipe.seed, confidence=scores.confidence)), roles.REALISM)
    looks = SpreadReads(images, vectors, PairFolders(run.tables(roles.PAIRS)), prompts)
    run.add(spread(looks, SpreadOptions(scores.size, scores.target, scores.confidence)), roles.SPREAD)


def real_images(run: Run, wanted: Realism) -> Path:
    """Find the table of real images, and make it where they are a folder of pictures."""
    if wanted.real is None:
        return run.table(roles.REFERENCES)
    path = Path(wanted.real)
    if wanted.real.startswith(FOLDER) or (path.is_dir() and not (path / "images.parquet").is_file()):
        spec = wanted.real if wanted.real.startswith(FOLDER) else f"{FOLDER}{wanted.real}"
        return run.add(stage_of(image_folder(spec, None, model=roles.REAL_IMAGES)), roles.REAL)
    return path / "images.parquet" if path.is_dir() else path


def probabilities(run: Run, wanted: Realism) -> dict[str, Path]:
    """Name the class probabilities of each model, for the inception score, where its encoder or another gives them."""
    if wanted.classes is None and parse_spec(wanted.encoder).name != INCEPTION:
        return {}
    found = run.by_model(roles.VECTORS if wanted.classes is None else roles.CLASSES, file="probabilities.npy")
    return {f"probs-{name}": path for name, path in found.items()}


def wire_within(recipe: Recipe, run: Run) -> None:
    """Score diversity within countries, of images of prompts that name one."""
    if recipe.within is None and recipe.scores.within == "none":
        return
    made = run.by_model(roles.WITHIN_MATCHES if within_images(recipe, run) else roles.MATCHES)
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
