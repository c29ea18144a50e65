"""Realism and variety: real and generated images as vectors, batches measured in pairs, and the scores of both."""

from pathlib import Path

from culturekit.config.realism import INCEPTION, Realism, features_of, lpips_of
from culturekit.families.inputs import ImageTables, PairFolders, ProbabilityFolders, VectorFolder, VectorFolders
from culturekit.families.realism import RealismReads, realism
from culturekit.families.realism_cells import RealismMeans, RealismOptions
from culturekit.families.spread import PairOptions, PairReads, SpreadOptions, SpreadReads, pairs, spread
from culturekit.index.embedding.embed_table import EmbedSource
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.folder_stage import image_folder, stage_of
from culturekit.pipeline.steps.index_stages import embed_stage
from culturekit.registry import parse_spec
from culturekit.report.stage_names import REALISM, SPREAD
from culturekit.stages.stage import Stage

__all__ = ["realism_stages"]

REAL = "real"
"""The model that real images stand under, and the folder they are taken into."""

FOLDER = "folder:"


def realism_stages(run: CubeRun) -> list[Stage]:
    """Embed real and generated images, measure batches, and score both."""
    wanted = run.recipe.realism
    if wanted is None:
        return []
    taken, real = real_images(run, wanted)
    encoder = features_of(wanted.encoder)
    stages = [*taken, embed_stage(EmbedSource(real), encoder, name=f"vectors-{REAL}")]
    for name in run.names:
        stages.append(embed_stage(EmbedSource(run.images(name)), encoder, name=f"vectors-{name}"))
        if wanted.classes is not None:
            stages.append(embed_stage(EmbedSource(run.images(name)), features_of(wanted.classes), name=classes(name)))
        if wanted.lpips is not None:
            options = PairOptions(lpips_of(wanted.lpips), run.recipe.scores.size)
            stages.append(pairs(PairReads(run.images(name)), options, name=f"pairs-{name}"))
    return [*stages, realism_of(run, wanted, real), spread_of(run, wanted)]


def classes(name: str) -> str:
    """Name the folder with the class probabilities of a model's images."""
    return f"classes-{name}"


def real_images(run: CubeRun, wanted: Realism) -> tuple[list[Stage], Path]:
    """Find the table of real images, and the stage that makes it where they are a folder of pictures."""
    if wanted.real is None:
        return [], run.references
    path = Path(wanted.real)
    if wanted.real.startswith(FOLDER) or (path.is_dir() and not (path / "images.parquet").is_file()):
        spec = wanted.real if wanted.real.startswith(FOLDER) else f"{FOLDER}{wanted.real}"
        folder = image_folder(spec, None, model=REAL)
        return [stage_of(folder, name=REAL)], run.workdir / REAL / "images.parquet"
    return [], path / "images.parquet" if path.is_dir() else path


def realism_of(run: CubeRun, wanted: Realism, real: Path) -> Stage:
    """Score generated images beside real ones."""
    recipe, folder = run.recipe, run.workdir
    probs: dict[str, Path] = {}
    if wanted.classes is not None or parse_spec(wanted.encoder).name == INCEPTION:
        beside = "vectors-{}" if wanted.classes is None else classes("{}")
        probs = {f"probs-{name}": folder / beside.format(name) / "probabilities.npy" for name in run.names}
    given = RealismReads(
        VectorFolder(folder / f"vectors-{REAL}"),
        VectorFolders({f"vectors-{name}": folder / f"vectors-{name}" for name in run.names}),
        ImageTables({f"images-{name}": run.images(name) for name in run.names}),
        references=real,
        prompts=run.prompts,
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
    return realism(given, options, name=REALISM)


def spread_of(run: CubeRun, wanted: Realism) -> Stage:
    """Score how unlike the images of a batch look."""
    scores = run.recipe.scores
    measured = () if wanted.lpips is None else run.names
    given = SpreadReads(
        ImageTables({f"images-{name}": run.images(name) for name in run.names}),
        VectorFolders({f"vectors-{name}": run.workdir / f"vectors-{name}" for name in run.names}),
        PairFolders({f"pairs-{name}": run.workdir / f"pairs-{name}" for name in measured}),
        run.prompts,
    )
    options = SpreadOptions(size=scores.size, target=scores.target, confidence=scores.confidence)
    return spread(given, options, name=SPREAD)
