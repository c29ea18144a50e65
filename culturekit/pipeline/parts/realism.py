"""How real and how unlike images look: vectors of real and generated images, distances of pairs, and their scores."""

from pathlib import Path

from culturekit.config.realism import INCEPTION, Realism, features_of, lpips_of
from culturekit.families.handles.inputs import (
    ImageTables,
    PairFolders,
    ProbabilityFolders,
    VectorFolder,
    VectorFolders,
)
from culturekit.families.realism import RealismReads, realism
from culturekit.families.spread import PairOptions, PairReads, SpreadOptions, SpreadReads, pairs, spread
from culturekit.index.embedding.embed_table import EmbedOptions, EmbedSource
from culturekit.pipeline.steps.folder_stage import image_folder, stage_of
from culturekit.pipeline.steps.index_stages import embed_stage
from culturekit.registry import parse_spec
from culturekit.stages import roles
from culturekit.stages.run import Run

__all__ = ["looks_scored"]

FOLDER = "folder:"


def looks_scored(run: Run, wanted: Realism, options: SpreadOptions, *, seed: int) -> None:
    """Embed real and generated images, measure batches, and score how real and how unlike images look."""
    real, encoder = real_images(run, wanted), EmbedOptions(features_of(wanted.encoder))
    run.add(embed_stage(EmbedSource(real), encoder), roles.VECTORS, roles.REAL_IMAGES)
    for name, table in run.by_model(roles.IMAGES).items():
        run.add(embed_stage(EmbedSource(table), encoder), roles.VECTORS, name)
        if wanted.classes is not None:
            run.add(embed_stage(EmbedSource(table), EmbedOptions(features_of(wanted.classes))), roles.CLASSES, name)
        if wanted.lpips is not None:
            run.add(pairs(PairReads(table), PairOptions(lpips_of(wanted.lpips), options.size)), roles.PAIRS, name)
    images, prompts = ImageTables(run.tables(roles.IMAGES)), run.table(roles.PROMPTS)
    vectors = VectorFolders(run.tables(roles.VECTORS))
    reads = RealismReads(
        VectorFolder(run.folder(roles.VECTORS, roles.REAL_IMAGES)), vectors, images, real, prompts,
        ProbabilityFolders(probabilities(run, wanted)),
    )  # fmt: skip
    run.add(realism(reads, wanted.scoring(seed=seed, confidence=options.confidence)), roles.REALISM)
    looks = SpreadReads(images, vectors, PairFolders(run.tables(roles.PAIRS)), prompts)
    run.add(spread(looks, options), roles.SPREAD)


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
